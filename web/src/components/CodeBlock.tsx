import { type ReactNode, useRef } from "react";
import classes from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";

/** A code block with a copy button. */
export function CodeBlock({ children }: { children: ReactNode }) {
  const block = useRef<HTMLPreElement>(null);
  return (
    <div className={classes.frame}>
      <pre className={classes.code} ref={block} tabIndex={0}>
        {children}
      </pre>
      <div className={classes.copy}>
        <CopyButton text={() => block.current?.textContent ?? ""} />
      </div>
    </div>
  );
}
