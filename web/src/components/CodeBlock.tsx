import { type ReactNode, useRef } from "react";
import classes from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";

/** Code, with a way to take it along. */
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
