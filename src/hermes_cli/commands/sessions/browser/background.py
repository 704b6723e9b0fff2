"""Background threads of the app: all disk access, so that keys never wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.worker import get_current_worker

from hermes_core.command_name import with_command_name
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import App

    from hermes_cli.commands.sessions.browser.catalogue import BrowserSessions, MessageHit
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import ListedSession


class RowsRead(Message):
    """Rows were read."""

    def __init__(self, rows: list[ListedSession], *, with_archived: bool, is_last: bool) -> None:
        super().__init__()
        self.rows = rows
        self.with_archived = with_archived
        self.is_last = is_last


class SearchFinished(Message):
    """A message search finished."""

    def __init__(self, query: str, hits: Sequence[MessageHit]) -> None:
        super().__init__()
        self.query = query
        self.hits = hits


class EndingRead(Message):
    """The last messages of a conversation."""

    def __init__(self, row: ListedSession, messages: list[MessageRow]) -> None:
        super().__init__()
        self.row = row
        self.messages = messages


class RowChanged(Message):
    """A conversation was pinned, unpinned or moved to the trash."""

    def __init__(
        self, session_id: str, text: str, *, is_pinned: bool = False, is_removed: bool = False
    ) -> None:
        super().__init__()
        self.session_id = session_id
        self.text = text
        self.is_pinned = is_pinned
        self.is_removed = is_removed


class WorkFailed(Message):
    """A read or a change failed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class BackgroundWork:
    """Reads and changes conversations, and posts results to the app."""

    def __init__(self, app: App[Any], sessions: BrowserSessions) -> None:
        self._app = app
        self._sessions = sessions

    def first(self, *, with_archived: bool) -> list[ListedSession]:
        """Return the first rows; the others are posted as they are read."""
        rows = self._sessions.first(with_archived=with_archived)
        self._run("read the list", lambda: self._read_rows(len(rows), with_archived))
        return rows

    def _read_rows(self, start: int, with_archived: bool) -> None:
        worker = get_current_worker()
        for rows in self._sessions.pages(start, with_archived=with_archived):
            if worker.is_cancelled:
                return
            self._report(RowsRead(rows, with_archived=with_archived, is_last=False))
        self._report(RowsRead([], with_archived=with_archived, is_last=True))

    def search(self, query: str) -> None:
        """Search messages."""
        if query.strip():
            self._run(
                "search",
                lambda: self._report(SearchFinished(query, self._sessions.search(query))),
            )

    def read_ending(self, row: ListedSession) -> None:
        """Read the end of a conversation."""
        self._run(
            "read the conversation",
            lambda: self._report(EndingRead(row, self._sessions.ending(row.id))),
        )

    def pin(self, row: ListedSession) -> None:
        """Pin or unpin."""
        is_pinned = not row.session.pinned
        session_id = row.id

        def change() -> None:
            self._sessions.pin(session_id, is_pinned=is_pinned)
            text = f"{session_id} {'pinned' if is_pinned else 'unpinned'}"
            self._report(RowChanged(session_id, text, is_pinned=is_pinned))

        self._run("pin", change)

    def trash(self, row: ListedSession) -> None:
        """Move to the trash."""
        session_id = row.id

        def change() -> None:
            self._sessions.trash(session_id)
            restore = with_command_name("`hermes sessions restore`")
            text = f"{session_id} moved to the trash. {restore} restores it."
            self._report(RowChanged(session_id, text, is_removed=True))

        self._run("move to the trash", change)

    def _report(self, report: Message) -> None:
        self._app.post_message(report)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        def isolated() -> None:
            result = attempt(name, work)
            if isinstance(result, Failure):
                self._report(WorkFailed(f"Cannot {name}: {result.error}"))

        self._app.run_worker(isolated, name=name, group=name, thread=True, exclusive=True)
