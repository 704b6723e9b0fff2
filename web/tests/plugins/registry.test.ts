import { describe, expect, it, vi } from "vitest";
import { Registry } from "@/plugins/registry";

const Nothing = () => null;

describe("plugins", () => {
  it("hand over their page, and whoever looks is told", () => {
    const registry = new Registry();
    const heard = vi.fn();
    registry.subscribe(heard);
    registry.register("mine", Nothing);
    expect(registry.page("mine")).toBe(Nothing);
    expect(heard).toHaveBeenCalledOnce();
  });

  it("fill a slot once each", () => {
    const registry = new Registry();
    registry.registerSlot("mine", "sidebar", Nothing);
    registry.registerSlot("mine", "sidebar", Nothing);
    registry.registerSlot("other", "sidebar", Nothing);
    expect(registry.slot("sidebar").map(([plugin]) => plugin)).toEqual(["mine", "other"]);
  });
});
