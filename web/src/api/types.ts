/** What the server answers with. */

export interface SessionItem {
  id: string;
  title: string | null;
  preview: string;
  source: string;
  model: string | null;
  started_at: number;
  last_active: number;
  ended_at: number | null;
  end_reason: string | null;
  message_count: number;
  tool_call_count: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  cwd: string | null;
  pinned: boolean;
  archived: boolean;
  unread: boolean;
  tags: string[];
  kind: string;
  parent_id: string | null;
  is_open: boolean;
  is_running: boolean;
  trashed_at: number | null;
}

export interface SessionPage {
  items: SessionItem[];
  next: string | null;
  total: number | null;
}

export interface SessionDetail extends SessionItem {
  root_id: string;
  system_prompt: string | null;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  api_call_count: number;
  session_key: string | null;
  git_branch: string | null;
  resume_command: string;
  rows: string[];
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface Message {
  id: number;
  session_id: string;
  role: "user" | "assistant" | "tool" | "system";
  text: string;
  reasoning: string | null;
  tool_calls: ToolCall[];
  tool_call_id: string | null;
  tool_name: string | null;
  is_failure: boolean | null;
  timestamp: number;
  finish_reason: string | null;
  token_count: number | null;
  state: "active" | "undone" | "compacted";
  images: string[];
  model: string | null;
}

export interface MessagePage {
  items: Message[];
  has_before: boolean;
  has_after: boolean;
}

export interface Facet {
  name: string;
  count: number;
}

export interface Facets {
  sources: Facet[];
  models: Facet[];
  tags: Facet[];
  counts: { active: number; archived: number; trash: number };
}

export interface Progress {
  done: number;
  total: number;
}

export interface SearchHit {
  session_id: string;
  session_title: string | null;
  source: string;
  message_id: number;
  role: string;
  timestamp: number;
  snippet: string;
  marks: [number, number][];
}

export interface SearchPage {
  items: SearchHit[];
  has_more: boolean;
  progress: Progress | null;
}

export interface TreeNode {
  id: string;
  title: string | null;
  preview: string;
  kind: string;
  parent_id: string | null;
  started_at: number;
  last_active: number;
  message_count: number;
  is_current: boolean;
}

export interface BulkResult {
  done: string[];
  failed: { id: string; detail: string }[];
}

export interface Totals {
  sessions: number;
  messages: number;
  tool_calls: number;
  tool_failures: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cost_usd: number;
  active_days: number;
  active_seconds: number;
}

export interface AnalyticsDay {
  day: string;
  sessions: number;
  messages: number;
  tool_calls: number;
  tool_failures: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
}

export interface Analytics {
  since: string;
  until: string;
  zone: string;
  is_complete: boolean;
  progress: Progress | null;
  totals: Totals;
  before: Totals;
  days: AnalyticsDay[];
  hours: number[][];
  models: {
    model: string;
    sessions: number;
    input_tokens: number;
    output_tokens: number;
    cost_usd: number;
    days: Record<string, { tokens: number; cost_usd: number }>;
  }[];
  sources: { source: string; sessions: number; messages: number; tokens: number; cost_usd: number }[];
  tools: { tool: string; calls: number; failures: number; sessions: number }[];
  lengths: { label: string; min: number; max: number | null; sessions: number }[];
  durations: { label: string; min_seconds: number; max_seconds: number | null; sessions: number }[];
}

export interface Calendar {
  first: string;
  last: string;
  days: { day: string; messages: number; tool_calls: number; sessions: number }[];
}

export interface Overview {
  today: { sessions: number; messages: number; tool_calls: number; tokens: number; cost_usd: number };
  streak: { days: number; longest: number; last_day: string | null; is_today_done: boolean };
  recent: SessionItem[];
  running: SessionItem[];
  week: { day: string; messages: number }[];
  history: { sessions: number; messages: number; first_started_at: number | null; database_bytes: number };
  gateway: { is_running: boolean; platforms: { name: string; state: string }[]; waiting: number };
  health: { status: "ok" | "attention"; notes: string[] };
  version: string;
  home: string;
  is_demo: boolean;
}

export interface PluginTab {
  name: string;
  label: string;
  description: string;
  icon: string;
  version: string;
  tab: { path: string; position: string; override: string | null; hidden: boolean };
  slots: string[];
  entry: string;
  css: string | null;
  has_api: boolean;
  source: "bundled" | "user";
  error: string | null;
}
