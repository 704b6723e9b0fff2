/** Parses the catalogue's icons into shapes, so that no markup of a response is inserted. */

export interface Shape {
  tag: string;
  attributes: Record<string, string>;
}

const TAGS = new Set(["path", "circle", "rect", "line", "polyline", "polygon", "ellipse"]);
const ATTRIBUTES = new Set("d cx cy r rx ry x y width height x1 y1 x2 y2 points".split(" "));

/** Parse the shapes of an icon; everything else is dropped. */
export function parseShapes(markup: string): Shape[] {
  const found: Shape[] = [];
  for (const [, tag = "", inside = ""] of markup.matchAll(/<([a-z]+)\s([^<>]*?)\/?>/g)) {
    if (!TAGS.has(tag)) continue;
    const attributes: Record<string, string> = {};
    for (const [, name = "", value = ""] of inside.matchAll(/([a-z0-9]+)="([^"]*)"/g)) {
      if (ATTRIBUTES.has(name)) attributes[name] = value;
    }
    found.push({ tag, attributes });
  }
  return found;
}

/** The corners of a hexagon with a vertex at the top. */
export function hexagonCorners(x: number, y: number, radius: number): [number, number][] {
  return Array.from({ length: 6 }, (_, number) => [
    x + radius * Math.sin((Math.PI / 3) * number),
    y - radius * Math.cos((Math.PI / 3) * number),
  ]);
}

/** The corners as an SVG points attribute. */
export function hexagonPoints(x: number, y: number, radius: number): string {
  return hexagonCorners(x, y, radius)
    .map(([left, top]) => `${left.toFixed(2)},${top.toFixed(2)}`)
    .join(" ");
}

/** Convert a shape to SVG path data; null for a shape without a size. */
export function toPathData({ tag, attributes }: Shape): string | null {
  const of = (name: string) => Number(attributes[name] ?? 0);
  switch (tag) {
    case "path":
      return attributes.d ?? null;
    case "circle":
      return ellipse(of("cx"), of("cy"), of("r"), of("r"));
    case "ellipse":
      return ellipse(of("cx"), of("cy"), of("rx"), of("ry"));
    case "line":
      return `M${of("x1")} ${of("y1")}L${of("x2")} ${of("y2")}`;
    case "rect":
      return rectangle(of("x"), of("y"), of("width"), of("height"), of("rx") || of("ry"));
    default: {
      const listed = (attributes.points ?? "").trim();
      return listed ? `M${listed.split(/\s+/).join("L")}${tag === "polygon" ? "Z" : ""}` : null;
    }
  }
}

function ellipse(x: number, y: number, across: number, down: number): string | null {
  if (!across || !down) return null;
  return `M${x - across} ${y}a${across} ${down} 0 1 0 ${2 * across} 0a${across} ${down} 0 1 0 ${-2 * across} 0Z`;
}

function rectangle(x: number, y: number, width: number, height: number, radius: number): string | null {
  if (!width || !height) return null;
  if (!radius) return `M${x} ${y}h${width}v${height}h${-width}Z`;
  const r = Math.min(radius, width / 2, height / 2);
  const corner = (across: number, down: number) => `a${r} ${r} 0 0 1 ${across} ${down}`;
  return [
    `M${x + r} ${y}h${width - 2 * r}`,
    corner(r, r),
    `v${height - 2 * r}`,
    corner(-r, r),
    `h${2 * r - width}`,
    corner(-r, -r),
    `v${2 * r - height}`,
    corner(r, -r),
    "Z",
  ].join("");
}
