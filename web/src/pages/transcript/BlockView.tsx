import { Badge, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { Message, SessionDetail } from "@/api/types";
import { contextOf } from "@/chat/state";
import { Markdown } from "@/components/Markdown";
import { ToolRow } from "@/components/ToolRow";
import { useTexts } from "@/i18n";
import { clock, moment } from "@/i18n/format";
import type { Block, Part } from "./blocks";
import classes from "./Transcript.module.css";

interface Props {
  block: Block;
  session: SessionDetail;
  isTarget: boolean;
}

/** A message and the tools it called. */
export const BlockView = memo(function BlockView({ block, session, isTarget }: Props) {
  const texts = useTexts().sessions.transcript;
  const message = block.parts[0]?.message;
  if (!message) return null;
  return (
    <article className={classes.block} data-role={message.role} data-state={message.state} data-target={isTarget}>
      <header className={classes.by}>
        <strong>{texts.roles[message.role] ?? message.role}</strong>
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: session.id }}
          search={{ message: message.id } as never}
          title={`${moment(message.timestamp)} · ${texts.linkToMessage}`}
        >
          {clock(message.timestamp)}
        </Link>
        {message.state !== "active" && (
          <Badge size="xs" variant="light" color="gray" tt="none">
            {texts[message.state]}
          </Badge>
        )}
      </header>
      {block.parts.map((part) => (
        <PartView key={part.message.id} part={part} />
      ))}
    </article>
  );
});

function PartView({ part }: { part: Part }) {
  return (
    <>
      <Words message={part.message} />
      {part.calls.map(({ call, result }) => (
        <ToolRow
          key={call.id || call.name}
          name={call.name}
          context={contextOf(call.arguments)}
          args={call.arguments}
          result={result?.text ?? null}
          isFailure={result?.is_failure}
          isRunning={false}
        />
      ))}
    </>
  );
}

function Words({ message }: { message: Message }) {
  const texts = useTexts().sessions.transcript;
  if (message.role === "tool") {
    return (
      <ToolRow
        name={message.tool_name ?? "tool"}
        context=""
        args=""
        result={message.text}
        isFailure={message.is_failure}
        isRunning={false}
      />
    );
  }
  return (
    <>
      {message.reasoning && (
        <details className={classes.thoughts}>
          <summary>{texts.reasoning}</summary>
          <p>{message.reasoning}</p>
        </details>
      )}
      {message.text &&
        (message.role === "assistant" ? (
          <Markdown text={message.text} />
        ) : (
          <Text component="p" className={classes.said}>
            {message.text}
          </Text>
        ))}
      {message.images.map((url) => (
        <img key={url.slice(-64)} src={url} alt={texts.image} className={classes.picture} loading="lazy" />
      ))}
    </>
  );
}
