import { describe, expect, it } from "vitest";
import { ago, bytes, clock, day, dollars, moment, percent, short, span, whole } from "@/i18n/format";

describe("people read", () => {
  it("numbers", () => {
    expect([short(999), short(1234), short(259_958), whole(1234567)]).toEqual(["999", "1.2K", "260K", "1,234,567"]);
  });

  it("money, small amounts with their digits", () => {
    expect([dollars(0), dollars(0.0042), dollars(41.654)]).toEqual(["$0.00", "$0.004", "$41.65"]);
  });

  it("shares", () => {
    expect([percent(0.034), percent(0.5)]).toEqual(["3.4%", "50%"]);
  });

  it("how long ago", () => {
    const now = 1_000_000_000;
    expect([ago(now - 5, now), ago(now - 300, now), ago(now - 86_400, now), ago(now - 40 * 86_400, now)]).toEqual([
      "just now",
      "5 minutes ago",
      "yesterday",
      "last month",
    ]);
  });

  it("days, lengths and sizes", () => {
    expect(day("2026-11-05")).toBe("5 Nov 2026");
    expect([span(12), span(90), span(7500)]).toEqual(["12 s", "2 min", "2 h 5 min"]);
    expect([bytes(512), bytes(4_200_000)]).toEqual(["512 B", "4.2 MB"]);
  });

  it("moments no clock can show, without a crash", () => {
    for (const at of [1e14, -1e20, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(moment(at)).toBeTypeOf("string");
      expect(clock(at)).toBeTypeOf("string");
      expect(ago(at)).toBeTypeOf("string");
    }
    expect(day("")).toBe("1 Jan 1970");
  });
});
