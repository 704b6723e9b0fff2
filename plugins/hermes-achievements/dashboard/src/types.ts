/** Types of the plugin's responses; see docs/reference/achievements.md. */

/** A tier: `colour` is for light backgrounds, `glow` for dark ones. */
export interface Tier {
  id: string;
  name: string;
  colour: string;
  glow: string;
}

export interface Category {
  id: string;
  name: string;
  text: string;
  order: number;
}

/** Tiers, categories and icons that responses refer to by id. */
export interface Catalogue {
  tiers: Tier[];
  categories: Category[];
  /** The content of 24 by 24 SVG icons. */
  icons: Record<string, string>;
}

/** A reached tier and the message that earned it. */
export interface Step {
  tier: string;
  value: number;
  at: number;
  session_id: string | null;
  message_id: number | null;
  title?: string | null;
  is_gone?: boolean;
}

/** A step with its badge, for the timeline. */
export interface TimelineStep extends Step {
  id: string;
  name: string;
  icon: string;
  category: string;
  is_first: boolean;
}

export type State = "unlocked" | "discovered" | "secret";

export interface Achievement {
  id: string;
  name: string;
  description: string;
  category: string;
  kind: string;
  icon: string;
  secret: boolean;
  state: State;
  unlocked: boolean;
  tier: string | null;
  tier_rank: number;
  tiers: { name: string; threshold: number }[];
  progress: number;
  progress_pct: number;
  next_tier: string | null;
  next_threshold: number | null;
  criteria: string;
  unit: string;
  unlocked_at?: number | null;
  tier_history?: Step[];
  evidence?: Partial<Step> | null;
}

export interface ScanStatus {
  state: "idle" | "running" | "failed";
  last_error: string | null;
  waiting_for: string | null;
  last_duration_ms: number | null;
  progress: { sessions: number; total: number; percent: number; seconds_left: number | null } | null;
}

export interface ScanMeta {
  mode: "pending" | "in_progress" | "full" | "incremental" | "failed";
  sessions_total: number;
  sessions_rescanned?: number;
  sessions_scanned_so_far?: number;
  sessions_expected_total?: number;
  seconds_left?: number | null;
  status: ScanStatus;
}

export interface AchievementsResponse {
  achievements: Achievement[];
  unlocked_count: number;
  discovered_count: number;
  secret_count: number;
  total_count: number;
  scan_id: string;
  error: string | null;
  is_stale: boolean;
  generated_at: number;
  scan_meta: ScanMeta;
}

export interface RescanResponse {
  unlocked_count: number;
  waiting_for: string | null;
  scan_meta: Omit<ScanMeta, "status">;
}

export interface Timeline {
  steps: TimelineStep[];
  inherited: Record<string, { unlocked_at?: number | null; first_tier?: string | null }>;
}

export interface RecapDay {
  day: string;
  messages: number;
  tool_calls: number;
}

export interface RankedItem {
  name: string;
  times: number;
}

export interface RecapSession {
  session_id: string;
  title: string;
  amount: number;
}

export interface PeriodChoice {
  id: string;
  name: string;
}

/** A slide of the story: one thought, without conversation titles. */
export interface RecapSlide {
  id: string;
  heading: string;
  figure: string;
  lines: string[];
  bars: { name: string; value: string; share: number }[];
}

export interface Recap {
  period: { kind: string; id: string; name: string; first: string; last: string };
  years: PeriodChoice[];
  months: PeriodChoice[];
  weeks: PeriodChoice[];
  slides: RecapSlide[];
  is_empty: boolean;
  summary: string;
  figures: { name: string; said: string }[];
  highlights: string[];
  days: RecapDay[];
  active_days: number;
  hours: number[];
  weekdays: number[];
  tools: RankedItem[];
  programs: RankedItem[];
  models: RankedItem[];
  longest_by_time: RecapSession | null;
  longest_by_calls: RecapSession | null;
  best_day: RecapDay | null;
  streak: { days: number; last_day: string } | null;
  tier_ups: (TimelineStep & { day: string })[];
}

/** A recap, or none if there is no activity or the scan is not complete. */
export type RecapResponse = Recap | { period: null; is_scanned: boolean };
