"""Columns of hermes-agent that an import of its history keeps as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.messages.rows import to_utf8_text
from hermes_state.sessions.records import EXTRA_COLUMNS
from hermes_state.sessions.rows import UPSERT_EXTRA, prompt_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_state.engine.transaction import Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.imports.rows import ImportedMessage

SESSION_COLUMNS: Final = (
    "user_id", "model_config", "system_prompt", "session_key", "chat_id", "chat_type",
    "thread_id", "display_name", "origin_json", "expiry_finalized", "git_repo_root",
    "rewind_count", "title_source", "profile_name", "pinned", "hidden", "last_read_at",
)  # fmt: skip
MESSAGE_COLUMNS: Final = (
    "token_count", "reasoning_content", "reasoning_details", "codex_reasoning_items",
    "codex_message_items", "platform_message_id", "active", "compacted", "effect_disposition",
    "api_content", "display_kind", "display_metadata",
)  # fmt: skip
MESSAGE_DEFAULTS: Final[dict[str, SqlValue]] = {"active": 1, "compacted": 0}
SET_COUNTS = "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?"
HIDE_ROW = """
    UPDATE messages SET active = 0, compacted = ? WHERE id = ? AND coalesce(active, 1) = 1
"""


def session_values(tx: Tx, columns: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """The values of a new session row; those that the file has no column for are left out."""
    values = {name: _text(columns[name]) for name in SESSION_COLUMNS if columns.get(name)}
    prompt = values.pop("system_prompt", None)
    if isinstance(prompt, str):
        values |= prompt_columns(tx, prompt)
    return values


def save_extras(tx: Tx, session_id: str, columns: Mapping[str, SqlValue]) -> None:
    """Store the values of columns that only newer files have."""
    for name in EXTRA_COLUMNS - set(tx.columns.sessions):
        value = columns.get(name)
        if value:
            text = repr(value) if isinstance(value, float) else value
            tx.execute(UPSERT_EXTRA, (session_id, name, text))


def set_counts(tx: Tx, session_id: str, columns: Mapping[str, SqlValue]) -> None:
    """Give a new session the counts of hermes-agent, which leave out compacted messages."""
    messages, calls = columns.get("message_count"), columns.get("tool_call_count")
    if messages:
        tx.execute(SET_COUNTS, (messages, calls or 0, session_id))


def message_names(tx: Tx, messages: Iterable[ImportedMessage]) -> tuple[str, ...]:
    """The further columns of these messages; none for those of other agents."""
    if not any(message.columns for message in messages):
        return ()
    return tuple(name for name in MESSAGE_COLUMNS if name in tx.columns.messages)


def message_values(message: ImportedMessage, names: Iterable[str]) -> list[SqlValue]:
    """The values of a message in these columns."""
    values = (message.columns.get(name) for name in names)
    return [
        MESSAGE_DEFAULTS.get(name) if value is None else _text(value)
        for name, value in zip(names, values, strict=True)
    ]


def hide_row(tx: Tx, row_id: int, message: ImportedMessage) -> bool:
    """Hide a stored message that was undone or compacted since; whether it changed."""
    if message.columns.get("active", 1) or not message.columns:
        return False
    compacted = message.columns.get("compacted") or 0
    return tx.execute(HIDE_ROW, (compacted, row_id)).rowcount > 0


def _text(value: SqlValue) -> SqlValue:
    return to_utf8_text(value) if isinstance(value, str) else value
