/** The day range of the page, stored in the URL. */
export const DAY_RANGES = ["7", "30", "90", "365", "all"] as const;
export type DayRange = (typeof DAY_RANGES)[number];

const FIRST_DAY = "2000-01-01";

/** Parse the range of a URL. */
export function parseRange(value: unknown): DayRange {
  const text = String(value ?? "");
  return (DAY_RANGES as readonly string[]).includes(text) ? (text as DayRange) : "90";
}

/** A date as YYYY-MM-DD. */
export function toIsoDay(date: Date): string {
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The first day of a range that ends today. */
export function firstDayOf(range: DayRange, today: Date): string {
  if (range === "all") return FIRST_DAY;
  const first = new Date(today);
  first.setDate(first.getDate() - Number(range) + 1);
  return toIsoDay(first);
}

/** Format a relative change: "+12%"; null without a previous value. */
export function formatChange(now: number, before: number, locale = "en"): string | null {
  if (before === 0) return null;
  const share = (now - before) / before;
  return new Intl.NumberFormat(locale, {
    style: "percent",
    signDisplay: "exceptZero",
    maximumFractionDigits: 0,
  }).format(share);
}

/** Group consecutive days so that there are at most *most* groups. */
export function groupDays<T extends { day: string }>(days: T[], most: number): T[][] {
  const size = Math.max(1, Math.ceil(days.length / most));
  const groups: T[][] = [];
  for (let start = 0; start < days.length; start += size) groups.push(days.slice(start, start + size));
  return groups;
}
