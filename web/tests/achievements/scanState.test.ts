import { describe, expect, it } from "vitest";
import {
  addSample,
  estimateSecondsLeft,
  POLL_ERROR_MS,
  POLL_IDLE_MS,
  POLL_SCANNING_MS,
  POLL_STALE_MS,
  pollDelay,
  type Sample,
  scanPhase,
  scanProgress,
} from "../../../plugins/hermes-achievements/dashboard/src/scanState";
import type { AchievementsResponse } from "../../../plugins/hermes-achievements/dashboard/src/types";
import { response } from "./fixtures";

function running(mode: "full" | "in_progress", sessions = 0, total = 0): AchievementsResponse {
  const made = response([], mode);
  const progress = total ? { sessions, total, percent: 0, seconds_left: 4 } : null;
  made.scan_meta.status = { ...made.scan_meta.status, state: "running", progress };
  return made;
}

describe("how a scan is going", () => {
  it("is a first scan until something complete is known", () => {
    expect(scanPhase(response([], "pending"))).toBe("first");
    expect(scanPhase(running("in_progress"))).toBe("first");
    expect(scanPhase(running("full"))).toBe("refresh");
    expect(scanPhase(response([], "full"))).toBe("idle");
    expect(scanPhase(response([], "failed"))).toBe("failed");
  });

  it("is polled every second while it runs, and rarely when idle", () => {
    expect(pollDelay(response([], "pending"))).toBe(POLL_SCANNING_MS);
    expect(pollDelay(running("full"))).toBe(POLL_SCANNING_MS);
    expect(pollDelay(response([], "full", { is_stale: true }))).toBe(POLL_STALE_MS);
    expect(pollDelay(response([], "full", { is_stale: true, error: "no disk" }))).toBe(POLL_ERROR_MS);
    expect(pollDelay(response([], "full"))).toBe(POLL_IDLE_MS);
  });

  it("reports its progress, and rounds down so that 100 % is the end", () => {
    expect(scanProgress(running("in_progress", 5999, 6000))).toEqual({
      done: 5999,
      total: 6000,
      percent: 99,
      secondsLeft: 4,
    });
  });

  it("reports the progress of another process", () => {
    const made = response([], "in_progress");
    made.scan_meta = { ...made.scan_meta, sessions_scanned_so_far: 30, sessions_expected_total: 40 };
    expect(scanProgress(made)).toEqual({ done: 30, total: 40, percent: 75, secondsLeft: null });
  });

  it("has no progress before the total is known and after the end", () => {
    expect(scanProgress(response([], "pending"))).toBeNull();
    expect(scanProgress(response([], "full"))).toBeNull();
  });
});

describe("time left", () => {
  const watch = (...pairs: [number, number][]) =>
    pairs.reduce<Sample[]>((known, [at, done]) => addSample(known, { at, done }), []);

  it("follows the observed speed", () => {
    expect(estimateSecondsLeft(watch([0, 0], [2, 100]), 600)).toBe(10);
  });

  it("is not guessed too early, nor when nothing moves", () => {
    expect(estimateSecondsLeft([], 10)).toBeNull();
    expect(estimateSecondsLeft(watch([0, 0], [1, 5]), 10)).toBeNull();
    expect(estimateSecondsLeft(watch([0, 5], [9, 5]), 10)).toBeNull();
  });

  it("drops old samples, and all samples when a scan restarts", () => {
    expect(watch([0, 0], [10, 1], [25, 40]).map((one) => one.at)).toEqual([10, 25]);
    expect(watch([0, 50], [1, 3])).toEqual([{ at: 1, done: 3 }]);
  });
});
