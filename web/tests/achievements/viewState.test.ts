import { describe, expect, it } from "vitest";
import {
  countMatches,
  DEFAULT_VIEW_STATE,
  filterBadges,
  hasBadgeFilters,
  parseViewState,
  toQueryString,
} from "../../../plugins/hermes-achievements/dashboard/src/viewState";
import { badge, step } from "./fixtures";

const OLD = badge({ id: "old", name: "Zebra", tier: "bronze", tier_rank: 2, tier_history: [step("bronze", 100)] });
const NEW = badge({ id: "new", name: "Yak", tier: "clay", tier_rank: 1, tier_history: [step("clay", 200)] });
const TOP = badge({ id: "top", name: "Ant", tier: "aether", tier_rank: 5, next_threshold: null, progress: 9 });
const NEAR = badge({ id: "near", name: "Bee", category: "shell", progress: 9, progress_pct: 90 });
const FAR = badge({ id: "far", name: "Cat", category: "shell", progress: 1, progress_pct: 10 });
const HIDDEN = badge({ id: "secret-1", name: "Secret", state: "secret", next_threshold: null });
const ALL = [HIDDEN, FAR, OLD, TOP, NEAR, NEW];

const ids = (part: Partial<typeof DEFAULT_VIEW_STATE>) =>
  filterBadges(ALL, { ...DEFAULT_VIEW_STATE, ...part }).map((one) => one.id);

describe("filtering badges", () => {
  it("shows the newest first, then what is under way, then secrets", () => {
    expect(ids({})).toEqual(["new", "old", "top", "near", "far", "secret-1"]);
  });

  it("sorts by tier, by nearness to the next one and by name, secrets always last", () => {
    expect(ids({ sort: "tier" })).toEqual(["top", "old", "new", "near", "far", "secret-1"]);
    expect(ids({ sort: "progress" }).slice(0, 2)).toEqual(["near", "far"]);
    expect(ids({ sort: "progress" }).slice(-2)).toEqual(["top", "secret-1"]);
    expect(ids({ sort: "name" })).toEqual(["top", "near", "far", "new", "old", "secret-1"]);
  });

  it("filters by state and category together", () => {
    expect(ids({ state: "discovered", category: "shell" })).toEqual(["near", "far"]);
    expect(ids({ state: "secret" })).toEqual(["secret-1"]);
    expect(ids({ state: "unlocked", category: "shell" })).toEqual([]);
  });

  it("finds every word of a search, whatever its case and wherever it stands", () => {
    expect(ids({ search: "  SHELL bee " })).toEqual(["near"]);
    expect(ids({ search: "bee zebra" })).toEqual([]);
    expect(ids({ search: "   " })).toHaveLength(6);
  });

  it("finds a badge by the conversation that earned it", () => {
    const one = badge({ id: "x", tier: "clay", evidence: step("clay", 1, { title: "Release ferry" }) });
    expect(filterBadges([one, FAR], { ...DEFAULT_VIEW_STATE, search: "ferry" })).toEqual([one]);
  });

  it("counts what each filter would show, given the others", () => {
    const counts = countMatches(ALL, { ...DEFAULT_VIEW_STATE, category: "shell", state: "discovered" });
    expect(counts.states).toEqual({ all: 2, unlocked: 0, discovered: 2, secret: 0 });
    expect(counts.categories).toEqual({ all: 2, shell: 2 });
  });

  it("leaves the list it was given as it was", () => {
    const before = [...ALL];
    ids({ sort: "name" });
    expect(ALL).toEqual(before);
  });
});

describe("a viewState in the address", () => {
  it("survives a round trip", () => {
    const viewState = {
      ...DEFAULT_VIEW_STATE,
      state: "unlocked",
      search: "a & b=c",
      sort: "name",
      category: "craft",
    } as const;
    expect(parseViewState(toQueryString(viewState))).toEqual(viewState);
  });

  it("is empty for the default view", () => {
    expect(toQueryString(DEFAULT_VIEW_STATE)).toBe("");
    expect(parseViewState("")).toEqual(DEFAULT_VIEW_STATE);
  });

  it("ignores invalid values", () => {
    expect(parseViewState("?sort=luck&state=lost&view=nowhere&category=")).toEqual(DEFAULT_VIEW_STATE);
  });

  it("reports whether filters are set", () => {
    expect(hasBadgeFilters({ ...DEFAULT_VIEW_STATE, sort: "name", search: " " })).toBe(false);
    expect(hasBadgeFilters({ ...DEFAULT_VIEW_STATE, search: "x" })).toBe(true);
  });
});
