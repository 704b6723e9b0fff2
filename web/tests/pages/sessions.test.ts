import { describe, expect, it } from "vitest";
import { activeChips, hasSessionFilters, parseFilters, startOfDay, toQuery } from "@/pages/sessions/filters";
import { splitByMarks } from "@/pages/sessions/searchMarks";

describe("filters", () => {
  it("are read from an address, and nonsense is left out", () => {
    const search = { q: "oslo", state: "nowhere", hour: 9, pinned: "true", stranger: "x", model: "" };
    expect(parseFilters(search)).toEqual({ q: "oslo", hour: "9", pinned: true });
  });

  it("turn days into moments, the last day included", () => {
    const query = toQuery({ since: "2026-11-01", until: "2026-11-02", q: "x", tool: "terminal" });
    expect(query).toEqual({ since: startOfDay("2026-11-01"), until: startOfDay("2026-11-03"), tool: "terminal" });
  });

  it("that have no field are shown as chips", () => {
    expect(activeChips({ day: "2026-11-01", source: "cli", weekday: "0" })).toEqual([
      ["day", "2026-11-01"],
      ["weekday", "0"],
    ]);
  });

  it("other than the state narrow a list", () => {
    expect(hasSessionFilters({ state: "trash" })).toBe(false);
    expect(hasSessionFilters({ state: "trash", tag: "work" })).toBe(true);
  });
});

describe("marks", () => {
  it("cut a text where something was found", () => {
    expect(splitByMarks("one two", [[4, 7]])).toEqual([
      { at: 0, text: "one ", isMarked: false },
      { at: 4, text: "two", isMarked: true },
    ]);
  });

  it("count characters, not code units", () => {
    expect(splitByMarks("🙂🙂 ja", [[3, 5]]).map((one) => one.text)).toEqual(["🙂🙂 ", "ja"]);
  });

  it("that overlap or come out of order lose nothing", () => {
    const found = splitByMarks("abcdef", [
      [3, 5],
      [0, 2],
      [1, 4],
    ]);
    expect(found.map((one) => one.text).join("")).toBe("abcdef");
  });
});
