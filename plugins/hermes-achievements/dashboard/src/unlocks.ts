/** Unlocks and tier-ups over time. */
import { formatMonth } from "./format";
import type { Achievement, AchievementsResponse, TimelineStep } from "./types";

/** Every step of every badge, the latest first. */
export function sortSteps(all: readonly Achievement[]): TimelineStep[] {
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
export function stepKey(step: { id: string; tier: string }): string {
  return `${step.id} ${step.tier}`;
}

/**
 * What was reached between two answers.
 *
 * Only complete answers can be compared: while a first scan runs, badges are found, not earned.
 */
export function findNewSteps(before: AchievementsResponse | null, after: AchievementsResponse): TimelineStep[] {
  if (before === null || !isComplete(before) || !isComplete(after)) return [];
  const known = new Set(sortSteps(before.achievements).map(stepKey));
  return sortSteps(after.achievements).filter((step) => !known.has(stepKey(step)));
}

/** Whether everything was read when this was made. */
export function isComplete(response: AchievementsResponse): boolean {
  return response.scan_meta.mode === "full" || response.scan_meta.mode === "incremental";
}

export interface Month {
  name: string;
  steps: TimelineStep[];
}

/** Steps by the month they were made in; the order stays. */
export function groupByMonth(steps: readonly TimelineStep[], locale = "en"): Month[] {
  const months = new Map<string, TimelineStep[]>();
  for (const step of steps) {
    const name = formatMonth(step.at, locale);
    const known = months.get(name);
    if (known) known.push(step);
    else months.set(name, [step]);
  }
  return [...months].map(([name, found]) => ({ name, steps: found }));
}

/** How many badges stand at each tier. */
export function countByTier(all: readonly Achievement[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) {
    if (one.unlocked && one.tier) counts[one.tier] = (counts[one.tier] ?? 0) + 1;
  }
  return counts;
}

/** The page of the message that did it; null when the conversation is gone or was never known. */
export function evidencePath(step: { session_id?: string | null; message_id?: number | null; is_gone?: boolean }) {
  if (!step.session_id || step.is_gone) return null;
  const message = step.message_id ? `?message=${step.message_id}` : "";
  return `/sessions/${encodeURIComponent(step.session_id)}${message}`;
}
