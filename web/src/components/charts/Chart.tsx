import { useComputedColorScheme } from "@mantine/core";
import { useReducedMotion } from "@mantine/hooks";
import type { ECElementEvent, EChartsCoreOption, EChartsType } from "echarts/core";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { echarts } from "./echarts";
import { type Palette, palette } from "./palette";

/** What can be had of a chart that is drawn. */
export interface ChartHandle {
  png(): string;
}

export interface ChartProps {
  /** What to draw, in the colours of the moment. */
  draw: (colours: Palette) => EChartsCoreOption;
  height: number;
  label: string;
  onPick?: (event: ECElementEvent) => void;
  handle?: Ref<ChartHandle>;
}

/** A chart; it follows the colours of the page, its own width, and what is to be drawn. */
export function Chart({ draw, height, label, onPick, handle }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const pick = useRef(onPick);
  pick.current = onPick;
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const isStill = useReducedMotion();

  useEffect(() => {
    if (!place.current) return;
    const drawn = echarts.init(place.current, null, { renderer: "canvas" });
    chart.current = drawn;
    drawn.on("click", (event) => pick.current?.(event as ECElementEvent));
    const watcher = new ResizeObserver(() => drawn.resize());
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      drawn.dispose();
    };
  }, []);

  useEffect(() => {
    const colours = palette(isDark);
    const base = {
      animation: !isStill,
      animationDuration: 300,
      textStyle: { fontFamily: "'Inter Variable', sans-serif", color: colours.soft },
      // The page allows no styles in its markup, so tooltips are drawn, not written.
      tooltip: {
        renderMode: "richText",
        backgroundColor: colours.panel,
        borderColor: colours.line,
        textStyle: { color: colours.ink },
      },
    };
    const option = draw(colours);
    const tooltip = { ...base.tooltip, ...(option.tooltip as object | undefined) };
    chart.current?.setOption({ ...base, ...option, tooltip }, { notMerge: true });
  }, [draw, isDark, isStill]);

  useImperativeHandle(handle, () => ({
    png: () => chart.current?.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: palette(isDark).panel }) ?? "",
  }));

  return <div ref={place} style={{ height, width: "100%" }} role="img" aria-label={label} />;
}
