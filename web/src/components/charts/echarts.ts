/** The parts of ECharts in use, loaded when a chart that needs them comes into view. */
const PARTS = {
  bars: () => import("./parts/bars"),
  heatmaps: () => import("./parts/heatmaps"),
};

export type ChartPart = keyof typeof PARTS;

/** ECharts with a part. */
export async function loadEcharts(part: ChartPart) {
  return (await PARTS[part]()).echarts;
}
