import { describe, expect, it } from "vitest";
import { toCsv } from "@/components/charts/csv";
import { colorScaleMaximum } from "@/pages/analytics/HeatmapCharts";
import { firstDayOf, formatChange, groupDays, parseRange, toIsoDay } from "@/pages/analytics/ranges";

describe("ranges", () => {
  it("end today and count it", () => {
    expect(firstDayOf("7", new Date(2026, 10, 15))).toBe("2026-11-09");
    expect(firstDayOf("30", new Date(2026, 2, 1))).toBe("2026-01-31");
    expect(toIsoDay(new Date(2026, 0, 5))).toBe("2026-01-05");
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
