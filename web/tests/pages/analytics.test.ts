import { describe, expect, it } from "vitest";
import { csv } from "@/components/charts/csv";
import { highest } from "@/pages/analytics/HeatCharts";
import { change, dayText, firstDay, grouped, rangeOf } from "@/pages/analytics/ranges";

describe("ranges", () => {
  it("end today and count it", () => {
    expect(firstDay("7", new Date(2026, 10, 15))).toBe("2026-11-09");
    expect(firstDay("30", new Date(2026, 2, 1))).toBe("2026-01-31");
    expect(dayText(new Date(2026, 0, 5))).toBe("2026-01-05");
  });

  it("are 90 days where the address says nothing sensible", () => {
    expect(rangeOf("12")).toBe("90");
    expect(rangeOf("all")).toBe("all");
  });

  it("compare with before, unless there was nothing", () => {
    expect(change(112, 100)).toBe("+12%");
    expect(change(0, 100)).toBe("-100%");
    expect(change(5, 0)).toBeNull();
  });

  it("gather days when there are too many", () => {
    const days = Array.from({ length: 365 }, (_, index) => ({ day: String(index) }));
    const groups = grouped(days, 60);
    expect(groups.length).toBeLessThanOrEqual(60);
    expect(groups.flat()).toEqual(days);
  });
});

describe("a heat map", () => {
  it("is not paled by one wild day", () => {
    expect(highest([...Array<number>(99).fill(10), 5000])).toBe(10);
    expect(highest([])).toBe(1);
  });
});

describe("CSV", () => {
  it("quotes what needs it, and disarms formulas", () => {
    expect(
      csv({
        head: ["a", "b"],
        rows: [
          ['say "hi", you', 1.5],
          ["=cmd()", 2],
        ],
      }),
    ).toBe('a,b\r\n"say ""hi"", you",1.5\r\n\'=cmd(),2\r\n');
  });
});
