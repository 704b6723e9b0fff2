"""The picker's threads: whatever waits for the disk happens here, so that keys never do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.worker import get_current_worker

from hermes_cli.commands.sessions.browser import events
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.message import Message

    from hermes_cli.commands.sessions.browser.conversations import Conversations

Row = dict[str, Any]


class Background:
    """Reads and changes conversations, and reports to the app by messages."""

    def __init__(self, app: App[Any], conversations: Conversations) -> None:
        self._app = app
        self._conversations = conversations

    def first(self, *, with_archived: bool) -> list[Row]:
        """The first rows, at once; the others are reported as they are read."""
        rows = self._conversations.first(with_archived=with_archived)
        self._run("read the list", lambda: self._read_rows(len(rows), with_archived))
        return rows

    def _read_rows(self, start: int, with_archived: bool) -> None:
        worker = get_current_worker()
        for rows in self._conversations.pages(start, with_archived=with_archived):
            if worker.is_cancelled:
                return
            self._report(events.RowsRead(rows, with_archived=with_archived, is_last=False))
        self._report(events.RowsRead([], with_archived=with_archived, is_last=True))

    def search(self, words: str) -> None:
        """Look for words in what was said."""
        if words.strip():
            self._run(
                "search",
                lambda: self._report(events.WordsFound(words, self._conversations.said(words))),
            )

    def read_ending(self, row: Row) -> None:
        """Read the end of a conversation."""
        self._run(
            "read the conversation",
            lambda: self._report(
                events.EndingRead(row, self._conversations.ending(str(row["id"])))
            ),
        )

    def pin(self, row: Row) -> None:
        """Pin or unpin."""
        is_pinned = not row.get("pinned")
        session_id = str(row["id"])

        def change() -> None:
            self._conversations.pin(session_id, is_pinned=is_pinned)
            words = f"{session_id} {'pinned' if is_pinned else 'unpinned'}"
            self._report(events.RowChanged(session_id, words, is_pinned=is_pinned))

        self._run("pin", change)

    def trash(self, row: Row) -> None:
        """Move into the trash."""
        session_id = str(row["id"])

        def change() -> None:
            self._conversations.trash(session_id)
            words = f"{session_id} is in the trash; `hermes sessions restore` brings it back"
            self._report(events.RowChanged(session_id, words, is_gone=True))

        self._run("move into the trash", change)

    def _report(self, report: Message) -> None:
        self._app.post_message(report)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        def isolated() -> None:
            failure = attempt(Step(name, work))
            if failure is not None:
                self._report(events.WorkFailed(f"cannot {name}: {failure.error}"))

        self._app.run_worker(isolated, name=name, group=name, thread=True, exclusive=True)
