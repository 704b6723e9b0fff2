/** Draws a share card; nothing leaves the machine. */
import { type CardLayout, HEIGHT, LEFT, type Line, MEDAL, type Measure, ROOM, WIDTH } from "./cardLayout";
import { hexagon, pathData, shapesOf } from "./drawing";
import type { Tier } from "./types";

const GROUND = "#12141c";
const EDGE = "#2b3040";
const INK = "#eef0f6";
const SOFT = "#a3aabd";
const FAINT = "#4a5166";
const FONT = '"Inter Variable", Inter, system-ui, sans-serif';

type Context = CanvasRenderingContext2D;

/** How wide words are on this canvas. */
export function measureOn(context: Context): Measure {
  return (words, size, weight) => {
    context.font = fontOf(size, weight);
    return context.measureText(words).width;
  };
}

/** Wait until the letters are there; a canvas does not draw them again when they come. */
export async function lettersReady(): Promise<void> {
  await Promise.all([400, 700].map((weight) => document.fonts.load(fontOf(28, weight))));
}

function fontOf(size: number, weight: number): string {
  return `${weight} ${size}px ${FONT}`;
}

/** Draw everything. */
export function paintCard(context: Context, card: CardLayout, tier: Tier, icon: string, tiers: readonly Tier[]): void {
  ground(context, tier);
  medal(context, tier, icon);
  for (const dot of card.ladder) {
    context.fillStyle = dot.isEarned ? (tiers.find((one) => one.id === dot.tier)?.glow ?? tier.glow) : FAINT;
    context.beginPath();
    context.arc(dot.x, dot.y, 9, 0, 2 * Math.PI);
    context.fill();
  }
  pill(context, card, tier);
  for (const line of card.name) write(context, line, INK);
  for (const line of card.description) write(context, line, SOFT);
  context.fillStyle = EDGE;
  context.fillRect(LEFT, 538, ROOM, 1.5);
  write(context, card.foot, SOFT);
  mark(context, tier);
}

function ground(context: Context, tier: Tier): void {
  context.fillStyle = GROUND;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  glow(context, tier, 236, 284, 720, 0.34);
  glow(context, tier, WIDTH, HEIGHT, 620, 0.12);
  context.fillStyle = tier.glow;
  context.fillRect(0, 0, WIDTH, 8);
}

function glow(context: Context, tier: Tier, x: number, y: number, radius: number, strength: number): void {
  const light = context.createRadialGradient(x, y, 0, x, y, radius);
  light.addColorStop(0, faded(tier.glow, strength));
  light.addColorStop(1, faded(tier.glow, 0));
  context.fillStyle = light;
  context.fillRect(0, 0, WIDTH, HEIGHT);
}

/** A colour of the catalogue (`#rrggbb`) that lets through what lies below. */
export function faded(colour: string, strength: number): string {
  const part = Math.round(Math.min(1, Math.max(0, strength)) * 255);
  return `${colour}${part.toString(16).padStart(2, "0")}`;
}

function medal(context: Context, tier: Tier, icon: string): void {
  const { x, y, radius } = MEDAL;
  outline(context, hexagon(x, y, radius));
  context.fillStyle = GROUND;
  context.fill();
  context.strokeStyle = tier.glow;
  context.lineWidth = radius / 16;
  context.lineJoin = "round";
  context.stroke();
  outline(context, hexagon(x, y, radius * 0.86));
  const face = context.createLinearGradient(0, y - radius, 0, y + radius);
  face.addColorStop(0, faded(tier.glow, 0.4));
  face.addColorStop(1, faded(tier.glow, 0.1));
  context.fillStyle = face;
  context.fill();
  drawIcon(context, icon, x, y, radius * 0.92, tier.glow);
}

function outline(context: Context, corners: [number, number][]): void {
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
  for (const shape of shapesOf(icon)) {
    const path = pathData(shape);
    if (path) context.stroke(new Path2D(path));
  }
  context.restore();
}

function pill(context: Context, { pill: shown }: CardLayout, tier: Tier): void {
  context.fillStyle = tier.glow;
  context.beginPath();
  context.roundRect(shown.x, shown.y, shown.width, shown.height, shown.height / 2);
  context.fill();
  write(context, { text: shown.text, x: shown.x + 22, y: shown.y + 28, size: shown.size, weight: 700 }, GROUND);
}

function write(context: Context, line: Line, colour: string): void {
  context.font = fontOf(line.size, line.weight);
  context.fillStyle = colour;
  context.textAlign = "left";
  context.fillText(line.text, line.x, line.y);
}

/** Whose it is. */
function mark(context: Context, tier: Tier): void {
  const right = WIDTH - 70;
  context.font = fontOf(24, 700);
  const width = context.measureText("Hermes").width;
  context.fillStyle = INK;
  context.fillText("Hermes", right - width, 580);
  outline(context, hexagon(right - width - 20, 572, 10));
  context.strokeStyle = tier.glow;
  context.lineWidth = 3;
  context.stroke();
}
