import { Badge, Checkbox } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Pin } from "lucide-react";
import { memo } from "react";
import type { SessionItem } from "@/api/types";
import { RelativeTime } from "@/components/RelativeTime";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { formatCompact, formatDollars } from "@/i18n/format";
import classes from "./Sessions.module.css";

interface Props {
  session: SessionItem;
  isSelected: boolean;
  onToggle: (id: string) => void;
}

/** One session in the list. */
export const SessionRow = memo(function SessionRow({ session, isSelected, onToggle }: Props) {
  const texts = useTexts();
  const name = sessionTitle(session, texts.general.untitled);
  return (
    <div className={classes.row} data-chosen={isSelected}>
      <Checkbox
        aria-label={texts.sessions.select(name)}
        checked={isSelected}
        onChange={() => onToggle(session.id)}
        size="xs"
      />
      <Link to="/sessions/$sessionId" params={{ sessionId: session.id }} className={classes.link}>
        <span className={classes.top}>
          {session.pinned && <Pin size={13} aria-label={texts.sessions.pinned} className={classes.pin} />}
          {session.unread && <span className={classes.dot} role="img" aria-label={texts.sessions.unread} />}
          <span className={classes.name}>{name}</span>
          {session.is_running && (
            <Badge size="xs" variant="light" color="green">
              {texts.sessions.running}
            </Badge>
          )}
          {session.tags.map((tag) => (
            <Badge key={tag} size="xs" variant="outline" tt="none" className={classes.tag}>
              {tag}
            </Badge>
          ))}
        </span>
        <span className={classes.meta}>
          <span>{session.source}</span>
          {session.model && <span className={classes.model}>{session.model}</span>}
          <span>{texts.general.messages(session.message_count)}</span>
          {session.input_tokens + session.output_tokens > 0 && (
            <span className={classes.extra}>
              {texts.general.tokens(formatCompact(session.input_tokens + session.output_tokens))}
            </span>
          )}
          {session.cost_usd ? <span className={classes.extra}>{formatDollars(session.cost_usd)}</span> : null}
        </span>
      </Link>
      <span className={classes.time}>
        <RelativeTime at={session.last_active} />
      </span>
    </div>
  );
});
