import classes from "./DiffView.module.css";
import type { DiffLine } from "./toolText";

/** A diff by line; signs repeat what the colours show. */
export function DiffView({ lines }: { lines: DiffLine[] }) {
  return (
    <pre className={classes.diff} tabIndex={0}>
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and never move
        <span key={index} className={classes.line} data-sign={line.sign}>
          {`${line.sign} ${line.text}\n`}
        </span>
      ))}
    </pre>
  );
}
