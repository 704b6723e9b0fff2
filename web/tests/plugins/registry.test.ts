import { describe, expect, it, vi } from "vitest";
import { Registry } from "@/plugins/registry";

const Nothing = () => null;

describe("plugins", () => {
  it("register a page and notify subscribers", () => {
    const registry = new Registry();
    const listener = vi.fn();
    registry.subscribe(listener);
    registry.register("mine", Nothing);
    expect(registry.page("mine")).toBe(Nothing);
    expect(listener).toHaveBeenCalledOnce();
  });

  it("fill a slot once each", () => {
    const registry = new Registry();
    registry.registerSlot("mine", "sidebar", Nothing);
    registry.registerSlot("mine", "sidebar", Nothing);
    registry.registerSlot("other", "sidebar", Nothing);
    expect(registry.slot("sidebar").map(([plugin]) => plugin)).toEqual(["mine", "other"]);
  });
});
