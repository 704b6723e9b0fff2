import { describe, expect, it } from "vitest";
import {
  AFTER_PROBLEM_MS,
  observed,
  pollDelay,
  progressOf,
  type Sample,
  scanningOf,
  secondsLeft,
  WHILE_IDLE_MS,
  WHILE_SCANNING_MS,
  WHILE_STALE_MS,
} from "../../../plugins/hermes-achievements/dashboard/src/scanning";
import type { Answer } from "../../../plugins/hermes-achievements/dashboard/src/types";
import { answer } from "./made";

function running(mode: "full" | "in_progress", sessions = 0, total = 0): Answer {
  const made = answer([], mode);
  const progress = total ? { sessions, total, percent: 0, seconds_left: 4 } : null;
  made.scan_meta.status = { ...made.scan_meta.status, state: "running", progress };
  return made;
}

describe("how a scan is going", () => {
  it("is a first scan until something complete is known", () => {
    expect(scanningOf(answer([], "pending"))).toBe("first");
    expect(scanningOf(running("in_progress"))).toBe("first");
    expect(scanningOf(running("full"))).toBe("refresh");
    expect(scanningOf(answer([], "full"))).toBe("idle");
    expect(scanningOf(answer([], "failed"))).toBe("failed");
  });

  it("is looked at every second while it runs, and seldom when there is none", () => {
    expect(pollDelay(answer([], "pending"))).toBe(WHILE_SCANNING_MS);
    expect(pollDelay(running("full"))).toBe(WHILE_SCANNING_MS);
    expect(pollDelay(answer([], "full", { is_stale: true }))).toBe(WHILE_STALE_MS);
    expect(pollDelay(answer([], "full", { is_stale: true, error: "no disk" }))).toBe(AFTER_PROBLEM_MS);
    expect(pollDelay(answer([], "full"))).toBe(WHILE_IDLE_MS);
  });

  it("says how far it is, and rounds down so that 100 % is the end", () => {
    expect(progressOf(running("in_progress", 5999, 6000))).toEqual({
      done: 5999,
      total: 6000,
      percent: 99,
      secondsLeft: 4,
    });
  });

  it("knows how far another process is from the answer itself", () => {
    const made = answer([], "in_progress");
    made.scan_meta = { ...made.scan_meta, sessions_scanned_so_far: 30, sessions_expected_total: 40 };
    expect(progressOf(made)).toEqual({ done: 30, total: 40, percent: 75, secondsLeft: null });
  });

  it("says nothing before the size of the history is known, and after the end", () => {
    expect(progressOf(answer([], "pending"))).toBeNull();
    expect(progressOf(answer([], "full"))).toBeNull();
  });
});

describe("time left", () => {
  const watch = (...pairs: [number, number][]) =>
    pairs.reduce<Sample[]>((known, [at, done]) => observed(known, { at, done }), []);

  it("follows the speed that was seen", () => {
    expect(secondsLeft(watch([0, 0], [2, 100]), 600)).toBe(10);
  });

  it("is not guessed too early, nor when nothing moves", () => {
    expect(secondsLeft([], 10)).toBeNull();
    expect(secondsLeft(watch([0, 0], [1, 5]), 10)).toBeNull();
    expect(secondsLeft(watch([0, 5], [9, 5]), 10)).toBeNull();
  });

  it("forgets what was long ago, and everything when a scan begins anew", () => {
    expect(watch([0, 0], [10, 1], [25, 40]).map((one) => one.at)).toEqual([10, 25]);
    expect(watch([0, 50], [1, 3])).toEqual([{ at: 1, done: 3 }]);
  });
});
