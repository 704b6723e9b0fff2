/** Draws a share card on a canvas. */
import {
  CARD_HEIGHT,
  CARD_WIDTH,
  type CardLayout,
  type Line,
  MEDAL,
  type Measure,
  TEXT_LEFT,
  TEXT_WIDTH,
} from "./cardLayout";
import { hexagonCorners, parseShapes, toPathData } from "./iconShapes";
import type { Tier } from "./types";

const BACKGROUND = "#12141c";
const EDGE = "#2b3040";
const INK = "#eef0f6";
const MUTED = "#a3aabd";
const DISABLED = "#4a5166";
const FONT = '"Inter Variable", Inter, system-ui, sans-serif';

type Context = CanvasRenderingContext2D;

/** Measure texts on this canvas. */
export function createMeasure(context: Context): Measure {
  return (text, size, weight) => {
    context.font = fontOf(size, weight);
    return context.measureText(text).width;
  };
}

/** Load the fonts; a canvas is not redrawn when a font arrives later. */
export async function loadFonts(): Promise<void> {
  await Promise.all([400, 700].map((weight) => document.fonts.load(fontOf(28, weight))));
}

function fontOf(size: number, weight: number): string {
  return `${weight} ${size}px ${FONT}`;
}

/** Draw the card. */
export function paintCard(context: Context, card: CardLayout, tier: Tier, icon: string, tiers: readonly Tier[]): void {
  paintBackground(context, tier);
  paintMedal(context, tier, icon);
  for (const dot of card.ladder) {
    context.fillStyle = dot.isEarned ? (tiers.find((one) => one.id === dot.tier)?.glow ?? tier.glow) : DISABLED;
    context.beginPath();
    context.arc(dot.x, dot.y, 9, 0, 2 * Math.PI);
    context.fill();
  }
  paintPill(context, card, tier);
  for (const line of card.name) paintLine(context, line, INK);
  for (const line of card.description) paintLine(context, line, MUTED);
  context.fillStyle = EDGE;
  context.fillRect(TEXT_LEFT, 538, TEXT_WIDTH, 1.5);
  paintLine(context, card.foot, MUTED);
  paintBrand(context, tier);
}

function paintBackground(context: Context, tier: Tier): void {
  context.fillStyle = BACKGROUND;
  context.fillRect(0, 0, CARD_WIDTH, CARD_HEIGHT);
  paintGlow(context, tier, 236, 284, 720, 0.34);
  paintGlow(context, tier, CARD_WIDTH, CARD_HEIGHT, 620, 0.12);
  context.fillStyle = tier.glow;
  context.fillRect(0, 0, CARD_WIDTH, 8);
}

function paintGlow(context: Context, tier: Tier, x: number, y: number, radius: number, strength: number): void {
  const light = context.createRadialGradient(x, y, 0, x, y, radius);
  light.addColorStop(0, withAlpha(tier.glow, strength));
  light.addColorStop(1, withAlpha(tier.glow, 0));
  context.fillStyle = light;
  context.fillRect(0, 0, CARD_WIDTH, CARD_HEIGHT);
}

/** A colour (`#rrggbb`) with an alpha channel. */
export function withAlpha(colour: string, strength: number): string {
  const part = Math.round(Math.min(1, Math.max(0, strength)) * 255);
  return `${colour}${part.toString(16).padStart(2, "0")}`;
}

function paintMedal(context: Context, tier: Tier, icon: string): void {
  const { x, y, radius } = MEDAL;
  tracePath(context, hexagonCorners(x, y, radius));
  context.fillStyle = BACKGROUND;
  context.fill();
  context.strokeStyle = tier.glow;
  context.lineWidth = radius / 16;
  context.lineJoin = "round";
  context.stroke();
  tracePath(context, hexagonCorners(x, y, radius * 0.86));
  const face = context.createLinearGradient(0, y - radius, 0, y + radius);
  face.addColorStop(0, withAlpha(tier.glow, 0.4));
  face.addColorStop(1, withAlpha(tier.glow, 0.1));
  context.fillStyle = face;
  context.fill();
  drawIcon(context, icon, x, y, radius * 0.92, tier.glow);
}

function tracePath(context: Context, corners: [number, number][]): void {
  context.beginPath();
  for (const [x, y] of corners) context.lineTo(x, y);
  context.closePath();
}

function drawIcon(context: Context, icon: string, x: number, y: number, size: number, colour: string): void {
  context.save();
  context.translate(x - size / 2, y - size / 2);
  context.scale(size / 24, size / 24);
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.lineCap = "round";
  context.lineJoin = "round";
  for (const shape of parseShapes(icon)) {
    const path = toPathData(shape);
    if (path) context.stroke(new Path2D(path));
  }
  context.restore();
}

function paintPill(context: Context, { pill: shown }: CardLayout, tier: Tier): void {
  context.fillStyle = tier.glow;
  context.beginPath();
  context.roundRect(shown.x, shown.y, shown.width, shown.height, shown.height / 2);
  context.fill();
  paintLine(context, { text: shown.text, x: shown.x + 22, y: shown.y + 28, size: shown.size, weight: 700 }, BACKGROUND);
}

function paintLine(context: Context, line: Line, colour: string): void {
  context.font = fontOf(line.size, line.weight);
  context.fillStyle = colour;
  context.textAlign = "left";
  context.fillText(line.text, line.x, line.y);
}

/** Draw the name of the product. */
function paintBrand(context: Context, tier: Tier): void {
  const right = CARD_WIDTH - 70;
  context.font = fontOf(24, 700);
  const width = context.measureText("Hermes").width;
  context.fillStyle = INK;
  context.fillText("Hermes", right - width, 580);
  tracePath(context, hexagonCorners(right - width - 20, 572, 10));
  context.strokeStyle = tier.glow;
  context.lineWidth = 3;
  context.stroke();
}
