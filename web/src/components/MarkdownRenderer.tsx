import { lazy, Suspense } from "react";
import { MarkdownText } from "./MarkdownText";
import { hasFormula } from "./mathText";

const FormulaRenderer = lazy(() => import("./FormulaRenderer"));

/** Renders Markdown; loaded on demand because its libraries are large. */
export default function MarkdownRenderer({ text }: { text: string }) {
  if (!hasFormula(text)) return <MarkdownText text={text} />;
  return (
    <Suspense fallback={<MarkdownText text={text} />}>
      <FormulaRenderer text={text} />
    </Suspense>
  );
}
