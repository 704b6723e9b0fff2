import { describe, expect, it } from "vitest";
import {
  CARD_HEIGHT,
  CARD_WIDTH,
  fileName,
  layOutCard,
  type Measure,
  TEXT_LEFT,
  TEXT_WIDTH,
  wrapText,
} from "../../../plugins/hermes-achievements/dashboard/src/cardLayout";
import { withAlpha } from "../../../plugins/hermes-achievements/dashboard/src/cardPainter";
import { hexagonPoints, parseShapes, toPathData } from "../../../plugins/hermes-achievements/dashboard/src/iconShapes";
import icons from "../../../src/hermes_achievements/catalogue/icons.json";
import { badge } from "./fixtures";

const measure: Measure = (words, size) => [...words].length * size * 0.5;
const TIERS = ["clay", "bronze"].map((id) => ({ id, name: id, colour: "#111111", glow: "#eeeeee" }));
const TEXTS = {
  pill: "CLAY UNLOCKED",
  name: "Chronicler",
  description: "A short one.",
  foot: "12 commits · 5 Jan 2026",
};

describe("an icon", () => {
  it("becomes shapes", () => {
    expect(parseShapes('<circle cx="12" cy="13" r="8" /><path d="M5 3 2 6" />')).toEqual([
      { tag: "circle", attributes: { cx: "12", cy: "13", r: "8" } },
      { tag: "path", attributes: { d: "M5 3 2 6" } },
    ]);
  });

  it("brings nothing along but shapes", () => {
    const drawn = parseShapes('<script src="x"></script><path d="M0 0" onload="x()" style="y" /><image href="z" />');
    expect(drawn).toEqual([{ tag: "path", attributes: { d: "M0 0" } }]);
  });

  it("can be drawn, whichever of the catalogue it is", () => {
    for (const [name, markup] of Object.entries(icons as Record<string, string>)) {
      const shapes = parseShapes(markup);
      expect(shapes.length, name).toBe(markup.split("<").length - 1);
      for (const shape of shapes) expect(toPathData(shape), `${name} ${shape.tag}`).toMatch(/^[Mm]/);
    }
  });

  it("is drawn round where its corners are round", () => {
    const attributes = { x: "2", y: "4", width: "20", height: "16", rx: "2" };
    expect(toPathData({ tag: "rect", attributes })).toContain("a2 2 0 0 1 2 2");
    expect(toPathData({ tag: "rect", attributes: { width: "0", height: "3" } })).toBeNull();
  });

  it("stands on a hexagon", () => {
    expect(hexagonPoints(32, 32, 10).split(" ")).toHaveLength(6);
    expect(hexagonPoints(32, 32, 10)).toContain("32.00,22.00");
  });
});

describe("texts on a card", () => {
  it("are wrapText where there is no more room", () => {
    expect(wrapText("one two three", 10, 400, 40, 3, measure)).toEqual(["one two", "three"]);
  });

  it("end in an ellipsis where there are too many", () => {
    expect(wrapText("one two three four", 10, 400, 40, 2, measure)).toEqual(["one two", "three…"]);
    expect(wrapText("incomprehensibilities", 10, 400, 40, 1, measure)).toEqual(["incompr…"]);
  });

  it("are empty for an empty text", () => {
    expect(wrapText("", 10, 400, 40, 2, measure)).toEqual([]);
  });
});

describe("a share card", () => {
  const one = badge({ id: "chronicler", tier: "clay" });

  it("is 1200 by 630", () => {
    expect([CARD_WIDTH, CARD_HEIGHT]).toEqual([1200, 630]);
  });

  it("keeps everything on it, however long the words are", () => {
    const long = { ...TEXTS, name: "word ".repeat(60), description: "word ".repeat(200), foot: "word ".repeat(60) };
    const card = layOutCard(one, long, TIERS, measure);
    expect(card.name).toHaveLength(2);
    expect(card.description).toHaveLength(3);
    for (const line of [...card.name, ...card.description, card.foot]) {
      expect(line.x + measure(line.text, line.size, line.weight)).toBeLessThanOrEqual(TEXT_LEFT + TEXT_WIDTH);
      expect(line.y).toBeLessThan(CARD_HEIGHT);
    }
    expect(card.pill.y).toBeGreaterThan(8);
    expect(card.description.at(-1)?.y).toBeLessThan(538);
  });

  it("writes a short name large and a long one smaller", () => {
    const size = (name: string) => layOutCard(one, { ...TEXTS, name }, TIERS, measure).name[0]?.size;
    expect(size("Short")).toBe(72);
    expect(size("A name that is quite a bit longer than most")).toBeLessThan(72);
  });

  it("shows a dot for each tier, and which of them are earned", () => {
    expect(layOutCard(one, TEXTS, TIERS, measure).ladder.map((dot) => dot.isEarned)).toEqual([true, false]);
    const single = badge({ id: "x", tier: "clay", tiers: [{ name: "clay", threshold: 1 }] });
    expect(layOutCard(single, TEXTS, TIERS, measure).ladder).toEqual([]);
  });

  it("is saved under the badge's name", () => {
    expect(fileName(one)).toBe("hermes-chronicler-clay.png");
  });

  it("adds an alpha channel to a colour", () => {
    expect(withAlpha("#f5cf4a", 0.5)).toBe("#f5cf4a80");
    expect(withAlpha("#f5cf4a", 2)).toBe("#f5cf4aff");
    expect(withAlpha("#f5cf4a", 0)).toBe("#f5cf4a00");
  });
});
