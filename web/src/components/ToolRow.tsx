import { ChevronRight, CircleAlert, CircleCheck, LoaderCircle, Wrench } from "lucide-react";
import { useTexts } from "@/i18n";
import { CodeBlock } from "./CodeBlock";
import { DiffView } from "./DiffView";
import classes from "./ToolRow.module.css";
import { diffFromArguments, formatToolText } from "./toolText";

export interface ToolRowProps {
  name: string;
  context: string;
  args: string;
  /** Output so far. */
  output?: string;
  result: string | null;
  isFailure?: boolean | null;
  /** How the call ended: done, failed, denied, or its exit code in words. */
  status?: string;
  isRunning: boolean;
  seconds?: number | null;
}

/** A tool call: one line that expands to arguments and result. */
export function ToolRow(props: ToolRowProps) {
  const texts = useTexts().chat.tool;
  const { name, context, args, output, result, isRunning, seconds, status = "done" } = props;
  const isFailure = props.isFailure ?? (result !== null && status !== "done");
  const diff = diffFromArguments(name, args);
  const shown = result ?? output ?? "";
  return (
    <details className={classes.tool} data-failure={isFailure}>
      <summary className={classes.line}>
        <ChevronRight size={14} className={classes.mark} aria-hidden />
        <StatusIcon isRunning={isRunning} isFailure={isFailure} isDone={result !== null} />
        <span className={classes.name}>{name}</span>
        <span className={classes.context}>{context}</span>
        {isFailure && status !== "done" && <span className={classes.status}>{status}</span>}
        {seconds != null && status !== "denied" && <span className={classes.time}>{seconds.toFixed(1)} s</span>}
      </summary>
      <div className={classes.body}>
        {diff ? <DiffView lines={diff} /> : args && <CodeBlock>{formatToolText(args)}</CodeBlock>}
        {shown ? (
          <CodeBlock>{formatToolText(shown)}</CodeBlock>
        ) : (
          <p className={classes.noOutput}>{isRunning ? texts.running : texts.noOutput}</p>
        )}
      </div>
    </details>
  );
}

function StatusIcon({
  isRunning,
  isFailure,
  isDone,
}: {
  isRunning: boolean;
  isFailure?: boolean | null;
  isDone: boolean;
}) {
  const texts = useTexts().chat.tool;
  if (isRunning) return <LoaderCircle size={15} className={classes.spinning} aria-label={texts.running} />;
  if (isFailure) return <CircleAlert size={15} className={classes.bad} aria-label={texts.failed} />;
  if (isDone) return <CircleCheck size={15} className={classes.good} aria-label={texts.done} />;
  return <Wrench size={15} aria-label={texts.unknown} />;
}
