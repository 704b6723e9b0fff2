import { describe, expect, it } from "vitest";
import { closestBadges, progressShare } from "../../../plugins/hermes-achievements/dashboard/src/tierProgress";
import {
  countByTier,
  evidencePath,
  findNewSteps,
  groupByMonth,
  sortSteps,
} from "../../../plugins/hermes-achievements/dashboard/src/unlocks";
import { badge, response, step } from "./fixtures";

const CLAY = badge({ id: "a", tier: "clay", tier_history: [step("clay", 100)] });
const BRONZE = badge({
  id: "a",
  tier: "bronze",
  tier_history: [step("clay", 100), step("bronze", 300, { value: 100 })],
});
const OTHER = badge({ id: "b", tier: "clay", tier_history: [step("clay", 200)] });

describe("what is new between two answers", () => {
  const found = (...args: Parameters<typeof findNewSteps>) =>
    findNewSteps(...args).map((one) => `${one.id} ${one.tier}`);

  it("is an unlock or a tier-up", () => {
    expect(found(response([CLAY]), response([BRONZE, OTHER]))).toEqual(["a bronze", "b clay"]);
    expect(findNewSteps(response([CLAY]), response([BRONZE]))[0]?.is_first).toBe(false);
    expect(findNewSteps(response([CLAY]), response([CLAY, OTHER]))[0]?.is_first).toBe(true);
  });

  it("is nothing on the first load", () => {
    expect(found(null, response([CLAY]))).toEqual([]);
  });

  it("is nothing while a first scan finds what was earned long ago", () => {
    expect(found(response([], "in_progress"), response([CLAY]))).toEqual([]);
    expect(found(response([CLAY]), response([OTHER], "in_progress"))).toEqual([]);
  });

  it("is nothing when all stays as it is", () => {
    expect(found(response([BRONZE]), response([BRONZE]))).toEqual([]);
  });
});

describe("a timeline", () => {
  it("has every tier of every badge, the latest first", () => {
    expect(sortSteps([BRONZE, OTHER]).map((one) => one.at)).toEqual([300, 200, 100]);
  });

  it("is grouped by month, in the order of the steps", () => {
    const at = (day: string) => Date.parse(`${day}T12:00:00Z`) / 1000;
    const one = badge({
      id: "m",
      tier: "bronze",
      tier_history: [step("clay", at("2026-09-03")), step("bronze", at("2026-11-15"))],
    });
    const months = groupByMonth(sortSteps([one, badge({ id: "n", tier_history: [step("clay", at("2026-11-02"))] })]));
    expect(months.map(({ name, steps }) => [name, steps.length])).toEqual([
      ["November 2026", 2],
      ["September 2026", 1],
    ]);
  });

  it("leads to the message, unless the conversation is gone", () => {
    expect(evidencePath({ session_id: "a/b", message_id: 7 })).toBe("/sessions/a%2Fb?message=7");
    expect(evidencePath({ session_id: "s" })).toBe("/sessions/s");
    expect(evidencePath({ session_id: "s", is_gone: true })).toBeNull();
    expect(evidencePath({ session_id: null })).toBeNull();
  });
});

describe("counting", () => {
  it("counts badges by the tier they stand at", () => {
    expect(countByTier([BRONZE, OTHER, badge({ id: "c" })])).toEqual({ bronze: 1, clay: 1 });
  });

  it("finds what is nearest to its next tier", () => {
    const near = badge({ id: "near", progress: 9, next_threshold: 10 });
    const nearer = badge({ id: "nearer", progress: 99_999, next_threshold: 100_000 });
    const untouched = badge({ id: "untouched", progress: 0 });
    const done = badge({ id: "done", tier: "aether", progress: 5, next_threshold: null });
    const secret = badge({ id: "secret-1", state: "secret", progress: 0 });
    expect(closestBadges([near, untouched, done, secret, nearer]).map((one) => one.id)).toEqual(["nearer", "near"]);
    expect(closestBadges([near, nearer], 1)).toHaveLength(1);
    expect(progressShare(done)).toBe(1);
  });
});
