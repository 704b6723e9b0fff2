import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";
import { MarkdownText } from "./MarkdownText";
import { normalizeFormulas } from "./mathText";

// MathML is drawn by the browser: no fonts, and no inline styles, which the page's policy forbids.
const OPTIONS = {
  output: "mathml",
  throwOnError: false,
  strict: false,
  trust: false,
  maxExpand: 200,
  maxSize: 20,
} as const;

/** Renders Markdown with formulas; loaded only for texts that have some. */
export default function FormulaRenderer({ text }: { text: string }) {
  return <MarkdownText text={normalizeFormulas(text)} remark={[remarkMath]} rehype={[[rehypeKatex, OPTIONS]]} />;
}
