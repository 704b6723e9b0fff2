import { useComputedColorScheme } from "@mantine/core";
import type { ECElementEvent, EChartsCoreOption, EChartsType } from "echarts/core";
import { type Ref, useEffect, useImperativeHandle, useRef, useState } from "react";
import { type ChartPart, loadEcharts } from "./echarts";
import { type Palette, readPalette } from "./palette";

const PRELOAD_MARGIN = "120px";

/** Access to a chart; one that was not in view yet is drawn for it. */
export interface ChartHandle {
  toPng(): Promise<string>;
}

export interface ChartProps {
  /** Builds the ECharts option with the current colours; without it, the place stays empty. */
  buildOption: ((colours: Palette) => EChartsCoreOption) | null;
  part: ChartPart;
  height: number;
  label: string;
  onSelect?: (event: ECElementEvent) => void;
  handle?: Ref<ChartHandle>;
}

/** A chart that is drawn when it comes into view, and follows the colour scheme, its width and its option. */
export function Chart({ buildOption, part, height, label, onSelect, handle }: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const onSelectRef = useRef(onSelect);
  onSelectRef.current = onSelect;
  const isDark = useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
  const isInView = useIsInView(container);
  const isWanted = isInView && buildOption !== null;
  const option = useRef({ buildOption, isDark });
  option.current = { buildOption, isDark };

  const draw = () => {
    const { buildOption: build, isDark: dark } = option.current;
    if (build) chart.current?.setOption(withDefaults(build, readPalette(dark)), { notMerge: true });
  };
  const create = useRef(async () => {
    const echarts = await loadEcharts(part);
    if (!container.current || chart.current) return;
    const instance = echarts.init(container.current, null, { renderer: "canvas" });
    chart.current = instance;
    instance.on("click", (event) => onSelectRef.current?.(event as ECElementEvent));
    draw();
  });

  useEffect(() => {
    if (isWanted) void create.current();
  }, [isWanted]);
  useEffect(() => {
    const resizeObserver = new ResizeObserver(() => chart.current?.resize());
    if (container.current) resizeObserver.observe(container.current);
    return () => {
      resizeObserver.disconnect();
      chart.current?.dispose();
      chart.current = null;
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the option is drawn again when one of these changes
  useEffect(draw, [buildOption, isDark]);

  useImperativeHandle(handle, () => ({
    toPng: async () => {
      await create.current();
      const backgroundColor = readPalette(isDark).panel;
      return chart.current?.getDataURL({ type: "png", pixelRatio: 2, backgroundColor }) ?? "";
    },
  }));

  return <div ref={container} style={{ height, width: "100%" }} role="img" aria-label={label} />;
}

/** The option with fonts and tooltips; nothing moves, which saves most of the drawing time. */
function withDefaults(build: (colours: Palette) => EChartsCoreOption, colours: Palette): EChartsCoreOption {
  const option = build(colours);
  return {
    animation: false,
    textStyle: { fontFamily: "'Inter Variable', sans-serif", color: colours.soft },
    ...option,
    // The content security policy forbids inline styles in markup, so tooltips are drawn on the canvas.
    tooltip: {
      renderMode: "richText",
      backgroundColor: colours.panel,
      borderColor: colours.line,
      textStyle: { color: colours.ink },
      ...(option.tooltip as object | undefined),
    },
  };
}

/** Whether an element has been in view, or nearly. */
function useIsInView(element: { current: HTMLElement | null }): boolean {
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) {
          setInView(true);
          observer.disconnect();
        }
      },
      { rootMargin: PRELOAD_MARGIN },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return isInView;
}
