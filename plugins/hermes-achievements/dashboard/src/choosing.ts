/** Which badges are shown, in which order; kept in the address. */
import { share } from "./reach";
import type { Achievement, State } from "./types";

export const STATES = ["all", "unlocked", "discovered", "secret"] as const;
export const SORTS = ["newest", "tier", "progress", "name"] as const;
export const VIEWS = ["badges", "timeline", "recap"] as const;

export type StateChoice = (typeof STATES)[number];
export type Sort = (typeof SORTS)[number];
export type View = (typeof VIEWS)[number];

export interface Choice {
  view: View;
  state: StateChoice;
  category: string;
  search: string;
  sort: Sort;
  /** Of the look back; "" is the latest year. */
  period: string;
}

export const EVERYTHING: Choice = {
  view: "badges",
  state: "all",
  category: "all",
  search: "",
  sort: "newest",
  period: "",
};

/** What an address asks for; what it says wrongly is as if it were not said. */
export function choiceOf(query: string): Choice {
  const said = new URLSearchParams(query);
  return {
    view: oneOf(VIEWS, said.get("view")) ?? EVERYTHING.view,
    state: oneOf(STATES, said.get("state")) ?? EVERYTHING.state,
    category: said.get("category") || EVERYTHING.category,
    search: said.get("search") ?? EVERYTHING.search,
    sort: oneOf(SORTS, said.get("sort")) ?? EVERYTHING.sort,
    period: said.get("period") ?? EVERYTHING.period,
  };
}

/** The address' query for a choice: only what differs from showing everything. */
export function queryOf(choice: Choice): string {
  const said = new URLSearchParams();
  for (const name of Object.keys(EVERYTHING) as (keyof Choice)[]) {
    if (choice[name] !== EVERYTHING[name]) said.set(name, choice[name]);
  }
  const text = said.toString();
  return text ? `?${text}` : "";
}

function oneOf<T extends string>(known: readonly T[], said: string | null): T | undefined {
  return known.find((one) => one === said);
}

/** Whether anything is left out. */
export function isNarrowed(choice: Choice): boolean {
  return choice.state !== "all" || choice.category !== "all" || choice.search.trim() !== "";
}

/** The badges that fit, in the order asked for. */
export function chosen(all: readonly Achievement[], choice: Choice): Achievement[] {
  return all
    .filter((one) => isOfState(one, choice.state) && isOfCategory(one, choice.category) && isFound(one, choice.search))
    .sort(ORDERS[choice.sort]);
}

/** How many badges each filter would show, given the other filters. */
export function countsOf(all: readonly Achievement[], choice: Choice) {
  const found = all.filter((one) => isFound(one, choice.search));
  const ofCategory = found.filter((one) => isOfCategory(one, choice.category));
  const ofState = found.filter((one) => isOfState(one, choice.state));
  const states: Record<StateChoice, number> = { all: ofCategory.length, unlocked: 0, discovered: 0, secret: 0 };
  for (const one of ofCategory) states[one.state] += 1;
  const categories: Record<string, number> = { all: ofState.length };
  for (const one of ofState) categories[one.category] = (categories[one.category] ?? 0) + 1;
  return { states, categories };
}

function isOfState(one: Achievement, state: StateChoice): boolean {
  return state === "all" || one.state === state;
}

function isOfCategory(one: Achievement, category: string): boolean {
  return category === "all" || one.category === category;
}

/** Every word has to be somewhere in what is written on the card. */
export function isFound(one: Achievement, search: string): boolean {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const written = [one.name, one.description, one.criteria, one.unit, one.tier ?? "", one.evidence?.title ?? ""]
    .join("\n")
    .toLocaleLowerCase();
  return words.every((word) => written.includes(word));
}

/** When the badge came to its tier; 0 where that is not known. */
export function newestAt(one: Achievement): number {
  return one.tier_history?.at(-1)?.at ?? one.unlocked_at ?? 0;
}

type Order = (a: Achievement, b: Achievement) => number;

const STATE_ORDER: Record<State, number> = { unlocked: 0, discovered: 1, secret: 2 };
const byState: Order = (a, b) => STATE_ORDER[a.state] - STATE_ORDER[b.state];
const secretsLast: Order = (a, b) => Number(a.state === "secret") - Number(b.state === "secret");
const byTier: Order = (a, b) => b.tier_rank - a.tier_rank;
const byName: Order = (a, b) => a.name.localeCompare(b.name, "en") || a.id.localeCompare(b.id, "en");
const byProgress: Order = (a, b) => share(b) - share(a);
const completeLast: Order = (a, b) => Number(a.next_threshold === null) - Number(b.next_threshold === null);
const byDate: Order = (a, b) => newestAt(b) - newestAt(a);

const ORDERS: Record<Sort, Order> = {
  newest: inTurn(byState, byDate, byTier, byProgress, byName),
  tier: inTurn(secretsLast, byTier, byProgress, byName),
  progress: inTurn(secretsLast, completeLast, byProgress, byTier, byName),
  name: inTurn(secretsLast, byName),
};

function inTurn(...orders: Order[]): Order {
  return (a, b) => {
    for (const order of orders) {
      const found = order(a, b);
      if (found !== 0) return found;
    }
    return 0;
  };
}
