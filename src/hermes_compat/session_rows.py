"""The dictionaries that hermes-agent's store returns, made from typed rows.

Those of sessions have the columns of `SessionRow`, those of messages the ones of `MessageRow`, and
both the further columns of the file. Sessions in lists lack `system_prompt`, and have the fields
of `LIST_FIELDS`, and `_lineage_root_id` if they continue others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from hermes_state.messages import rows as message_rows
from hermes_state.sessions import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_state.delivery.handoffs import Handoff
    from hermes_state.engine.transaction import Columns
    from hermes_state.messages.edits import Rewind
    from hermes_state.messages.history import (
        AnchoredView,
        ExportedSession,
        MessageWindow,
        RecentPrompt,
    )
    from hermes_state.messages.rows import MessageRow
    from hermes_state.search.hits import FoundMessage, FoundMessageDict
    from hermes_state.sessions.records import ListedSession, SessionRow
    from hermes_state.sessions.retention import HouseKeeping
    from hermes_state.sessions.usage import UsageTotals

RowDict: TypeAlias = "dict[str, object]"

LIST_FIELDS: Final = ("preview", "last_active", "kind", "unread")


def session_dict(columns: Columns, session: SessionRow | None) -> RowDict | None:
    """All columns of a session."""
    return None if session is None else records.by_column(columns, session)


def session_dicts(columns: Columns, sessions: Iterable[SessionRow]) -> list[RowDict]:
    """All columns of sessions."""
    return [records.by_column(columns, session) for session in sessions]


def listed_dicts(columns: Columns, rows: Iterable[ListedSession]) -> list[RowDict]:
    """The rows of a list, without the system prompt."""
    names = (*records.COLUMNS, *records.other_columns(columns), *LIST_FIELDS)
    return [_listed(names, row) for row in rows]


def _listed(names: tuple[str, ...], row: ListedSession) -> RowDict:
    session, preview, last_active, root_id, kind, unread = row
    # One tuple and one dictionary per row, because lists are long.
    values = session[:-1] + session.others + (preview, last_active, kind, unread)
    listed: RowDict = dict(zip(names, values, strict=True))
    del listed["system_prompt"]
    if root_id != session.id:
        listed["_lineage_root_id"] = root_id
    return listed


def message_dicts(columns: Columns, messages: Iterable[MessageRow]) -> list[RowDict]:
    """Message rows."""
    return [message_rows.by_column(columns, message) for message in messages]


def export_dict(columns: Columns, export: ExportedSession | None) -> RowDict | None:
    """A session with its messages."""
    return None if export is None else _export(columns, export)


def export_dicts(columns: Columns, exports: Iterable[ExportedSession]) -> list[RowDict]:
    """Sessions with their messages."""
    return [_export(columns, export) for export in exports]


def _export(columns: Columns, export: ExportedSession) -> RowDict:
    messages = message_dicts(columns, export.messages)
    return {**records.by_column(columns, export.session), "messages": messages}


def hit_dicts(_columns: Columns, hits: Iterable[FoundMessage]) -> list[FoundMessageDict]:
    """Search results."""
    return [hit.as_dict() for hit in hits]


def prompt_dicts(_columns: Columns, prompts: Iterable[RecentPrompt]) -> list[RowDict]:
    """The latest user messages."""
    return [prompt._asdict() for prompt in prompts]


def window_dict(columns: Columns, view: MessageWindow) -> RowDict:
    """Rows around a message."""
    return {
        "window": message_dicts(columns, view.window),
        "messages_before": view.messages_before,
        "messages_after": view.messages_after,
    }


def view_dict(columns: Columns, view: AnchoredView) -> RowDict:
    """Rows around a message, with the first and last rows of the session."""
    return {
        **window_dict(columns, view.around),
        "bookend_start": message_dicts(columns, view.bookend_start),
        "bookend_end": message_dicts(columns, view.bookend_end),
    }


def rewind_dict(columns: Columns, rewind: Rewind) -> RowDict:
    """The result of a rewind."""
    return {
        "rewound_count": rewind.rewound_count,
        "target_message": message_dicts(columns, [rewind.target_message])[0],
        "new_head_id": rewind.new_head_id,
    }


def handoff_dict(_columns: Columns, handoff: Handoff | None) -> RowDict | None:
    """The state of a hand-off."""
    return None if handoff is None else handoff._asdict()


def house_keeping_dict(_columns: Columns, done: HouseKeeping) -> RowDict:
    """What was done to keep the history small; the file is never vacuumed without asking."""
    return {
        "skipped": done.is_skipped,
        "pruned": done.pruned,
        "purged": done.purged,
        "vacuumed": False,
    }


def usage_dict(_columns: Columns, totals: UsageTotals) -> RowDict:
    """Totals over all sessions."""
    return totals._asdict()
