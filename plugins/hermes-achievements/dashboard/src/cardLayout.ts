/** Where everything stands on a share card. */
import type { Achievement, Tier } from "./types";

export const WIDTH = 1200;
export const HEIGHT = 630;
export const MEDAL = { x: 236, y: 290, radius: 158 } as const;
export const LEFT = 450; // where the words begin; the medal has the room before
export const ROOM = WIDTH - LEFT - 70;
const LADDER_Y = 500;
const LADDER_STEP = 34;
const NAME_SIZES = [72, 60, 50] as const;
const TEXT_SIZE = 28;
const TEXT_LINE = 40;
const MIDDLE = 300;
const ELLIPSIS = "…";

/** How wide some words are, in a size and weight. */
export type Measure = (words: string, size: number, weight: number) => number;

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

/** What is written on a card. */
export interface CardWords {
  pill: string;
  name: string;
  description: string;
  foot: string;
}

/** Words in lines no wider than *room*; what does not fit into *most* lines ends in an ellipsis. */
export function folded(words: string, size: number, weight: number, room: number, most: number, measure: Measure) {
  const lines: string[] = [];
  let line = "";
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const longer = line ? `${line} ${word}` : word;
    if (!line || measure(longer, size, weight) <= room) {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
  }
  if (line) lines.push(line);
  const kept = lines.slice(0, most);
  const isCut = lines.length > most;
  return kept.map((one, number) => cut(one, isCut && number === most - 1, size, weight, room, measure));
}

function cut(line: string, isShortened: boolean, size: number, weight: number, room: number, measure: Measure): string {
  if (!isShortened && measure(line, size, weight) <= room) return line;
  const letters = [...line];
  while (letters.length > 1 && measure(letters.join("").trimEnd() + ELLIPSIS, size, weight) > room) letters.pop();
  return letters.join("").trimEnd() + ELLIPSIS;
}

/** The name as large as it can be. */
function largest(name: string, measure: Measure): { size: number; lines: string[] } {
  const tried = NAME_SIZES.map((size) => ({ size, lines: folded(name, size, 700, ROOM, 2, measure) }));
  return (
    tried.find(({ lines }) => !lines.some((line) => line.endsWith(ELLIPSIS))) ??
    tried[tried.length - 1] ?? { size: 50, lines: [name] }
  );
}

/** A whole card. */
export function layOut(one: Achievement, words: CardWords, tiers: readonly Tier[], measure: Measure): CardLayout {
  const { size, lines } = largest(words.name, measure);
  const told = folded(words.description, TEXT_SIZE, 400, ROOM, 3, measure);
  const height = 50 + lines.length * size * 1.12 + 18 + told.length * TEXT_LINE;
  const top = MIDDLE - height / 2;
  const nameTop = top + 50;
  const textTop = nameTop + lines.length * size * 1.12 + 18;
  return {
    pill: { text: words.pill, x: LEFT, y: top, width: measure(words.pill, 20, 700) + 44, height: 42, size: 20 },
    name: lines.map((text, number) => ({
      text,
      x: LEFT - size / 24,
      y: nameTop + (number + 1) * size * 1.12 - size * 0.08,
      size,
      weight: 700,
    })),
    description: told.map((text, number) => ({
      text,
      x: LEFT,
      y: textTop + (number + 1) * TEXT_LINE - 8,
      size: TEXT_SIZE,
      weight: 400,
    })),
    ladder: ladder(one, tiers),
    foot: {
      text: folded(words.foot, 24, 400, ROOM - 130, 1, measure)[0] ?? "",
      x: LEFT,
      y: 580,
      size: 24,
      weight: 400,
    },
  };
}

/** A dot for each tier there is to earn; those that are earned shine. */
function ladder(one: Achievement, tiers: readonly Tier[]): CardLayout["ladder"] {
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

/** A name for the file. */
export function fileName(one: Achievement): string {
  return `hermes-${one.id}-${one.tier ?? "open"}.png`;
}
