import { CircleCheck, CircleDashed, CirclePlay } from "lucide-react";
import type { useConversation } from "@/chat/useConversation";
import { type TodoStep, useTodo } from "@/chat/useTodo";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

const ICONS = { pending: CircleDashed, active: CirclePlay, done: CircleCheck };

/** The steps that the agent keeps: the current one, and all of them on demand. */
export function TodoPanel({ conversation }: { conversation: ReturnType<typeof useConversation> }) {
  const texts = useTexts().chat.todo;
  const steps = useTodo(conversation);
  if (steps.length === 0) return null;
  const current = steps.find((one) => one.status === "active") ?? steps.find((one) => one.status === "pending");
  const done = steps.filter((one) => one.status === "done").length;
  return (
    <details className={classes.todo} aria-label={texts.label}>
      <summary>
        <span className={classes.todoCount}>{texts.progress(done, steps.length)}</span>
        {current && ` · ${current.text}`}
      </summary>
      <ul className={classes.steps}>
        {steps.map((step, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list is replaced as a whole
          <Step key={index} step={step} />
        ))}
      </ul>
    </details>
  );
}

function Step({ step }: { step: TodoStep }) {
  const texts = useTexts().chat.todo;
  const status = step.status as keyof typeof ICONS;
  const Icon = ICONS[status];
  return (
    <li className={classes.step} data-status={step.status}>
      <Icon size={15} aria-label={texts.statuses[status]} />
      {step.text}
    </li>
  );
}
