import { Badge, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { Message, SessionDetail } from "@/api/types";
import { summarizeArguments } from "@/chat/conversationState";
import { Markdown } from "@/components/Markdown";
import { ToolRow } from "@/components/ToolRow";
import { UsageLine } from "@/components/UsageLine";
import { useTexts } from "@/i18n";
import { formatDateTime, formatDuration, formatInteger, formatTime } from "@/i18n/format";
import type { BlockPart, MessageBlock } from "./messageBlocks";
import classes from "./Transcript.module.css";

interface Props {
  block: MessageBlock;
  session: SessionDetail;
  isTarget: boolean;
}

/** A block of messages with their tool calls. */
export const MessageBlockView = memo(function BlockView({ block, session, isTarget }: Props) {
  const texts = useTexts().sessions.transcript;
  const message = block.parts[0]?.message;
  if (!message) return null;
  return (
    <article className={classes.block} data-role={message.role} data-state={message.state} data-target={isTarget}>
      <header className={classes.author}>
        <strong>{texts.roles[message.role] ?? message.role}</strong>
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId: session.id }}
          search={{ message: message.id } as never}
          title={`${formatDateTime(message.timestamp)} · ${texts.linkToMessage}`}
        >
          {formatTime(message.timestamp)}
        </Link>
        <BlockFigures block={block} />
        {message.state !== "active" && (
          <Badge size="xs" variant="light" color="gray" tt="none">
            {texts[message.state]}
          </Badge>
        )}
      </header>
      {block.parts.map((part) => (
        <div key={part.message.id} className={classes.part} data-ids={part.ids.join(" ")}>
          <BlockPartView part={part} />
        </div>
      ))}
    </article>
  );
});

/** How long an answer took, its tokens and their cost, where that is known. */
function BlockFigures({ block }: { block: MessageBlock }) {
  const texts = useTexts();
  const { seconds, tokens, usage } = block;
  return (
    <>
      {seconds !== null && (
        <span title={texts.sessions.transcript.tookHelp}>
          {seconds < 1 ? texts.sessions.transcript.underASecond : formatDuration(seconds)}
        </span>
      )}
      {usage && <UsageLine usage={usage} hasTime={false} />}
      {!usage && tokens > 0 && <span>{texts.general.tokens(formatInteger(tokens))}</span>}
    </>
  );
}

function BlockPartView({ part }: { part: BlockPart }) {
  return (
    <>
      <MessageContent message={part.message} />
      {part.calls.map(({ call, result }) => (
        <ToolRow
          key={call.id || call.name}
          name={call.name}
          context={summarizeArguments(call.arguments)}
          args={call.arguments}
          result={result?.text ?? null}
          isFailure={result?.is_failure}
          isRunning={false}
        />
      ))}
    </>
  );
}

function MessageContent({ message }: { message: Message }) {
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
        <details className={classes.reasoning}>
          <summary>{texts.reasoning}</summary>
          <p>{message.reasoning}</p>
        </details>
      )}
      {message.text &&
        (message.role === "assistant" ? (
          <Markdown text={message.text} />
        ) : (
          <Text component="p" className={classes.userText}>
            {message.text}
          </Text>
        ))}
      {message.images.map((url) => (
        <img key={url.slice(-64)} src={url} alt={texts.image} className={classes.image} loading="lazy" />
      ))}
    </>
  );
}
