import { useComputedColorScheme } from "@mantine/core";
import { useReducedMotion } from "@mantine/hooks";
import type { ECElementEvent, EChartsCoreOption, EChartsType } from "echarts/core";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { echarts } from "./echarts";
import { type Palette, readPalette } from "./palette";

/** Access to a rendered chart. */
export interface ChartHandle {
  toPng(): string;
}

export interface ChartProps {
  /** Builds the ECharts option with the current colours. */
  buildOption: (colours: Palette) => EChartsCoreOption;
  height: number;
  label: string;
  onSelect?: (event: ECElementEvent) => void;
  handle?: Ref<ChartHandle>;
}

/** A chart that follows the colour scheme, its own width and its option. */
export function Chart({ buildOption, height, label, onSelect, handle }: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const onSelectRef = useRef(onSelect);
  onSelectRef.current = onSelect;
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const isMotionReduced = useReducedMotion();

  useEffect(() => {
    if (!container.current) return;
    const instance = echarts.init(container.current, null, { renderer: "canvas" });
    chart.current = instance;
    instance.on("click", (event) => onSelectRef.current?.(event as ECElementEvent));
    const resizeObserver = new ResizeObserver(() => instance.resize());
    resizeObserver.observe(container.current);
    return () => {
      resizeObserver.disconnect();
      instance.dispose();
    };
  }, []);

  useEffect(() => {
    const colours = readPalette(isDark);
    const base = {
      animation: !isMotionReduced,
      animationDuration: 300,
      textStyle: { fontFamily: "'Inter Variable', sans-serif", color: colours.soft },
      // The content security policy forbids inline styles in markup, so tooltips are drawn on the canvas.
      tooltip: {
        renderMode: "richText",
        backgroundColor: colours.panel,
        borderColor: colours.line,
        textStyle: { color: colours.ink },
      },
    };
    const option = buildOption(colours);
    const tooltip = { ...base.tooltip, ...(option.tooltip as object | undefined) };
    chart.current?.setOption({ ...base, ...option, tooltip }, { notMerge: true });
  }, [buildOption, isDark, isMotionReduced]);

  useImperativeHandle(handle, () => ({
    toPng: () =>
      chart.current?.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: readPalette(isDark).panel }) ?? "",
  }));

  return <div ref={container} style={{ height, width: "100%" }} role="img" aria-label={label} />;
}
