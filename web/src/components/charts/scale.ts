/** Scales of charts on which one extreme value does not hide all others. */

const MIN_VALUES = 8;
const OUTLIER_FACTOR = 4;

/** The end of a scale for most of the values; null if all of them fit a common scale. */
export function clippedMaximum(values: number[]): number | null {
  const sorted = values.filter((one) => one > 0).sort((one, other) => one - other);
  if (sorted.length < MIN_VALUES) return null;
  const common = sorted[Math.floor((sorted.length - 1) * 0.9)] ?? 0;
  const highest = sorted.at(-1) ?? 0;
  return highest > OUTLIER_FACTOR * common ? roundUp(common * 1.25) : null;
}

/** A round number that is not below *value*: 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= value * 0.999999) ?? 10;
  return step * power;
}

/** A series that marks the values above the end of the scale with an arrow and the value. */
export function outlierMarks(totals: number[], maximum: number, format: (value: number) => string, colour: string) {
  return {
    type: "line",
    name: "outliers",
    silent: true,
    symbol: "triangle",
    symbolSize: 9,
    symbolOffset: [0, 6],
    lineStyle: { opacity: 0 },
    itemStyle: { color: colour },
    tooltip: { show: false },
    z: 5,
    data: totals.map((total) =>
      total > maximum
        ? {
            value: maximum,
            label: { show: true, position: "top", distance: 2, color: colour, fontSize: 10, formatter: format(total) },
          }
        : null,
    ),
  };
}
