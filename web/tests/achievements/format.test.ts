import { describe, expect, it } from "vitest";
import {
  formatCalendarDay,
  formatDay,
  formatDuration,
  formatNumber,
  monthName,
  weekdayName,
} from "../../../plugins/hermes-achievements/dashboard/src/format";
import {
  buildCells,
  isWeekStrip,
  monthStarts,
  weekdayOf,
} from "../../../plugins/hermes-achievements/dashboard/src/heatGrid";
import { TEXTS } from "../../../plugins/hermes-achievements/dashboard/src/texts";

describe("numbers and times", () => {
  it("have thousands separators and are compact when large", () => {
    expect([0, 1234, 99_999, 259_958, 31_100_000].map((one) => formatNumber(one))).toEqual([
      "0",
      "1,234",
      "99,999",
      "260K",
      "31.1M",
    ]);
  });

  it("are formatted with units", () => {
    expect([0, 45, 60, 754, 3600, 12_000].map(formatDuration)).toEqual([
      "1 s",
      "45 s",
      "1 min",
      "12 min",
      "1 h",
      "3 h 20 min",
    ]);
    expect(formatDay(Date.UTC(2026, 10, 15, 12) / 1000)).toBe("15 Nov 2026");
    expect(formatCalendarDay("2026-11-15")).toMatch(/^Sunday,? 15 November$/);
    expect(monthName(0)).toBe("Jan");
    expect([weekdayName(0), weekdayName(6, "long")]).toEqual(["Mon", "Sunday"]);
  });
});

describe("days on a grid", () => {
  const days = (first: string, counts: number[]) =>
    counts.map((messages, number) => {
      const at = new Date(Date.parse(`${first}T00:00:00Z`) + number * 86_400_000);
      return { day: at.toISOString().slice(0, 10), messages, tool_calls: 0 };
    });

  it("stand in the column of their week and the row of their weekday", () => {
    expect(weekdayOf("2026-11-15")).toBe(6);
    const [sunday, monday] = buildCells(days("2026-11-15", [1, 1]));
    expect([sunday?.week, sunday?.weekday, monday?.week, monday?.weekday]).toEqual([0, 6, 1, 0]);
  });

  it("have the level of their quartile", () => {
    expect(buildCells(days("2026-01-05", [0, 1, 2, 3, 4, 100])).map((one) => one.level)).toEqual([0, 1, 1, 2, 3, 4]);
    expect(buildCells(days("2026-01-05", [0, 0])).map((one) => one.level)).toEqual([0, 0]);
    expect(buildCells([])).toEqual([]);
  });

  it("are a calendar for a month and a strip for a year", () => {
    expect(isWeekStrip(days("2026-01-01", Array(31).fill(1)))).toBe(false);
    const year = days("2026-01-01", Array(365).fill(1));
    expect(isWeekStrip(year)).toBe(true);
    expect(monthStarts(buildCells(year)).map((one) => one.month)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });
});

describe("texts", () => {
  it("have the same keys in every language", () => {
    const keys = Object.keys(TEXTS.en ?? {}).sort();
    expect(keys.length).toBeGreaterThan(50);
    for (const words of Object.values(TEXTS)) expect(Object.keys(words).sort()).toEqual(keys);
  });

  it("report the progress of a scan", () => {
    expect(TEXTS.en?.scanned("1,200", "6,000", "20")).toBe("Scanned 1,200 of 6,000 sessions · 20 %");
  });
});
