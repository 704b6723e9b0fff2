/** Badges and responses for tests. */
import type {
  Achievement,
  AchievementsResponse,
  ScanMeta,
  Step,
} from "../../../plugins/hermes-achievements/dashboard/src/types";

export function badge(part: Partial<Achievement> & { id: string }): Achievement {
  const state = part.state ?? (part.tier ? "unlocked" : "discovered");
  return {
    name: part.id,
    description: `What ${part.id} is about.`,
    category: "craft",
    kind: "counter",
    icon: "award",
    secret: false,
    unlocked: state === "unlocked",
    tier: null,
    tier_rank: 0,
    tiers: [
      { name: "clay", threshold: 10 },
      { name: "bronze", threshold: 100 },
    ],
    progress: 0,
    progress_pct: 0,
    next_tier: "clay",
    next_threshold: 10,
    criteria: "Shell calls.",
    unit: "calls",
    ...part,
    state,
  };
}

export function step(tier: string, at: number, part: Partial<Step> = {}): Step {
  return { tier, at, value: 10, session_id: "s1", message_id: 7, title: "A talk", is_gone: false, ...part };
}

export function response(
  achievements: Achievement[],
  mode: ScanMeta["mode"] = "full",
  part: Partial<AchievementsResponse> = {},
): AchievementsResponse {
  const count = (state: string) => achievements.filter((one) => one.state === state).length;
  return {
    achievements,
    unlocked_count: count("unlocked"),
    discovered_count: count("discovered"),
    secret_count: count("secret"),
    total_count: achievements.length,
    scan_id: "scan",
    error: null,
    is_stale: false,
    generated_at: 1_790_000_000,
    scan_meta: {
      mode,
      sessions_total: 3,
      status: { state: "idle", last_error: null, waiting_for: null, last_duration_ms: 1, progress: null },
    },
    ...part,
  };
}
