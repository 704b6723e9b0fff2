import { lazy, memo, Suspense } from "react";
import classes from "./Markdown.module.css";

const MarkdownRenderer = lazy(() => import("./MarkdownRenderer"));

/** Markdown without HTML and without remote resources. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={classes.text}>
      <Suspense fallback={<p className={classes.plain}>{text}</p>}>
        <MarkdownRenderer text={text} />
      </Suspense>
    </div>
  );
});
