import { describe, expect, it } from "vitest";
import { toCsv } from "@/components/charts/csv";
import { clippedMaximum, roundUp } from "@/components/charts/scale";
import { colorScaleMaximum } from "@/pages/analytics/HeatmapCharts";
import { filterQuery, formatChange, groupDays, parseRange, parseSearch, periodQuery } from "@/pages/analytics/ranges";

describe("ranges", () => {
  it("leave it to the server which day is today", () => {
    expect(periodQuery({ range: "7" })).toEqual({ days: "7" });
    expect(periodQuery({ range: "all" })).toEqual({ since: "2000-01-01" });
    const dates = { since: "2026-01-31", until: "2026-03-01" };
    expect(periodQuery({ range: "custom", ...dates })).toEqual(dates);
  });

  it("come with filters from the address", () => {
    const search = parseSearch({ range: "30", source: "cli", model: "gpt-5", person: 7 });
    expect(filterQuery(search)).toEqual({ source: "cli", only_model: "gpt-5", project: undefined, person: undefined });
  });

  it("are 90 days where the address says nothing sensible", () => {
    expect(parseRange("12")).toBe("90");
    expect(parseRange("all")).toBe("all");
  });

  it("compare with before, unless there was nothing", () => {
    expect(formatChange(112, 100)).toBe("+12%");
    expect(formatChange(0, 100)).toBe("-100%");
    expect(formatChange(5, 0)).toBeNull();
  });

  it("gather days when there are too many", () => {
    const days = Array.from({ length: 365 }, (_, index) => ({ day: String(index) }));
    const groups = groupDays(days, 60);
    expect(groups.length).toBeLessThanOrEqual(60);
    expect(groups.flat()).toEqual(days);
  });
});

describe("a heat map", () => {
  it("ignores a single outlier", () => {
    expect(colorScaleMaximum([...Array<number>(99).fill(10), 5000])).toBe(10);
    expect(colorScaleMaximum([])).toBe(1);
  });
});

describe("a scale", () => {
  it("ends above most values if one is extreme", () => {
    expect(clippedMaximum([...Array<number>(30).fill(90), 14_000])).toBe(200);
    expect(clippedMaximum(Array.from({ length: 30 }, (_, index) => index))).toBeNull();
    expect(clippedMaximum([1, 2, 5000])).toBeNull();
  });

  it("ends with a round number", () => {
    expect([0.03, 1, 1.1, 2.4, 312].map(roundUp)).toEqual([0.05, 1, 2, 2.5, 500]);
  });
});

describe("CSV", () => {
  it("quotes what needs it, and disarms formulas", () => {
    expect(
      toCsv({
        head: ["a", "b"],
        rows: [
          ['say "hi", you', 1.5],
          ["=cmd()", 2],
        ],
      }),
    ).toBe('a,b\r\n"say ""hi"", you",1.5\r\n\'=cmd(),2\r\n');
  });
});
