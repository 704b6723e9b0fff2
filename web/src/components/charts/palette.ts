/** The colours of charts, read from the CSS variables of the page. */
export interface Palette {
  ink: string;
  soft: string;
  line: string;
  panel: string;
  accent: string;
  gold: string;
  good: string;
  bad: string;
  /** Heat map colours from lowest to highest. */
  ramp: string[];
  /** Colours of data series. */
  series: string[];
}

const LIGHT_SERIES = ["#0c6f7e", "#c08a1e", "#6d4fc4", "#3c8f4b", "#c2473d", "#3f6fd1", "#8a6f57", "#b04f94"];
const DARK_SERIES = ["#4fc0d0", "#efc45e", "#a894f0", "#7fd494", "#ff9a92", "#8ab4ff", "#c9b39b", "#ec9ed2"];

/** The colours of data series. */
export function seriesColours(isDark: boolean): string[] {
  return isDark ? DARK_SERIES : LIGHT_SERIES;
}

/** Read the colours of the current scheme. */
export function readPalette(isDark: boolean): Palette {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: token("--ink"),
    soft: token("--ink-soft"),
    line: token("--line"),
    panel: token("--panel"),
    accent: token("--accent"),
    gold: token("--gold"),
    good: token("--good"),
    bad: token("--bad"),
    ramp: isDark
      ? ["#1a2530", "#134150", "#1a6b7c", "#2f9fb0", "#7fe0ea"]
      : ["#edf1ef", "#bfe2e4", "#74bfc8", "#2b8f9d", "#085a67"],
    series: seriesColours(isDark),
  };
}
