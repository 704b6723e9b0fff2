/** The state of a scan and the polling interval. */
import type { AchievementsResponse } from "./types";
import { isComplete } from "./unlocks";

export const POLL_SCANNING_MS = 1000;
export const POLL_STALE_MS = 2000;
export const POLL_IDLE_MS = 20_000;
export const POLL_ERROR_MS = 5000;

const SAMPLE_WINDOW_SECONDS = 20;
const MIN_SAMPLE_SECONDS = 1.5; // the minimum for an estimate

/** `first`: no complete result exists yet. `refresh`: an incremental scan is running. */
export type ScanPhase = "first" | "refresh" | "failed" | "idle";

export function scanPhase(response: AchievementsResponse): ScanPhase {
  const { mode, status } = response.scan_meta;
  if (mode === "pending" || mode === "in_progress") return "first";
  if (mode === "failed") return "failed";
  return status.state === "running" ? "refresh" : "idle";
}

/** The delay before the next poll. */
export function pollDelay(response: AchievementsResponse): number {
  const scanning = scanPhase(response);
  if (scanning === "first" || scanning === "refresh") return POLL_SCANNING_MS;
  if (response.error) return POLL_ERROR_MS;
  return response.is_stale ? POLL_STALE_MS : POLL_IDLE_MS;
}

export interface Progress {
  done: number;
  total: number;
  percent: number;
  secondsLeft: number | null;
}

/** The progress of the scan; null while the total is unknown. */
export function scanProgress(response: AchievementsResponse): Progress | null {
  const { scan_meta: meta } = response;
  const { progress } = meta.status;
  const total = progress?.total ?? meta.sessions_expected_total ?? 0;
  if (isComplete(response) && !progress) return null;
  if (total <= 0) return null;
  const done = Math.min(total, Math.max(progress?.sessions ?? 0, meta.sessions_scanned_so_far ?? 0));
  const secondsLeft = progress?.seconds_left ?? meta.seconds_left ?? null;
  return { done, total, percent: Math.floor((100 * done) / total), secondsLeft };
}

/** The number of scanned sessions at a time in seconds. */
export interface Sample {
  at: number;
  done: number;
}

/** Add a sample and drop old ones; a restarted scan drops all. */
export function addSample(samples: readonly Sample[], next: Sample): Sample[] {
  const isRestarted = next.done < (samples.at(-1)?.done ?? 0);
  const kept = isRestarted ? [] : samples.filter((one) => next.at - one.at <= SAMPLE_WINDOW_SECONDS);
  return [...kept, next];
}

/** Seconds left at the observed speed; null if unknown. */
export function estimateSecondsLeft(samples: readonly Sample[], total: number): number | null {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last.at - first.at < MIN_SAMPLE_SECONDS) return null;
  const speed = (last.done - first.done) / (last.at - first.at);
  return speed > 0 ? (total - last.done) / speed : null;
}
