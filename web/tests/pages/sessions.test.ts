import { describe, expect, it } from "vitest";
import { findText, splitByMarks } from "@/components/searchMarks";
import {
  activeChips,
  dayBefore,
  hasSessionFilters,
  isSameView,
  parseFilters,
  startOfDay,
  toggleSort,
  toQuery,
  toSearchQuery,
  withoutFilters,
} from "@/pages/sessions/filters";
import { selectRange } from "@/pages/sessions/selection";
import { periodsOf } from "@/pages/sessions/timeline";

describe("filters", () => {
  it("of a search are those of the list, and its own order and author", () => {
    const filters = parseFilters({
      q: "oslo",
      by: "rank",
      role: "user",
      sort: "tokens",
      state: "trash",
      tools: "true",
    });
    expect(toSearchQuery(filters)).toMatchObject({ q: "oslo", sort: "rank", role: "user", with_tools: true });
    expect(toSearchQuery(filters).state).toBeUndefined();
    expect(toQuery(filters)).not.toHaveProperty("role");
    expect(parseFilters({ by: "luck", role: "cat" })).toEqual({});
    expect(withoutFilters(filters)).toEqual({ q: "oslo", by: "rank", sort: "tokens", state: "trash" });
  });

  it("name days in local time", () => {
    expect(dayBefore(6, new Date(2026, 2, 3, 23, 59))).toBe("2026-02-25");
  });

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

describe("what the transcript of a result searches for", () => {
  it("are the words as they were found, without those that contain another", () => {
    const hits: { snippet: string; marks: [number, number][] }[] = [
      { snippet: "Fixed it", marks: [[0, 5]] },
      {
        snippet: "to fix bugs",
        marks: [
          [3, 6],
          [7, 11],
        ],
      },
    ];
    expect(findText(hits)).toBe("fix OR bugs");
    expect(findText([])).toBe("");
  });

  it("are phrases for marks of several words", () => {
    expect(findText([{ snippet: 'a "b c" d', marks: [[3, 6]] }])).toBe('"b c"');
  });
});

describe("the time line of hits", () => {
  const day = (text: string, hits = 1) => ({ day: text, hits });

  it("has a bar for each day of some weeks, also for days without hits", () => {
    expect(periodsOf([day("2026-02-27", 2), day("2026-03-01")], 45)).toEqual([
      { since: "2026-02-27", until: "2026-02-27", hits: 2 },
      { since: "2026-02-28", until: "2026-02-28", hits: 0 },
      { since: "2026-03-01", until: "2026-03-01", hits: 1 },
    ]);
    expect(periodsOf([], 45)).toEqual([]);
  });

  it("sums up longer times by weeks, months, quarters and years", () => {
    const weeks = periodsOf([day("2026-01-01"), day("2026-01-04"), day("2026-06-30")], 45);
    expect(weeks[0]).toEqual({ since: "2025-12-29", until: "2026-01-04", hits: 2 });
    expect(weeks.at(-1)).toEqual({ since: "2026-06-29", until: "2026-07-05", hits: 1 });
    const months = periodsOf([day("2024-01-15"), day("2026-02-28")], 45);
    expect(months[0]).toEqual({ since: "2024-01-01", until: "2024-01-31", hits: 1 });
    expect(months.at(-1)).toEqual({ since: "2026-02-01", until: "2026-02-28", hits: 1 });
    expect(months).toHaveLength(26);
    expect(periodsOf([day("2019-05-05"), day("2026-02-28")], 45)[0]?.until).toBe("2019-06-30");
    expect(periodsOf([day("2000-05-05"), day("2026-02-28")], 45)[0]?.until).toBe("2000-12-31");
  });

  it("has at most as many bars as fit", () => {
    expect(periodsOf([day("2026-01-01"), day("2026-01-20")], 20)).toHaveLength(20);
    expect(periodsOf([day("2026-01-01"), day("2026-01-21")], 20)).toHaveLength(4);
    expect(periodsOf([day("1990-01-01"), day("2026-01-21")], 20)).toHaveLength(20);
  });

  it("leaves out times that no message can have", () => {
    expect(periodsOf([day("0001-01-01"), day("2026-03-01"), day("9999-12-31")], 45)).toHaveLength(1);
  });
});
