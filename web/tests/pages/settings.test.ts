import { describe, expect, it } from "vitest";
import type { SettingItem } from "@/api/types";
import { groupOf, groupSettings, isAdvanced } from "@/pages/settings/groups";

const item = (name: string, rest: Partial<SettingItem> = {}) =>
  ({ name, help: `Help of ${name}.`, is_set: false, problem: null, ...rest }) as SettingItem;
const names = (found: [string, SettingItem[]][]) => found.flatMap(([, items]) => items.map((one) => one.name));

describe("settings", () => {
  it("are grouped by purpose, and a new one is listed too", () => {
    expect(groupOf("keys.telegram")).toBe("chats");
    expect(groupOf("keys.openai")).toBe("keys");
    expect(groupOf("gateway.user_dollars_per_day")).toBe("budgets");
    expect(groupOf("store.trash_days")).toBe("history");
    expect(groupOf("invented.setting")).toBe("other");
  });

  it("for internal tuning are shown on request, when they are set, and by a search", () => {
    const items = [item("store.trash_days"), item("store.busy_seconds"), item("log.level", { is_set: true })];
    expect(isAdvanced("store.trash_days")).toBe(false);
    expect(names(groupSettings(items, "", false))).toEqual(["store.trash_days", "log.level"]);
    expect(names(groupSettings(items, "", true))).toHaveLength(3);
    expect(names(groupSettings(items, "help BUSY", false))).toEqual(["store.busy_seconds"]);
  });
});
