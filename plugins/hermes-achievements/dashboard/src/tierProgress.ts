/** Progress of badges towards their next tier. */
import type { Achievement } from "./types";

export const MAX_CLOSEST_BADGES = 6;

/** The badges with some progress that are closest to their next tier. */
export function closestBadges(all: readonly Achievement[], limit = MAX_CLOSEST_BADGES): Achievement[] {
  return all
    .filter((one) => one.state !== "secret" && one.next_threshold !== null && one.progress > 0)
    .sort((a, b) => progressShare(b) - progressShare(a) || (a.next_threshold ?? 0) - (b.next_threshold ?? 0))
    .slice(0, limit);
}

/** The reached fraction of the next threshold. */
export function progressShare(one: Achievement): number {
  return one.next_threshold ? Math.min(1, one.progress / one.next_threshold) : 1;
}
