"""Opening the history for reading, and saying what a conversation's row means."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_cli.output import Column
from hermes_conversation.latest import latest_session_in
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.config.probe import may_be_set
from hermes_core.errors import StoreUnavailableError, UsageError
from hermes_core.paths import state_db_path
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.output import Output

    Change = Callable[[SessionDB, str], object]

Row = dict[str, Any]

COLUMNS = (
    Column("id", style="cyan"),
    Column("when", optional=True),
    Column("source", optional=True),
    Column("messages", right=True, optional=True),
    Column("conversation", flexible=True),
    Column("state", optional=True, style="dim"),
)

NO_HISTORY = "No conversations yet (no history at {path})."
LISTED_FIELDS = (
    "id", "title", "preview", "source", "model", "started_at", "last_active", "ended_at",
    "end_reason", "message_count", "cwd", "archived", "pinned",
)  # fmt: skip


def reading() -> SessionDB:
    """The history, settled after crashes; read-only where it cannot be written."""
    if exists():
        with contextlib.suppress(StoreUnavailableError):
            return SessionDB(keeper=keep_facts)
    return SessionDB(read_only=True)


def writing() -> SessionDB:
    """The history, to change something in it; it has to be there."""
    if not exists():
        raise StoreUnavailableError(no_history())
    return SessionDB(keeper=keep_facts)


def chosen(db: SessionDB, resume: str | None, *, is_latest: bool) -> str | None:
    """The conversation to go on with, a named one or the latest of this folder; None for a new."""
    if resume:
        return str(db.resolve_resume_session_id(db.resolve(resume)))
    if not is_latest:
        return None
    here = str(Path.cwd().resolve())
    found = latest_session_in(db, here)
    if found is not None:
        return str(db.resolve_resume_session_id(found["id"]))
    raise UsageError(f"No conversation in {here} to continue.")


def announce(db: SessionDB) -> None:
    """Tell plugins of the boundaries that a command has made."""
    if may_be_set("plugins.enabled"):
        from hermes_plugin_host import delivery  # noqa: PLC0415 - most have no plugins

        delivery.deliver_due(db)


def finish_indexing(db: SessionDB, out: Output) -> None:
    """Index an older history to the end, once, and show how far it is; Ctrl-C is safe."""
    progress = db.index_progress()
    if progress is None:
        return
    if not out.is_watched:
        out.note(indexing(*progress))
        return
    while progress is not None:
        out.progress(indexing(*progress))
        progress = None if db.wait_for_index(0.1) else db.index_progress()
    out.progress("")


def indexing(done: int, total: int) -> str:
    """How far the index of an older history is."""
    return f"Indexing: {100 * done // total} % ({done:,} of {total:,} conversations)"


def exists() -> bool:
    """Whether anything was ever stored here."""
    return state_db_path().exists()


def no_history() -> str:
    """The friendly line for an empty home."""
    return NO_HISTORY.format(path=state_db_path())


def state(row: Row) -> str:
    """Whether a conversation is open, ended (and why), or was interrupted."""
    words = ["open"]
    if row.get("ended_at") is not None:
        reason = row.get("end_reason")
        words = [f"ended: {reason}" if reason else "ended"]
    if row.get("end_reason") == "crashed":
        words = ["interrupted"]
    words += [word for word in ("pinned", "archived") if row.get(word)]
    return ", ".join(words)


def name(row: Row) -> str:
    """The title, or how the conversation begins."""
    return str(row.get("title") or row.get("preview") or "(empty)")


def listed(row: Row) -> Row:
    """The fields of a listed conversation that programs may rely on."""
    return {key: row.get(key) for key in LISTED_FIELDS} | {"state": state(row)}


def print_rows(rows: list[Row], out: Output) -> None:
    """A table of conversations."""
    now = time.time()
    out.table(
        COLUMNS,
        [
            (
                str(row["id"]),
                human_format.ago(row.get("last_active") or row.get("started_at"), now),
                str(row.get("source") or ""),
                human_format.number(row.get("message_count") or 0),
                name(row),
                state(row),
            )
            for row in rows
        ],
    )
