import { Button, Group, Text, Textarea } from "@mantine/core";
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { ApprovalAnswer } from "@/chat/conversationState";
import type { RpcSchemas } from "@/chat/rpc";
import { DiffView } from "@/components/DiffView";
import { parseDiff, showInvisible } from "@/components/toolText";
import { useTexts } from "@/i18n";
import classes from "./ApprovalForm.module.css";

type Question = RpcSchemas["ApprovalQuestion"];

interface Props {
  question: Question;
  onAnswer: (answer: ApprovalAnswer) => void;
}

/** What would run, why it is asked, where, and the answers; the answers stay in view. */
export function ApprovalForm({ question, onAnswer }: Props) {
  const texts = useTexts().chat.question;
  const [rule, setRule] = useState(question.rules.join("\n"));
  const [editing, setEditing] = useState<"rule" | "reason" | null>(null);
  const edited = rule === question.rules.join("\n") ? undefined : rule;
  return (
    <>
      <Text size="sm">{showInvisible(question.description)}</Text>
      <Text size="xs" c="dimmed">
        {texts.folder} <code>{showInvisible(question.folder)}</code>
      </Text>
      <CommandView question={question} />
      {question.diff && <DiffView lines={parseDiff(showInvisible(question.diff))} />}
      {editing === "rule" ? (
        <TextForm
          label={texts.rule}
          value={rule}
          submit={texts.useRule}
          onSubmit={setRule}
          onClose={() => setEditing(null)}
        />
      ) : (
        <Text size="xs" c="dimmed" mb="xs" className={classes.rule}>
          {texts.ruleHelp} <code>{rule.length > 200 ? texts.exactCommand : showInvisible(rule)}</code>{" "}
          <Button size="compact-xs" variant="subtle" onClick={() => setEditing("rule")}>
            {texts.editRule}
          </Button>
        </Text>
      )}
      {editing === "reason" && (
        <TextForm
          label={texts.reason}
          value=""
          submit={texts.deny}
          onSubmit={(reason) => onAnswer({ choice: "deny", reason })}
          onClose={() => setEditing(null)}
        />
      )}
      <Group gap="xs">
        <Button size="xs" onClick={() => onAnswer({ choice: "once" })}>
          {texts.once}
        </Button>
        <Button size="xs" variant="default" onClick={() => onAnswer({ choice: "session", rule: edited })}>
          {texts.session}
        </Button>
        {question.allow_permanent && (
          <Button size="xs" variant="default" onClick={() => onAnswer({ choice: "always", rule: edited })}>
            {texts.always}
          </Button>
        )}
        <Button size="xs" color="red" variant="light" onClick={() => onAnswer({ choice: "deny" })}>
          {texts.deny}
        </Button>
        <Button size="xs" color="red" variant="subtle" onClick={() => setEditing("reason")}>
          {texts.denyWithReason}
        </Button>
      </Group>
    </>
  );
}

/** The complete command; the first risky line is scrolled into view. */
function CommandView({ question }: { question: Question }) {
  const risky = new Set(question.risky_lines);
  const block = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const line = block.current?.querySelector<HTMLElement>("[data-risky]");
    if (block.current && line) block.current.scrollTop = Math.max(0, line.offsetTop - block.current.clientHeight / 2);
  }, []);
  return (
    <pre className={classes.command} ref={block} tabIndex={0}>
      {showInvisible(question.command)
        .split("\n")
        .map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and never move
          <span key={index} className={classes.line} data-risky={risky.has(index) || undefined}>
            {`${line}\n`}
          </span>
        ))}
    </pre>
  );
}

interface TextFormProps {
  label: string;
  value: string;
  submit: string;
  onSubmit: (text: string) => void;
  onClose: () => void;
}

function TextForm({ label, value, submit, onSubmit, onClose }: TextFormProps) {
  const [text, setText] = useState(value);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = (event: FormEvent | KeyboardEvent) => {
    event.preventDefault();
    onSubmit(text.trim());
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && text.trim()) send(event);
  };
  return (
    <form onSubmit={send}>
      <Group gap="xs" mb="xs" align="flex-start">
        <Textarea
          flex={1}
          size="xs"
          autosize
          minRows={1}
          maxRows={6}
          onKeyDown={onKeyDown}
          aria-label={label}
          placeholder={label}
          value={text}
          ref={field}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" disabled={!text.trim()}>
          {submit}
        </Button>
      </Group>
    </form>
  );
}
