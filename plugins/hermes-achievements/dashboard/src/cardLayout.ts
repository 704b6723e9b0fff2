/** The layout of a share card. */
import type { Achievement, Tier } from "./types";

export const CARD_WIDTH = 1200;
export const CARD_HEIGHT = 630;
export const MEDAL = { x: 236, y: 290, radius: 158 } as const;
export const TEXT_LEFT = 450; // the medal takes the space to the left
export const TEXT_WIDTH = CARD_WIDTH - TEXT_LEFT - 70;
const LADDER_Y = 500;
const LADDER_STEP = 34;
const NAME_SIZES = [72, 60, 50] as const;
const TEXT_SIZE = 28;
const TEXT_LINE_HEIGHT = 40;
const TEXT_MIDDLE = 300;
const ELLIPSIS = "…";

/** The width of a text in a font size and weight. */
export type Measure = (text: string, size: number, weight: number) => number;

export interface Line {
  text: string;
  x: number;
  y: number;
  size: number;
  weight: number;
}

export interface CardLayout {
  pill: { text: string; x: number; y: number; width: number; height: number; size: number };
  name: Line[];
  description: Line[];
  ladder: { x: number; y: number; tier: string; isEarned: boolean }[];
  foot: Line;
}

/** The texts of a card. */
export interface CardTexts {
  pill: string;
  name: string;
  description: string;
  foot: string;
}

/** Wrap a text to *maxWidth* and at most *maxLines* lines; the rest becomes an ellipsis. */
export function wrapText(
  text: string,
  size: number,
  weight: number,
  maxWidth: number,
  maxLines: number,
  measure: Measure,
) {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = line ? `${line} ${word}` : word;
    if (!line || measure(longer, size, weight) <= maxWidth) {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
  }
  if (line) lines.push(line);
  const kept = lines.slice(0, maxLines);
  const isCut = lines.length > maxLines;
  return kept.map((one, index) => truncate(one, isCut && index === maxLines - 1, size, weight, maxWidth, measure));
}

function truncate(
  line: string,
  isShortened: boolean,
  size: number,
  weight: number,
  maxWidth: number,
  measure: Measure,
): string {
  if (!isShortened && measure(line, size, weight) <= maxWidth) return line;
  const characters = [...line];
  while (characters.length > 1 && measure(characters.join("").trimEnd() + ELLIPSIS, size, weight) > maxWidth)
    characters.pop();
  return characters.join("").trimEnd() + ELLIPSIS;
}

/** The largest font size in which the name fits. */
function fitName(name: string, measure: Measure): { size: number; lines: string[] } {
  const tried = NAME_SIZES.map((size) => ({ size, lines: wrapText(name, size, 700, TEXT_WIDTH, 2, measure) }));
  return (
    tried.find(({ lines }) => !lines.some((line) => line.endsWith(ELLIPSIS))) ??
    tried[tried.length - 1] ?? { size: 50, lines: [name] }
  );
}

/** Compute the layout of a card. */
export function layOutCard(one: Achievement, texts: CardTexts, tiers: readonly Tier[], measure: Measure): CardLayout {
  const { size, lines } = fitName(texts.name, measure);
  const descriptionLines = wrapText(texts.description, TEXT_SIZE, 400, TEXT_WIDTH, 3, measure);
  const height = 50 + lines.length * size * 1.12 + 18 + descriptionLines.length * TEXT_LINE_HEIGHT;
  const top = TEXT_MIDDLE - height / 2;
  const nameTop = top + 50;
  const textTop = nameTop + lines.length * size * 1.12 + 18;
  return {
    pill: { text: texts.pill, x: TEXT_LEFT, y: top, width: measure(texts.pill, 20, 700) + 44, height: 42, size: 20 },
    name: lines.map((text, number) => ({
      text,
      x: TEXT_LEFT - size / 24,
      y: nameTop + (number + 1) * size * 1.12 - size * 0.08,
      size,
      weight: 700,
    })),
    description: descriptionLines.map((text, number) => ({
      text,
      x: TEXT_LEFT,
      y: textTop + (number + 1) * TEXT_LINE_HEIGHT - 8,
      size: TEXT_SIZE,
      weight: 400,
    })),
    ladder: layOutLadder(one, tiers),
    foot: {
      text: wrapText(texts.foot, 24, 400, TEXT_WIDTH - 130, 1, measure)[0] ?? "",
      x: TEXT_LEFT,
      y: 580,
      size: 24,
      weight: 400,
    },
  };
}

/** One dot per tier; earned ones are lit. */
function layOutLadder(one: Achievement, tiers: readonly Tier[]): CardLayout["ladder"] {
  const steps = one.tiers.filter((step) => tiers.some((tier) => tier.id === step.name));
  if (steps.length < 2) return [];
  const earned = steps.findIndex((step) => step.name === one.tier);
  const left = MEDAL.x - ((steps.length - 1) * LADDER_STEP) / 2;
  return steps.map((step, number) => ({
    x: left + number * LADDER_STEP,
    y: LADDER_Y,
    tier: step.name,
    isEarned: number <= earned,
  }));
}

/** The file name of the image. */
export function fileName(one: Achievement): string {
  return `hermes-${one.id}-${one.tier ?? "open"}.png`;
}
