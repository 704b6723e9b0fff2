import { Button } from "@mantine/core";
import { ArrowDown } from "lucide-react";
import { memo, type ReactNode, useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { AnswerItem, Item } from "@/chat/conversationState";
import { type TurnEnd, turnEnds } from "@/chat/turns";
import type { PromptVersions } from "@/chat/usePromptVersions";
import { Markdown } from "@/components/Markdown";
import { ToolRow } from "@/components/ToolRow";
import { UsageLine } from "@/components/UsageLine";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";
import { AnswerActions, type MessageHandlers } from "./MessageActions";
import { PromptView } from "./PromptView";

const END_TOLERANCE_PIXELS = 80;

interface Props {
  items: Item[];
  isRunning: boolean;
  status: string;
  empty: ReactNode;
  handlers: MessageHandlers;
  versions: ReadonlyMap<number, PromptVersions>;
}

/** The messages of a conversation; follows new output only while scrolled to the end. */
export function ConversationLog({ items, isRunning, status, empty, handlers, versions }: Props) {
  const texts = useTexts().chat;
  const scroll = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const last = items.at(-1);
  const turns = useMemo(() => turnEnds(items), [items]);
  const lastPrompt = items.findLast((one) => one.kind === "user" && !one.isQueued)?.key;

  // biome-ignore lint/correctness/useExhaustiveDependencies: another conversation and a new prompt are read from their end
  useLayoutEffect(() => setAtEnd(true), [lastPrompt]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something was added
  useLayoutEffect(() => {
    if (isAtEnd) scrollToEnd(scroll.current);
  }, [items, isAtEnd]);

  if (items.length === 0) return <div className={classes.scroll}>{empty}</div>;
  return (
    <div
      className={classes.scroll}
      ref={scroll}
      onScroll={(event) => setAtEnd(isNearEnd(event.currentTarget))}
      tabIndex={0}
      role="log"
      aria-label={texts.conversation}
      aria-busy={isRunning}
    >
      <div className={classes.items}>
        {items.map((item) => (
          <LogItem
            key={item.key}
            item={item}
            isRunning={isRunning}
            turn={turns.get(item.key)}
            isLastPrompt={item.key === lastPrompt}
            handlers={handlers}
            versions={item.kind === "user" && item.messageId !== null ? versions.get(item.messageId) : undefined}
          />
        ))}
        {isRunning && (last?.kind !== "answer" || status) && (
          <p className={classes.status} role="status">
            {status || texts.working}
          </p>
        )}
      </div>
      {!isAtEnd && (
        <div className={classes.latest}>
          <Button
            size="xs"
            variant="default"
            leftSection={<ArrowDown size={14} />}
            onClick={() => scrollToEnd(scroll.current)}
          >
            {texts.latest}
          </Button>
        </div>
      )}
    </div>
  );
}

interface ItemProps {
  item: Item;
  isRunning: boolean;
  turn: TurnEnd | undefined;
  isLastPrompt: boolean;
  handlers: MessageHandlers;
  versions: PromptVersions | undefined;
}

const LogItem = memo(
  function Shown({ item, isRunning, turn, isLastPrompt, handlers, versions }: ItemProps) {
    const texts = useTexts().chat;
    if (item.kind === "user") {
      return <PromptView {...{ item, isRunning, handlers, versions }} isLast={isLastPrompt} />;
    }
    if (item.kind === "note" && item.isOutput && item.text.includes("\n")) {
      return (
        <pre className={classes.output} tabIndex={0}>
          {item.text}
        </pre>
      );
    }
    if (item.kind === "note" && item.notice === "summarized") {
      return (
        <details className={classes.note}>
          <summary>{texts.notices.summarized}</summary>
          {item.text}
        </details>
      );
    }
    if (item.kind === "note") {
      return (
        <p className={classes.note} data-tone={item.tone}>
          {item.text || (item.notice && texts.notices[item.notice])}
        </p>
      );
    }
    if (item.kind === "tool") return <ToolRow {...item} isRunning={isRunning && item.result === null} />;
    return (
      <div className={classes.answer}>
        <AnswerView item={item} />
        {turn && !item.isStreaming && (
          <div className={classes.foot}>
            {turn.usage && <UsageLine usage={turn.usage} />}
            <AnswerActions text={item.text} {...{ turn, handlers, isRunning }} />
          </div>
        )}
      </div>
    );
  },
  (before, after) =>
    (Object.keys(after) as (keyof ItemProps)[]).every((name) =>
      name === "turn" ? isSameTurn(before.turn, after.turn) : before[name] === after[name],
    ),
);

function isSameTurn(one: TurnEnd | undefined, other: TurnEnd | undefined): boolean {
  if (!one || !other) return one === other;
  return (
    one.prompt === other.prompt &&
    one.nextPromptId === other.nextPromptId &&
    one.isLast === other.isLast &&
    one.usage?.requests === other.usage?.requests
  );
}

function AnswerView({ item }: { item: AnswerItem }) {
  const texts = useTexts().chat;
  const text = useDeferredValue(item.text); // rendering a long answer must not block input
  return (
    <article className={classes.item}>
      {item.reasoning && (
        <details className={classes.reasoning}>
          <summary>{texts.reasoning}</summary>
          <p>{item.reasoning}</p>
        </details>
      )}
      <Markdown text={text} />
    </article>
  );
}

function isNearEnd(element: HTMLElement): boolean {
  return element.scrollHeight - element.scrollTop - element.clientHeight < END_TOLERANCE_PIXELS;
}

function scrollToEnd(element: HTMLElement | null): void {
  if (element) element.scrollTop = element.scrollHeight;
}
