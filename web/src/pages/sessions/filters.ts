/** The filters of the session list, stored in the URL. */

export interface SessionFilters {
  q?: string;
  state?: "active" | "archived" | "trash" | "kept" | "all";
  source?: string;
  model?: string;
  tag?: string;
  pinned?: boolean;
  /** The search includes tool arguments and output. */
  tools?: boolean;
  /** Who wrote the messages of a search. */
  role?: Role;
  /** The order of a search; without it, the one that suits the query. */
  by?: SearchOrder;
  since?: string;
  until?: string;
  day?: string;
  tool?: string;
  failed_tool?: string;
  hour?: string;
  weekday?: string;
  min_messages?: string;
  max_messages?: string;
  min_seconds?: string;
  max_seconds?: string;
  folder?: string;
  branch?: string;
  sort?: SortKey;
  order?: "asc" | "desc";
}

/** What a list can be sorted by; the API has the same names. */
export const SORT_KEYS = ["last_active", "started", "messages", "tokens", "cost", "tool_errors"] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** The orders of a search, and who writes messages; the API has the same names. */
export const SEARCH_ORDERS = ["rank", "newest", "oldest"] as const;
export type SearchOrder = (typeof SEARCH_ORDERS)[number];
export const ROLES = ["user", "assistant", "tool"] as const;
export type Role = (typeof ROLES)[number];

/** Filters with a field in the bar; the chips show them only where the bar does not. */
export const BAR_FILTERS = ["source", "model", "folder"] as const;

/** Filters that are shown as removable chips. */
const CHIP_FILTERS = [
  ...BAR_FILTERS,
  "role",
  "branch",
  "tag",
  "since",
  "until",
  "day",
  "tool",
  "failed_tool",
  "hour",
  "weekday",
  "min_messages",
  "max_messages",
  "min_seconds",
  "max_seconds",
] as const;

const TEXT_FILTERS = ["q", "state", "sort", "order", "by", ...CHIP_FILTERS] as const;

const DAY_FILTERS = ["since", "until", "day"];
const NUMBER_FILTERS = ["hour", "weekday", "min_messages", "max_messages", "min_seconds", "max_seconds"];

const STATES = new Set(["active", "archived", "trash", "kept", "all"]);

/** Parse the filters of a URL; invalid values are ignored. */
export function parseFilters(search: Record<string, unknown>): SessionFilters {
  const found: Record<string, unknown> = {};
  for (const name of TEXT_FILTERS) {
    const value = search[name];
    if (typeof value === "string" && value) found[name] = value;
    if (typeof value === "number") found[name] = String(value);
  }
  if (!STATES.has(String(found.state))) delete found.state;
  if (!SORT_KEYS.includes(found.sort as SortKey) || found.sort === "last_active") delete found.sort;
  if (found.order !== "asc") delete found.order;
  if (!SEARCH_ORDERS.includes(found.by as SearchOrder)) delete found.by;
  if (!ROLES.includes(found.role as Role)) delete found.role;
  for (const name of DAY_FILTERS) if (!isDay(found[name])) delete found[name];
  for (const name of NUMBER_FILTERS) if (!Number.isFinite(Number(found[name]))) delete found[name];
  for (const name of ["pinned", "tools"]) {
    if (search[name] === true || search[name] === "true") found[name] = true;
  }
  return found as SessionFilters;
}

function isDay(value: unknown): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(String(value)) && !Number.isNaN(Date.parse(String(value)));
}

/** Convert filters to query parameters: days become timestamps; the search is a separate request. */
export function toQuery(filters: SessionFilters): Record<string, unknown> {
  const { q: _q, tools: _tools, role: _role, by: _by, since, until, ...rest } = filters;
  return { ...rest, since: since && startOfDay(since), until: until && startOfDay(until, 1) };
}

/** The query parameters of a search; the table's order, and states that no search has, are left out. */
export function toSearchQuery(filters: SessionFilters): Record<string, unknown> {
  const { sort: _sort, order: _order, state, ...query } = toQuery(filters);
  const { q, role, by, tools } = filters;
  const searched = state === "active" || state === "archived" ? state : undefined;
  return { ...query, state: searched, q, role, sort: by, with_tools: tools };
}

/** Local midnight of a day, plus *later* days, in seconds; days can have 23 or 25 hours. */
export function startOfDay(day: string, later = 0): number {
  const [year = 1970, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).getTime() / 1000;
}

/** The active filters that are shown as removable chips. */
export function activeChips(filters: SessionFilters): [keyof SessionFilters, string][] {
  return CHIP_FILTERS.flatMap((name) =>
    filters[name] ? [[name, String(filters[name])] as [keyof SessionFilters, string]] : [],
  );
}

/** Whether any filter except the state is set; the order is not a filter. */
export function hasSessionFilters(filters: SessionFilters): boolean {
  const { state: _state, sort: _sort, order: _order, by: _by, ...rest } = filters;
  return Object.values(rest).some(Boolean);
}

/** The filters with which everything is searched for the same words. */
export function withoutFilters({ q, state, sort, order, by }: SessionFilters): SessionFilters {
  return { q, state, sort, order, by };
}

/** A day some days ago, in local time. */
export function dayBefore(days: number, now = new Date()): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() - days, 12);
  return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, "0")}-${String(day.getDate()).padStart(2, "0")}`;
}

/** The filters after a click on a column's heading: largest first, then smallest first. */
export function toggleSort(filters: SessionFilters, key: SortKey): SessionFilters {
  const isCurrent = (filters.sort ?? "last_active") === key;
  const order = isCurrent && filters.order !== "asc" ? "asc" : undefined;
  return { ...filters, sort: key === "last_active" ? undefined : key, order };
}

/** Whether two sets of filters are the same. */
export function isSameView(one: SessionFilters, other: SessionFilters): boolean {
  const text = (filters: SessionFilters) =>
    JSON.stringify(
      Object.entries(filters)
        .filter(([, value]) => value)
        .sort(),
    );
  return text(one) === text(other);
}
