"""Opens the history for commands, and formats the rows of conversations."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from hermes_cli.output import TableColumn
from hermes_conversation.history_scope import latest_session_in
from hermes_conversation.purge_hook import keep_facts
from hermes_core import human_format
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import StoreUnavailableError, UsageError
from hermes_core.paths import TRUST_FILE, hermes_home
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists, history_place

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from typing import TypedDict

    from hermes_cli.output import CommandOutput
    from hermes_state.sessions.records import ListedSession, SessionRow

    Change = Callable[[SessionDB, str], object]

    class ListedFields(TypedDict):
        """A listed conversation in JSON output."""

        id: str
        title: str | None
        preview: str
        source: str
        model: str | None
        started_at: float
        last_active: float
        ended_at: float | None
        end_reason: str | None
        message_count: int
        cwd: str | None
        archived: int
        pinned: int
        state: str


LINE_SECONDS: Final = 0.1
NOTE_SECONDS: Final = 10.0


COLUMNS = (
    TableColumn("id", style="cyan"),
    TableColumn("when", optional=True),
    TableColumn("source", optional=True),
    TableColumn("messages", right=True, optional=True),
    TableColumn("conversation", flexible=True),
    TableColumn("state", optional=True, style="dim"),
)

NO_HISTORY = "No conversations yet (no history at {path})."


class ShownSession(Protocol):
    """A conversation that can be printed in a table."""

    @property
    def session(self) -> SessionRow:
        """The session."""

    @property
    def preview(self) -> str:
        """The beginning of the first message."""

    @property
    def last_active(self) -> float:
        """The time of the last activity."""


def open_for_reading() -> SessionDB:
    """Open the history read-only; after a crash it is recovered first, if it is writable."""
    db = SessionDB(read_only=True)
    if not db.needs_recovery():
        return db
    db.close()
    with contextlib.suppress(StoreUnavailableError):
        return SessionDB(purge_hook=keep_facts)
    return SessionDB(read_only=True)


def open_or_create() -> SessionDB:
    """Open the history, created if it is missing; read-only without write access."""
    return open_for_reading() if exists() else SessionDB(purge_hook=keep_facts)


def open_to_complete() -> SessionDB:
    """Open the history for what commands that show something complete; read-only if it must be."""
    if not exists():
        return SessionDB(purge_hook=keep_facts)
    try:
        return SessionDB(purge_hook=keep_facts)
    except StoreUnavailableError:
        return SessionDB(read_only=True)


def open_for_writing() -> SessionDB:
    """Open the existing history for changes."""
    if not exists():
        raise StoreUnavailableError(no_history_text())
    return SessionDB(purge_hook=keep_facts)


def chosen_session(db: SessionDB, resume: str | None, *, is_latest: bool) -> str | None:
    """The conversation to continue, by name or the latest here; None for a new one."""
    if resume:
        return str(db.titles.resolve_resume_session_id(db.lookup.resolve(resume)))
    if not is_latest:
        return None
    here = str(Path.cwd().resolve())
    result = latest_session_in(db, here)
    if result is not None:
        return str(db.titles.resolve_resume_session_id(result.id))
    raise UsageError(f"No conversation in {here} to continue.")


def deliver_events(db: SessionDB) -> None:
    """Deliver the boundary events of a command to plugins and shell hooks."""
    if is_set("plugins.enabled", "hooks") or (hermes_home() / TRUST_FILE).exists():
        from hermes_conversation import boundary_delivery  # noqa: PLC0415 - most have no consumers

        boundary_delivery.deliver_due(db)


def compute_vectors(db: SessionDB, out: CommandOutput, *, seconds: float | None = None) -> None:
    """Compute the vectors for search by meaning, with progress; Ctrl+C is safe."""
    meaning = db.search.meaning
    deadline = None if seconds is None else time.monotonic() + seconds
    report = out.progress if out.is_watched else out.note
    db.search.fill()
    while (progress := meaning.progress()) is not None:
        report(f"Vectors: {progress[0]:,} of {progress[1]:,} messages")
        if deadline is not None and time.monotonic() >= deadline:
            out.progress("")
            out.note(
                "The rest is computed in the background while the daemon, the gateway or the "
                "dashboard runs, or at once by `hermes sessions optimize`."
            )
            break
        if meaning.fill(5.0) and meaning.progress() == progress:
            break  # what is left is in the trash
    out.progress("")


def finish_indexing(db: SessionDB, out: CommandOutput, *, is_required: bool = False) -> None:
    """Finish the index of an older history, with progress; Ctrl+C is safe.

    Without a terminal this is done only if it *is_required*, with a note from time to time.
    """
    progress = db.index_progress()
    if db.engine.read_only:
        return
    report = out.progress if out.is_watched else out.note
    while progress is not None:
        report(indexing_text(*progress))
        if not (out.is_watched or is_required) or db.wait_for_index(indexing_seconds(out)):
            break
        progress = db.index_progress()
    out.progress("")


def indexing_seconds(out: CommandOutput) -> float:
    """The time between two reports of progress: a line that is replaced, or notes."""
    return LINE_SECONDS if out.is_watched else NOTE_SECONDS


def indexing_text(done: int, total: int) -> str:
    """The progress of indexing."""
    return f"Indexing: {100 * done // total} % ({done:,} of {total:,} conversations)"


def exists() -> bool:
    """Whether a history exists."""
    return history_exists()


def no_history_text() -> str:
    """The message for a missing history."""
    return NO_HISTORY.format(path=history_place())


def print_none(arguments: argparse.Namespace, out: CommandOutput, empty: object) -> int:
    """Print that there is no history: *empty* as JSON, or the message."""
    out.json(empty) if arguments.json else out.text(no_history_text())
    return 0


def state_text(session: SessionRow) -> str:
    """The state of a conversation: open, ended with its reason, or interrupted."""
    words = ["open"]
    if session.ended_at is not None:
        words = [f"ended: {session.end_reason}" if session.end_reason else "ended"]
    if session.end_reason == "crashed":
        words = ["interrupted"]
    words += ["pinned"] if session.pinned else []
    words += ["archived"] if session.archived else []
    return ", ".join(words)


def display_name(title: str | None, preview: str | None) -> str:
    """The title, or the beginning of the first message."""
    return title or preview or "(empty)"


def listed_fields(row: ListedSession) -> ListedFields:
    """The documented fields of a listed conversation."""
    session = row.session
    return {
        "id": session.id,
        "title": session.title,
        "preview": row.preview,
        "source": session.source,
        "model": session.model,
        "started_at": session.started_at,
        "last_active": row.last_active,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason,
        "message_count": session.message_count,
        "cwd": session.cwd,
        "archived": session.archived,
        "pinned": session.pinned,
        "state": state_text(session),
    }


def print_rows(rows: Iterable[ShownSession], out: CommandOutput) -> None:
    """Print a table of conversations."""
    now = time.time()
    out.table(COLUMNS, [_table_row(row, now) for row in rows])


def _table_row(row: ShownSession, now: float) -> tuple[str, ...]:
    session = row.session
    return (
        session.id,
        human_format.ago(row.last_active or session.started_at, now),
        session.source or "",
        human_format.number(session.message_count),
        display_name(session.title, row.preview),
        state_text(session),
    )
