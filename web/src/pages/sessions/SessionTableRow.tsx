import { Badge, Checkbox } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Pin } from "lucide-react";
import { memo } from "react";
import type { SessionItem } from "@/api/types";
import { ShortTime } from "@/components/ShortTime";
import { sessionTitle } from "@/components/sessionTitle";
import { useTexts } from "@/i18n";
import { formatCents, formatCompact, formatInteger } from "@/i18n/format";
import { type Column, type ColumnId, folderName } from "./columns";
import classes from "./SessionTable.module.css";

interface Props {
  session: SessionItem;
  columns: Column[];
  index: number;
  top: number;
  isSelected: boolean;
  onToggle: (id: string, isRange: boolean) => void;
}

/** One session in the table. */
export const SessionTableRow = memo(function SessionTableRow(props: Props) {
  const { session, columns, index, top, isSelected, onToggle } = props;
  const texts = useTexts();
  const name = sessionTitle(session, texts.general.untitled);
  return (
    <tr
      className={classes.row}
      data-chosen={isSelected}
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)` }}
    >
      <td className={classes.cell}>
        <Checkbox
          aria-label={texts.sessions.select(name)}
          checked={isSelected}
          onChange={(event) => onToggle(session.id, (event.nativeEvent as MouseEvent).shiftKey === true)}
          size="xs"
          className={classes.check}
        />
      </td>
      <td className={classes.cell} data-title>
        <span className={classes.top}>
          {session.pinned && <Pin size={13} aria-label={texts.sessions.pinned} className={classes.pin} />}
          {session.unread && <span className={classes.dot} role="img" aria-label={texts.sessions.unread} />}
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: session.id }}
            className={classes.name}
            title={name}
            data-list-item
          >
            {name}
          </Link>
          {session.is_running && (
            <Badge size="xs" variant="light" color="green" className={classes.tag}>
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
          <span>{texts.general.messages(session.message_count)}</span>
          {session.cost_usd ? <span>{formatCents(session.cost_usd)}</span> : null}
          <ShortTime at={session.last_active} />
        </span>
      </td>
      {columns.map((column) => (
        <td key={column.id} className={classes.cell} data-number={column.isNumber} data-extra>
          <CellValue session={session} id={column.id} />
        </td>
      ))}
    </tr>
  );
});

function CellValue({ session, id }: { session: SessionItem; id: ColumnId }) {
  switch (id) {
    case "source":
      return session.source;
    case "model":
      return <span title={session.model ?? undefined}>{session.model?.split("/").at(-1)}</span>;
    case "folder":
      return <span title={session.cwd ?? undefined}>{folderName(session.cwd)}</span>;
    case "branch":
      return <span title={session.git_branch ?? undefined}>{session.git_branch}</span>;
    case "messages":
      return formatInteger(session.message_count);
    case "tokens":
      return formatCompact(session.input_tokens + session.output_tokens);
    case "cost":
      return session.cost_usd === null ? "–" : formatCents(session.cost_usd);
    case "tool_errors":
      return session.tool_errors === null ? "–" : formatInteger(session.tool_errors);
    case "started":
      return <ShortTime at={session.started_at} />;
    case "last_active":
      return <ShortTime at={session.last_active} />;
  }
}
