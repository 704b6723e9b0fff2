/** What a tool was given and gave back, as people read it. */

/** A line of a change: taken away, added, or neither. */
export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

/** JSON with its lines apart; anything else as it is. */
export function pretty(text: string): string {
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return text;
  try {
    return readable(JSON.parse(text));
  } catch {
    return text;
  }
}

/** An object with one long text in it is shown as that text, below the rest. */
function readable(value: unknown): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value, null, 2);
  const entries = Object.entries(value);
  const long = entries.filter(([, one]) => typeof one === "string" && one.includes("\n"));
  if (long.length !== 1) return JSON.stringify(value, null, 2);
  const rest = entries.filter(([, one]) => one !== long[0]?.[1] && one !== null && one !== "");
  const head = rest.map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`);
  return [...head, String(long[0]?.[1])].join("\n");
}

/** The change that an edit makes, when its arguments say what was there and what will be. */
export function diffOf(name: string, args: string): DiffLine[] | null {
  if (!/patch|edit|write|replace/i.test(name)) return null;
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(args) as Record<string, unknown>;
  } catch {
    return null;
  }
  const patch = found.patch ?? found.diff;
  if (typeof patch === "string") return patch.split("\n").map(patchLine);
  const before = found.old_string ?? found.old_text ?? found.old;
  const after = found.new_string ?? found.new_text ?? found.new ?? found.content;
  if (typeof after !== "string") return null;
  return lineDiff(typeof before === "string" ? before : "", after);
}

function patchLine(line: string): DiffLine {
  const sign = line[0];
  if ((sign === "+" || sign === "-") && !line.startsWith("+++") && !line.startsWith("---")) {
    return { sign, text: line.slice(1) };
  }
  return { sign: " ", text: line };
}

const MOST_LINES = 600;

/** Which lines were taken and which were added; the longest common run of lines stays. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const old = before === "" ? [] : before.split("\n");
  const now = after.split("\n");
  if (old.length * now.length > MOST_LINES * MOST_LINES) return [...all("-", old), ...all("+", now)];
  const width = now.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const below = common[(i + 1) * width + j] ?? 0;
      const right = common[i * width + j + 1] ?? 0;
      common[i * width + j] = old[i] === now[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, right);
    }
  }
  return walk(old, now, common, width);
}

function walk(old: string[], now: string[], common: Uint16Array, width: number): DiffLine[] {
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      lines.push({ sign: " ", text: old[i] ?? "" });
      i += 1;
      j += 1;
    } else if ((common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0)) {
      lines.push({ sign: "-", text: old[i] ?? "" });
      i += 1;
    } else {
      lines.push({ sign: "+", text: now[j] ?? "" });
      j += 1;
    }
  }
  return [...lines, ...all("-", old.slice(i)), ...all("+", now.slice(j))];
}

function all(sign: DiffLine["sign"], texts: string[]): DiffLine[] {
  return texts.map((text) => ({ sign, text }));
}
