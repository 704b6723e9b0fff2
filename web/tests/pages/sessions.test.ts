import { describe, expect, it } from "vitest";
import {
  activeChips,
  hasSessionFilters,
  isSameView,
  parseFilters,
  startOfDay,
  toggleSort,
  toQuery,
} from "@/pages/sessions/filters";
import { splitByMarks } from "@/pages/sessions/searchMarks";
import { selectRange } from "@/pages/sessions/selection";

describe("filters", () => {
  it("ignore days and numbers that are none", () => {
    expect(parseFilters({ since: "abc", until: "2026-13-45", min_messages: "few" })).toEqual({});
    expect(parseFilters({ since: "2026-03-01", min_messages: "2" })).toEqual({
      since: "2026-03-01",
      min_messages: "2",
    });
  });

  it("are read from an address, and nonsense is left out", () => {
    const search = { q: "oslo", state: "nowhere", hour: 9, pinned: "true", stranger: "x", model: "" };
    expect(parseFilters(search)).toEqual({ q: "oslo", hour: "9", pinned: true });
  });

  it("turn days into moments, the last day included", () => {
    const query = toQuery({ since: "2026-11-01", until: "2026-11-02", q: "x", tool: "terminal" });
    expect(query).toEqual({ since: startOfDay("2026-11-01"), until: startOfDay("2026-11-03"), tool: "terminal" });
  });

  it("are shown as chips, except the search and the order", () => {
    expect(activeChips({ day: "2026-11-01", source: "cli", weekday: "0", q: "x", sort: "cost" })).toEqual([
      ["source", "cli"],
      ["day", "2026-11-01"],
      ["weekday", "0"],
    ]);
  });

  it("other than the state narrow a list", () => {
    expect(hasSessionFilters({ state: "trash" })).toBe(false);
    expect(hasSessionFilters({ state: "trash", tag: "work" })).toBe(true);
  });
});

describe("the order", () => {
  it("is largest first, then smallest first, and the default is not in the address", () => {
    expect(toggleSort({ q: "x" }, "cost")).toEqual({ q: "x", sort: "cost", order: undefined });
    expect(toggleSort({ sort: "cost" }, "cost")).toEqual({ sort: "cost", order: "asc" });
    expect(toggleSort({ sort: "cost", order: "asc" }, "last_active")).toEqual({ sort: undefined, order: undefined });
    expect(toggleSort({}, "last_active")).toEqual({ sort: undefined, order: "asc" });
    expect(parseFilters({ sort: "length", order: "up" })).toEqual({});
  });

  it("is part of a saved view", () => {
    expect(isSameView({ sort: "cost", q: undefined }, { sort: "cost" })).toBe(true);
    expect(isSameView({ sort: "cost" }, { sort: "cost", order: "asc" })).toBe(false);
  });
});

describe("a range", () => {
  const ids = ["a", "b", "c", "d"];

  it("goes from the last click to this one, in both directions", () => {
    expect([...selectRange(new Set(["a"]), ids, "c", "a")]).toEqual(["a", "b", "c"]);
    expect([...selectRange(new Set(["d"]), ids, "b", "d")]).toEqual(["d", "b", "c"]);
  });

  it("is removed by a click on a selected entry", () => {
    expect([...selectRange(new Set(ids), ids, "c", "b")]).toEqual(["a", "d"]);
  });

  it("is one entry without an earlier click, or when that is gone", () => {
    expect([...selectRange(new Set(), ids, "c", null)]).toEqual(["c"]);
    expect([...selectRange(new Set(), ids, "c", "x")]).toEqual(["c"]);
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
