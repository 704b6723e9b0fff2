/** Formulas in Markdown: which texts have any, and their delimiters. */

const CODE = /(```[\s\S]*?(?:```|$)|~~~[\s\S]*?(?:~~~|$)|`[^`\n]*`)/;
// $$…$$, or $…$ that begins and ends with a character and is not followed by a digit: an amount of money is left as it is.
const FORMULA = /\$\$[\s\S]+?\$\$|\$(?![\s$])(?:[^$\n]*?[^\s$\\])\$(?!\d)/g;
const HAS_FORMULA = new RegExp(`${FORMULA.source}|\\\\\\([\\s\\S]+?\\\\\\)|\\\\\\[[\\s\\S]+?\\\\\\]`);

/** Whether a text may contain a formula, so that the renderer is loaded. */
export function hasFormula(text: string): boolean {
  return HAS_FORMULA.test(text);
}

/** The text with formulas in dollar signs only, and every other dollar sign escaped. */
export function normalizeFormulas(text: string): string {
  return text
    .split(CODE)
    .map((part, index) => (index % 2 === 1 ? part : normalizePart(part)))
    .join("");
}

function normalizePart(text: string): string {
  const plain = text
    .replace(/\\\[([\s\S]+?)\\\]/g, (_, formula: string) => `$$\n${formula.trim()}\n$$`)
    .replace(/\\\(([\s\S]+?)\\\)/g, (_, formula: string) => `$${formula.trim()}$`);
  let result = "";
  let end = 0;
  for (const found of plain.matchAll(FORMULA)) {
    result += escapeDollars(plain.slice(end, found.index)) + found[0];
    end = found.index + found[0].length;
  }
  return result + escapeDollars(plain.slice(end));
}

function escapeDollars(text: string): string {
  return text.replace(/(?<!\\)\$/g, "\\$");
}
