import { describe, expect, it } from "vitest";
import type { PluginTab } from "@/api/types";
import { isActivePath, orderTabs, type Tab } from "@/app/tabs";

const tab = (id: string): Tab => ({ id, path: `/${id}`, label: id, icon: "" });
const plugin = (name: string, position: string, rest: Partial<PluginTab> = {}) =>
  ({
    name,
    label: name,
    icon: "",
    error: null,
    tab: { path: `/${name}`, position, override: null, hidden: false },
    ...rest,
  }) as PluginTab;

describe("tabs", () => {
  const own = [tab("a"), tab("b")];
  const ids = (plugins: PluginTab[]) => orderTabs(own, plugins).map((one) => one.id);

  it("of plugins stand where they ask to", () => {
    expect(ids([plugin("p", "after:a"), plugin("q", "before:a"), plugin("r", "end")])).toEqual([
      "q",
      "a",
      "p",
      "b",
      "r",
    ]);
  });

  it("of plugins that ask for a place that does not exist stand at the end", () => {
    expect(ids([plugin("p", "after:nowhere")])).toEqual(["a", "b", "p"]);
  });

  it("that are hidden, stand in for a page or are broken are left out", () => {
    const place = { path: "/p", position: "end", override: null, hidden: true };
    expect(ids([plugin("p", "end", { tab: place }), plugin("q", "end", { error: "broken" })])).toEqual(["a", "b"]);
  });

  it("are here for the pages below them", () => {
    expect(isActivePath("/", "/sessions")).toBe(false);
    expect(isActivePath("/sessions", "/sessions/1")).toBe(true);
    expect(isActivePath("/sess", "/sessions")).toBe(false);
  });
});
