import { Button } from "@mantine/core";
import { ArrowDown } from "lucide-react";
import { memo, type ReactNode, useDeferredValue, useLayoutEffect, useRef, useState } from "react";
import type { AnswerItem, Item } from "@/chat/conversationState";
import { Markdown } from "@/components/Markdown";
import { ToolRow } from "@/components/ToolRow";
import { useTexts } from "@/i18n";
import classes from "./ChatPage.module.css";

const END_TOLERANCE_PIXELS = 80;

interface Props {
  items: Item[];
  isRunning: boolean;
  status: string;
  empty: ReactNode;
}

/** The messages of a conversation; follows new output only while scrolled to the end. */
export function ConversationLog({ items, isRunning, status, empty }: Props) {
  const texts = useTexts().chat;
  const scroll = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const last = items.at(-1);

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
          <LogItem key={item.key} item={item} isRunning={isRunning} />
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

const LogItem = memo(function Shown({ item, isRunning }: { item: Item; isRunning: boolean }) {
  const texts = useTexts().chat;
  if (item.kind === "user") {
    return (
      <div className={classes.user} data-waiting={item.isQueued}>
        {item.text}
        {item.imageCount > 0 && <div className={classes.status}>{texts.images(item.imageCount)}</div>}
        {item.isQueued && <div className={classes.status}>{texts.queued}</div>}
      </div>
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
  return <AnswerView item={item} />;
});

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
