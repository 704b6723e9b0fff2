import { describe, expect, it } from "vitest";
import {
  formatBytes,
  formatCompact,
  formatDateTime,
  formatDay,
  formatDollars,
  formatDuration,
  formatInteger,
  formatPercent,
  formatRelativeTime,
  formatTime,
} from "@/i18n/format";

describe("formatting of", () => {
  it("numbers", () => {
    expect([formatCompact(1_200_000), formatCompact(1_500_000)]).toEqual(["1.2M", "1.5M"]);
    expect([formatCompact(999), formatCompact(1234), formatCompact(259_958), formatInteger(1234567)]).toEqual([
      "999",
      "1.2K",
      "260K",
      "1,234,567",
    ]);
  });

  it("money, small amounts with their digits", () => {
    expect([formatDollars(0), formatDollars(0.0042), formatDollars(41.654)]).toEqual(["$0.00", "$0.004", "$41.65"]);
  });

  it("fractions", () => {
    expect([formatPercent(0.034), formatPercent(0.5)]).toEqual(["3.4%", "50%"]);
  });

  it("how long ago", () => {
    const now = 1_000_000_000;
    expect([
      formatRelativeTime(now - 5, now),
      formatRelativeTime(now - 300, now),
      formatRelativeTime(now - 86_400, now),
      formatRelativeTime(now - 40 * 86_400, now),
    ]).toEqual(["just now", "5 minutes ago", "yesterday", "last month"]);
  });

  it("days ago, by the calendar", () => {
    const at = (day: number, hour: number) => new Date(2026, 10, day, hour).getTime() / 1000;
    const now = at(17, 23);
    expect([14, 13, 2].map((day) => formatRelativeTime(at(day, 9), now))).toEqual([
      "3 days ago",
      "4 days ago",
      "15 days ago",
    ]);
    expect(formatRelativeTime(at(15, 22), at(17, 1))).toBe("2 days ago");
  });

  it("days, lengths and sizes", () => {
    expect(formatDay("2026-11-05")).toBe("5 Nov 2026");
    expect([formatDuration(12), formatDuration(90), formatDuration(7500)]).toEqual(["12 s", "2 min", "2 h 5 min"]);
    expect([formatBytes(512), formatBytes(4_200_000)]).toEqual(["512 B", "4.2 MB"]);
  });

  it("timestamps outside the range of Date", () => {
    for (const at of [1e14, -1e20, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(formatDateTime(at)).toBeTypeOf("string");
      expect(formatTime(at)).toBeTypeOf("string");
      expect(formatRelativeTime(at)).toBeTypeOf("string");
    }
    expect(formatDay("")).toBe("1 Jan 1970");
  });
});
