"""The dictionaries that hermes-agent's store returns, made from typed rows.

They also have the columns of the file that are not named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, cast

from hermes_state.messages import rows as message_rows
from hermes_state.sessions import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.messages import Content, ToolCallDict
    from hermes_state.delivery.handoffs import Handoff
    from hermes_state.engine.columns import Columns
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


LIST_FIELDS: Final = ("preview", "last_active", "kind", "unread")


class SessionDict(TypedDict, total=False):
    """A session. Lists lack `system_prompt`; only they have the fields from `preview` on."""

    id: str
    source: str
    user_id: str | None
    model: str | None
    model_config: str | None
    system_prompt: str | None
    parent_session_id: str | None
    started_at: float
    ended_at: float | None
    end_reason: str | None
    cwd: str | None
    title: str | None
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    rewind_count: int
    archived: int
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None
    handoff_state: str | None
    handoff_platform: str | None
    handoff_error: str | None
    pinned: int
    hidden: int
    title_source: str | None
    last_read_at: float | None
    session_key: str | None
    chat_id: str | None
    chat_type: str | None
    thread_id: str | None
    display_name: str | None
    origin_json: str | None
    profile_name: str | None
    git_branch: str | None
    git_repo_root: str | None
    expiry_finalized: int
    preview: str
    last_active: float
    kind: str
    unread: bool
    trashed_at: float  # only of a session in the trash
    _lineage_root_id: str


class MessageDict(TypedDict):
    """A message row."""

    id: int
    session_id: str
    role: str
    content: Content
    tool_call_id: str | None
    tool_calls: list[ToolCallDict] | str | None
    tool_name: str | None
    timestamp: float
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: str | None
    codex_reasoning_items: str | None
    codex_message_items: str | None
    platform_message_id: str | None
    observed: int | None
    active: int | None
    compacted: int | None


class ExportDict(SessionDict):
    """A session with its messages."""

    messages: list[MessageDict]


class RecentPromptDict(TypedDict):
    """A user message: a possible target of a rewind."""

    id: int
    timestamp: float
    preview: str


class MessageWindowDict(TypedDict):
    """Rows around a message."""

    window: list[MessageDict]
    messages_before: int
    messages_after: int


class AnchoredViewDict(MessageWindowDict):
    """Rows around a message, with the first and last rows of the session."""

    bookend_start: list[MessageDict]
    bookend_end: list[MessageDict]


class RewindDict(TypedDict):
    """The result of a rewind."""

    rewound_count: int
    target_message: MessageDict
    new_head_id: int | None


class HandoffDict(TypedDict):
    """The state of a hand-off."""

    state: str
    platform: str
    error: str | None


class HouseKeepingDict(TypedDict):
    """What was done to keep the history small."""

    skipped: bool
    pruned: int
    purged: int
    vacuumed: bool


class UsageTotalsDict(TypedDict):
    """Totals over all sessions."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    cost_usd: float


def session_dict(columns: Columns, session: SessionRow | None) -> SessionDict | None:
    """All columns of a session."""
    return None if session is None else _session(columns, session)


def session_dicts(columns: Columns, sessions: Iterable[SessionRow]) -> list[SessionDict]:
    """All columns of sessions."""
    return [_session(columns, session) for session in sessions]


def _session(columns: Columns, session: SessionRow) -> SessionDict:
    return cast("SessionDict", records.by_column(columns, session))


def listed_dicts(columns: Columns, rows: Iterable[ListedSession]) -> list[SessionDict]:
    """The rows of a list, without the system prompt, which is the last column."""
    names = (*records.COLUMNS[:-1], *records.other_columns(columns), *LIST_FIELDS)
    return [_listed(names, row) for row in rows]


def _listed(names: tuple[str, ...], row: ListedSession) -> SessionDict:
    session, preview, last_active, root_id, kind, unread = row
    # One tuple and one dictionary per row, because lists are long.
    values = session[:-2] + session.others + (preview, last_active, kind, unread)
    listed = cast("SessionDict", dict(zip(names, values, strict=True)))
    if root_id != session.id:
        listed["_lineage_root_id"] = root_id
    return listed


def message_dicts(columns: Columns, messages: Iterable[MessageRow]) -> list[MessageDict]:
    """Message rows."""
    return [cast("MessageDict", message_rows.by_column(columns, message)) for message in messages]


def export_dict(columns: Columns, export: ExportedSession | None) -> ExportDict | None:
    """A session with its messages."""
    return None if export is None else _export(columns, export)


def export_dicts(columns: Columns, exports: Iterable[ExportedSession]) -> list[ExportDict]:
    """Sessions with their messages."""
    return [_export(columns, export) for export in exports]


def _export(columns: Columns, export: ExportedSession) -> ExportDict:
    messages = message_dicts(columns, export.messages)
    return {**_session(columns, export.session), "messages": messages}


def hit_dicts(_columns: Columns, hits: Iterable[FoundMessage]) -> list[FoundMessageDict]:
    """Search results."""
    return [hit.as_dict() for hit in hits]


def prompt_dicts(_columns: Columns, prompts: Iterable[RecentPrompt]) -> list[RecentPromptDict]:
    """The latest user messages."""
    return [
        {"id": prompt.id, "timestamp": prompt.timestamp, "preview": prompt.preview}
        for prompt in prompts
    ]


def window_dict(columns: Columns, view: MessageWindow) -> MessageWindowDict:
    """Rows around a message."""
    return {
        "window": message_dicts(columns, view.window),
        "messages_before": view.messages_before,
        "messages_after": view.messages_after,
    }


def view_dict(columns: Columns, view: AnchoredView) -> AnchoredViewDict:
    """Rows around a message, with the first and last rows of the session."""
    return {
        **window_dict(columns, view.around),
        "bookend_start": message_dicts(columns, view.bookend_start),
        "bookend_end": message_dicts(columns, view.bookend_end),
    }


def rewind_dict(columns: Columns, rewind: Rewind) -> RewindDict:
    """The result of a rewind."""
    return {
        "rewound_count": rewind.rewound_count,
        "target_message": message_dicts(columns, [rewind.target_message])[0],
        "new_head_id": rewind.new_head_id,
    }


def handoff_dict(_columns: Columns, handoff: Handoff | None) -> HandoffDict | None:
    """The state of a hand-off."""
    if handoff is None:
        return None
    return {"state": handoff.state, "platform": handoff.platform, "error": handoff.error}


def house_keeping_dict(_columns: Columns, done: HouseKeeping) -> HouseKeepingDict:
    """What was done to keep the history small; the file is never vacuumed without asking."""
    return {
        "skipped": done.is_skipped,
        "pruned": done.pruned,
        "purged": done.purged,
        "vacuumed": False,
    }


def usage_dict(_columns: Columns, totals: UsageTotals) -> UsageTotalsDict:
    """Totals over all sessions."""
    return cast("UsageTotalsDict", totals._asdict())
