/** The view, filters and sort order of the page, stored in the URL. */
import { progressShare } from "./tierProgress";
import type { Achievement, State } from "./types";

export const STATES = ["all", "unlocked", "discovered", "secret"] as const;
export const SORTS = ["newest", "tier", "progress", "name"] as const;
export const VIEWS = ["badges", "timeline", "recap"] as const;

export type StateFilter = (typeof STATES)[number];
export type Sort = (typeof SORTS)[number];
export type View = (typeof VIEWS)[number];

export interface ViewState {
  view: View;
  state: StateFilter;
  category: string;
  search: string;
  sort: Sort;
  /** The period of the recap; "" is the latest year. */
  period: string;
}

export const DEFAULT_VIEW_STATE: ViewState = {
  view: "badges",
  state: "all",
  category: "all",
  search: "",
  sort: "newest",
  period: "",
};

/** Parse the query string of a URL; invalid values are ignored. */
export function parseViewState(query: string): ViewState {
  const parameters = new URLSearchParams(query);
  return {
    view: oneOf(VIEWS, parameters.get("view")) ?? DEFAULT_VIEW_STATE.view,
    state: oneOf(STATES, parameters.get("state")) ?? DEFAULT_VIEW_STATE.state,
    category: parameters.get("category") || DEFAULT_VIEW_STATE.category,
    search: parameters.get("search") ?? DEFAULT_VIEW_STATE.search,
    sort: oneOf(SORTS, parameters.get("sort")) ?? DEFAULT_VIEW_STATE.sort,
    period: parameters.get("period") ?? DEFAULT_VIEW_STATE.period,
  };
}

/** The query string of a view state, without default values. */
export function toQueryString(viewState: ViewState): string {
  const parameters = new URLSearchParams();
  for (const name of Object.keys(DEFAULT_VIEW_STATE) as (keyof ViewState)[]) {
    if (viewState[name] !== DEFAULT_VIEW_STATE[name]) parameters.set(name, viewState[name]);
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

function oneOf<T extends string>(known: readonly T[], value: string | null): T | undefined {
  return known.find((one) => one === value);
}

/** Whether any filter is set. */
export function hasBadgeFilters(viewState: ViewState): boolean {
  return viewState.state !== "all" || viewState.category !== "all" || viewState.search.trim() !== "";
}

/** The badges that match the filters, sorted. */
export function filterBadges(all: readonly Achievement[], viewState: ViewState): Achievement[] {
  return all
    .filter(
      (one) =>
        matchesState(one, viewState.state) &&
        matchesCategory(one, viewState.category) &&
        matchesSearch(one, viewState.search),
    )
    .sort(ORDERS[viewState.sort]);
}

/** How many badges each filter value would show, given the other filters. */
export function countMatches(all: readonly Achievement[], viewState: ViewState) {
  const found = all.filter((one) => matchesSearch(one, viewState.search));
  const ofCategory = found.filter((one) => matchesCategory(one, viewState.category));
  const ofState = found.filter((one) => matchesState(one, viewState.state));
  const states: Record<StateFilter, number> = { all: ofCategory.length, unlocked: 0, discovered: 0, secret: 0 };
  for (const one of ofCategory) states[one.state] += 1;
  const categories: Record<string, number> = { all: ofState.length };
  for (const one of ofState) categories[one.category] = (categories[one.category] ?? 0) + 1;
  return { states, categories };
}

function matchesState(one: Achievement, state: StateFilter): boolean {
  return state === "all" || one.state === state;
}

function matchesCategory(one: Achievement, category: string): boolean {
  return category === "all" || one.category === category;
}

/** Whether every word of the search occurs in the text of the card. */
export function matchesSearch(one: Achievement, search: string): boolean {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const cardText = [one.name, one.description, one.criteria, one.unit, one.tier ?? "", one.evidence?.title ?? ""]
    .join("\n")
    .toLocaleLowerCase();
  return words.every((word) => cardText.includes(word));
}

/** When the badge reached its tier; 0 if unknown. */
export function lastEarnedAt(one: Achievement): number {
  return one.tier_history?.at(-1)?.at ?? one.unlocked_at ?? 0;
}

type Order = (a: Achievement, b: Achievement) => number;

const STATE_ORDER: Record<State, number> = { unlocked: 0, discovered: 1, secret: 2 };
const byState: Order = (a, b) => STATE_ORDER[a.state] - STATE_ORDER[b.state];
const secretsLast: Order = (a, b) => Number(a.state === "secret") - Number(b.state === "secret");
const byTier: Order = (a, b) => b.tier_rank - a.tier_rank;
const byName: Order = (a, b) => a.name.localeCompare(b.name, "en") || a.id.localeCompare(b.id, "en");
const byProgress: Order = (a, b) => progressShare(b) - progressShare(a);
const completeLast: Order = (a, b) => Number(a.next_threshold === null) - Number(b.next_threshold === null);
const byDate: Order = (a, b) => lastEarnedAt(b) - lastEarnedAt(a);

const ORDERS: Record<Sort, Order> = {
  newest: combineOrders(byState, byDate, byTier, byProgress, byName),
  tier: combineOrders(secretsLast, byTier, byProgress, byName),
  progress: combineOrders(secretsLast, completeLast, byProgress, byTier, byName),
  name: combineOrders(secretsLast, byName),
};

function combineOrders(...orders: Order[]): Order {
  return (a, b) => {
    for (const order of orders) {
      const found = order(a, b);
      if (found !== 0) return found;
    }
    return 0;
  };
}
