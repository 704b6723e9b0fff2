import type { Tab } from "../tabs";

/** The second key of `g …` for each page; pages of other plugins are reached with the palette. */
const PAGE_KEYS: Record<string, string> = {
  overview: "o",
  chat: "c",
  sessions: "s",
  ask: "q",
  edits: "f",
  analytics: "a",
  "hermes-achievements": "b",
  memory: "m",
  schedules: "j",
  gateway: "g",
  models: "i",
  mcp: "t",
  hooks: "h",
  permissions: "r",
  data: "d",
  logs: "l",
  plugins: "p",
  settings: "e",
};

/** A page and its key. */
export interface PageKey {
  key: string;
  tab: Tab;
}

/** The pages that have a key, in the order of the navigation. */
export function pageKeys(tabs: readonly Tab[]): PageKey[] {
  return tabs.flatMap((tab) => {
    const key = PAGE_KEYS[tab.id];
    return key ? [{ key, tab }] : [];
  });
}
