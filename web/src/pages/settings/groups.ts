import type { SettingItem } from "@/api/types";

/** What a person wants to do; the titles are in the texts. */
export type GroupName =
  | "model"
  | "keys"
  | "permissions"
  | "agent"
  | "chats"
  | "budgets"
  | "history"
  | "files"
  | "display"
  | "dashboard"
  | "other";

/** Names or beginnings of names; the first group that matches has the setting. */
const GROUPS: [GroupName, string[]][] = [
  ["chats", ["keys.telegram", "keys.matrix", "keys.email", "keys.discord", "keys.slack", "keys.webhook"]],
  ["chats", ["keys.api_server", "keys.transcribe", "session_reset."]],
  ["budgets", ["gateway.user_", "gateway.dollars", "gateway.tokens"]],
  ["chats", ["gateway."]],
  ["model", ["llm."]],
  ["keys", ["keys."]],
  ["permissions", ["agent.approvals", "agent.allowed_hosts", "web.private_hosts", "plugins."]],
  ["agent", ["agent.", "web.", "memory."]],
  ["history", ["store.trash_days", "sessions.", "media.", "import.", "search."]],
  ["files", ["checkpoints."]],
  ["display", ["display.", "tui.", "achievements."]],
  ["dashboard", ["dashboard."]],
];

const ORDER: GroupName[] = [
  "model",
  "keys",
  "permissions",
  "agent",
  "chats",
  "budgets",
  "history",
  "files",
  "display",
  "dashboard",
  "other",
];

/** Internal tuning: the defaults are right for nearly everyone. */
const ADVANCED = [
  "store.",
  "log.",
  "search.",
  "llm.api",
  "llm.window",
  "llm.max_",
  "agent.max_steps",
  "agent.idle_seconds",
  "agent.turn_seconds",
  "gateway.attempts",
  "gateway.drain_seconds",
  "gateway.http_",
  "gateway.session_store",
  "gateway.workspace_is_shared",
  "gateway.max_concurrent",
  "import.idle_minutes",
  "checkpoints.max_",
  "checkpoints.min_",
  "dashboard.trusted_proxies",
  "plugins.disabled",
];
const ORDINARY = ["store.trash_days"];

const startsWith = (name: string, starts: string[]) => starts.some((start) => name.startsWith(start));

/** The group of a setting; a setting that no group names is still listed. */
export function groupOf(name: string): GroupName {
  return GROUPS.find(([, starts]) => startsWith(name, starts))?.[0] ?? "other";
}

/** Whether a setting is internal tuning. */
export function isAdvanced(name: string): boolean {
  return startsWith(name, ADVANCED) && !startsWith(name, ORDINARY);
}

/** The settings to show, by group: those that match a query, or the ordinary ones. */
export function groupSettings(
  items: SettingItem[],
  query: string,
  withAdvanced: boolean,
): [GroupName, SettingItem[]][] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = items.filter((item) => {
    const text = `${item.name} ${item.help}`.toLowerCase();
    if (words.length > 0) return words.every((word) => text.includes(word));
    return withAdvanced || !isAdvanced(item.name) || item.is_set || item.problem !== null;
  });
  return ORDER.map((group): [GroupName, SettingItem[]] => [
    group,
    shown.filter((item) => groupOf(item.name) === group),
  ]).filter(([, found]) => found.length > 0);
}
