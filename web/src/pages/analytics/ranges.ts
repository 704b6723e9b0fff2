/** The period and the filters of the page, stored in the URL. Days are those of the server. */
export const DAY_RANGES = ["7", "30", "90", "365", "all", "custom"] as const;
export type DayRange = (typeof DAY_RANGES)[number];

const FIRST_DAY = "2000-01-01";

/** What the statistics are limited to. */
export const FILTER_NAMES = ["source", "model", "project", "person"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

/** The search parameters of the page. */
export type AnalyticsSearch = { range: DayRange; since?: string; until?: string; compare?: string } & Partial<
  Record<FilterName, string>
>;

/** Parse the range of a URL. */
export function parseRange(value: unknown): DayRange {
  const text = String(value ?? "");
  return (DAY_RANGES as readonly string[]).includes(text) ? (text as DayRange) : "90";
}

/** Parse the search parameters; what is not text is ignored. */
export function parseSearch(search: Record<string, unknown>): AnalyticsSearch {
  const text = (name: string) => (typeof search[name] === "string" && search[name] ? search[name] : undefined);
  return {
    range: parseRange(search.range),
    since: text("since"),
    until: text("until"),
    compare: text("compare"),
    source: text("source"),
    model: text("model"),
    project: text("project"),
    person: text("person"),
  };
}

/** The filters as the server names them. */
export function filterQuery({ source, model, project, person }: AnalyticsSearch): Record<string, string | undefined> {
  return { source, only_model: model, project, person };
}

/** The period as the server reads it: a number of days, which end with the server's today, or two days. */
export function periodQuery({ range, since, until }: AnalyticsSearch): Record<string, string | undefined> {
  if (range === "all") return { since: FIRST_DAY };
  return range === "custom" ? { since, until } : { days: range };
}

/** Whether the last day is before the first, which has no statistics. */
export function isReversed({ range, since, until }: AnalyticsSearch): boolean {
  return range === "custom" && since !== undefined && until !== undefined && until < since;
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
