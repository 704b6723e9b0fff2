/** Unlocks and tier-ups over time. */
import { formatMonth } from "./format";
import type { Achievement, AchievementsResponse, TimelineStep } from "./types";

/** All steps of all badges, newest first. */
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

/** The unique key of a step. */
export function stepKey(step: { id: string; tier: string }): string {
  return `${step.id} ${step.tier}`;
}

/**
 * The steps that were reached between two responses.
 *
 * Only complete responses are compared: during a first scan, old unlocks appear that are not new.
 */
export function findNewSteps(before: AchievementsResponse | null, after: AchievementsResponse): TimelineStep[] {
  if (before === null || !isComplete(before) || !isComplete(after)) return [];
  const known = new Set(sortSteps(before.achievements).map(stepKey));
  return sortSteps(after.achievements).filter((step) => !known.has(stepKey(step)));
}

/** Whether the response is the result of a complete scan. */
export function isComplete(response: AchievementsResponse): boolean {
  return response.scan_meta.mode === "full" || response.scan_meta.mode === "incremental";
}

export interface Month {
  name: string;
  steps: TimelineStep[];
}

/** Group steps by month, in their order. */
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

/** The number of badges per tier. */
export function countByTier(all: readonly Achievement[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) {
    if (one.unlocked && one.tier) counts[one.tier] = (counts[one.tier] ?? 0) + 1;
  }
  return counts;
}

/** The path of the message that earned a step; null if the session is deleted or unknown. */
export function evidencePath(step: { session_id?: string | null; message_id?: number | null; is_gone?: boolean }) {
  if (!step.session_id || step.is_gone) return null;
  const message = step.message_id ? `?message=${step.message_id}` : "";
  return `/sessions/${encodeURIComponent(step.session_id)}${message}`;
}
