/** Unlocks and tier-ups over time. */
import { month } from "./format";
import type { Achievement, Answer, TimelineStep } from "./types";

/** Every step of every badge, the latest first. */
export function stepsOf(all: readonly Achievement[]): TimelineStep[] {
  return all
    .flatMap((one) =>
      (one.tier_history ?? []).map((step, number) => ({
        ...step,
        id: one.id,
        name: one.name,
        icon: one.icon,
        category: one.category,
        is_first: number === 0,
      })),
    )
    .sort((a, b) => b.at - a.at || b.value - a.value || a.id.localeCompare(b.id, "en"));
}

/** What names a step among all others. */
export function keyOf(step: { id: string; tier: string }): string {
  return `${step.id} ${step.tier}`;
}

/**
 * What was reached between two answers.
 *
 * Only complete answers can be compared: while a first scan runs, badges are found, not earned.
 */
export function newSteps(before: Answer | null, after: Answer): TimelineStep[] {
  if (before === null || !isComplete(before) || !isComplete(after)) return [];
  const known = new Set(stepsOf(before.achievements).map(keyOf));
  return stepsOf(after.achievements).filter((step) => !known.has(keyOf(step)));
}

/** Whether everything was read when this was made. */
export function isComplete(answer: Answer): boolean {
  return answer.scan_meta.mode === "full" || answer.scan_meta.mode === "incremental";
}

export interface Month {
  name: string;
  steps: TimelineStep[];
}

/** Steps by the month they were made in; the order stays. */
export function byMonth(steps: readonly TimelineStep[], locale = "en"): Month[] {
  const months = new Map<string, TimelineStep[]>();
  for (const step of steps) {
    const name = month(step.at, locale);
    const known = months.get(name);
    if (known) known.push(step);
    else months.set(name, [step]);
  }
  return [...months].map(([name, found]) => ({ name, steps: found }));
}

/** How many badges stand at each tier. */
export function tierCounts(all: readonly Achievement[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) {
    if (one.unlocked && one.tier) counts[one.tier] = (counts[one.tier] ?? 0) + 1;
  }
  return counts;
}

/** The page of the message that did it; null when the conversation is gone or was never known. */
export function addressOf(step: { session_id?: string | null; message_id?: number | null; is_gone?: boolean }) {
  if (!step.session_id || step.is_gone) return null;
  const message = step.message_id ? `?message=${step.message_id}` : "";
  return `/sessions/${encodeURIComponent(step.session_id)}${message}`;
}
