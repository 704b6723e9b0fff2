/** Readable tool arguments and results. */

/** A line of a diff: removed, added or unchanged. */
export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

// Characters that change how a text is shown, or show nothing, except line breaks and tabs.
const INVISIBLE =
  /[\p{Cc}\p{Zl}\p{Zp}\u061c\u115f\u1160\u3164\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

/** A text with invisible characters shown as code points. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, (found) => (found === "\n" || found === "\t" ? found : `⟨U+${codePoint(found)}⟩`));
}

function codePoint(text: string): string {
  return (text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

/** Indent JSON; other text is unchanged. */
export function formatToolText(text: string): string {
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return text;
  try {
    return formatObject(JSON.parse(text));
  } catch {
    return text;
  }
}

/** An object with exactly one multi-line value is shown as that text below the other values. */
function formatObject(value: unknown): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value, null, 2);
  const entries = Object.entries(value);
  const long = entries.filter(([, one]) => typeof one === "string" && one.includes("\n"));
  if (long.length !== 1) return JSON.stringify(value, null, 2);
  const rest = entries.filter(([, one]) => one !== long[0]?.[1] && one !== null && one !== "");
  const head = rest.map(([name, one]) => `${name}: ${typeof one === "string" ? one : JSON.stringify(one)}`);
  return [...head, String(long[0]?.[1])].join("\n");
}

/** The diff of an edit, if its arguments contain the old and the new text. */
export function diffFromArguments(name: string, args: string): DiffLine[] | null {
  if (!/patch|edit|write|replace/i.test(name)) return null;
  let found: Record<string, unknown>;
  try {
    found = JSON.parse(args) as Record<string, unknown>;
  } catch {
    return null;
  }
  const patch = found.patch ?? found.diff;
  if (typeof patch === "string") return parseDiff(patch);
  const before = found.old_string ?? found.old_text ?? found.old;
  const after = found.new_string ?? found.new_text ?? found.new ?? found.content;
  if (typeof after !== "string") return null;
  return diffLines(typeof before === "string" ? before : "", after);
}

/** The lines of a unified diff. */
export function parseDiff(text: string): DiffLine[] {
  return text.split("\n").map(parsePatchLine);
}

function parsePatchLine(line: string): DiffLine {
  const sign = line[0];
  if ((sign === "+" || sign === "-") && !line.startsWith("+++") && !line.startsWith("---")) {
    return { sign, text: line.slice(1) };
  }
  return { sign: " ", text: line };
}

const MAX_COMPARED_LINES = 600;

/** Diff two texts by line, by their longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before === "" ? [] : before.split("\n");
  const now = after.split("\n");
  if (old.length * now.length > MAX_COMPARED_LINES * MAX_COMPARED_LINES)
    return [...linesWithSign("-", old), ...linesWithSign("+", now)];
  const width = now.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const below = common[(i + 1) * width + j] ?? 0;
      const right = common[i * width + j + 1] ?? 0;
      common[i * width + j] = old[i] === now[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(below, right);
    }
  }
  return traceDiff(old, now, common, width);
}

function traceDiff(old: string[], now: string[], common: Uint16Array, width: number): DiffLine[] {
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
  return [...lines, ...linesWithSign("-", old.slice(i)), ...linesWithSign("+", now.slice(j))];
}

function linesWithSign(sign: DiffLine["sign"], texts: string[]): DiffLine[] {
  return texts.map((text) => ({ sign, text }));
}
