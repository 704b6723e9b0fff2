/** How a scan is going, and when to look again. */
import type { Answer } from "./types";
import { isComplete } from "./unlocks";

export const WHILE_SCANNING_MS = 1000;
export const WHILE_STALE_MS = 2000;
export const WHILE_IDLE_MS = 20_000;
export const AFTER_PROBLEM_MS = 5000;

const OBSERVED_SECONDS = 20;
const FEWEST_SECONDS = 1.5; // of watching, before a guess is believable

/** `first`: nothing complete is known yet. `refresh`: what is new is being read. */
export type Scanning = "first" | "refresh" | "failed" | "idle";

export function scanningOf(answer: Answer): Scanning {
  const { mode, status } = answer.scan_meta;
  if (mode === "pending" || mode === "in_progress") return "first";
  if (mode === "failed") return "failed";
  return status.state === "running" ? "refresh" : "idle";
}

/** How long to wait before looking again. */
export function pollDelay(answer: Answer): number {
  const scanning = scanningOf(answer);
  if (scanning === "first" || scanning === "refresh") return WHILE_SCANNING_MS;
  if (answer.error) return AFTER_PROBLEM_MS;
  return answer.is_stale ? WHILE_STALE_MS : WHILE_IDLE_MS;
}

export interface Progress {
  done: number;
  total: number;
  percent: number;
  secondsLeft: number | null;
}

/** How far the scan is; null while nobody knows how much there is to do. */
export function progressOf(answer: Answer): Progress | null {
  const { scan_meta: meta } = answer;
  const { progress } = meta.status;
  const total = progress?.total ?? meta.sessions_expected_total ?? 0;
  if (isComplete(answer) && !progress) return null;
  if (total <= 0) return null;
  const done = Math.min(total, Math.max(progress?.sessions ?? 0, meta.sessions_scanned_so_far ?? 0));
  const secondsLeft = progress?.seconds_left ?? meta.seconds_left ?? null;
  return { done, total, percent: Math.floor((100 * done) / total), secondsLeft };
}

/** How many sessions were read at a moment, in seconds. */
export interface Sample {
  at: number;
  done: number;
}

/** The samples that say how fast it goes now; a scan that starts anew forgets the last one. */
export function observed(samples: readonly Sample[], next: Sample): Sample[] {
  const isAnew = next.done < (samples.at(-1)?.done ?? 0);
  const kept = isAnew ? [] : samples.filter((one) => next.at - one.at <= OBSERVED_SECONDS);
  return [...kept, next];
}

/** Seconds until all are read, at the speed that was observed; null when that is not known yet. */
export function secondsLeft(samples: readonly Sample[], total: number): number | null {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last.at - first.at < FEWEST_SECONDS) return null;
  const speed = (last.done - first.done) / (last.at - first.at);
  return speed > 0 ? (total - last.done) / speed : null;
}
