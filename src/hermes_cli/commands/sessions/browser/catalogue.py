"""The rows the picker knows, and which of them fit what was typed. No terminal, no store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_cli.commands.sessions.browser.conversations import Hit

Row = dict[str, Any]


class Entry(NamedTuple):
    """One line of the list."""

    row: Row
    snippet: str = ""  # where the words were said, when title, id and preview do not have them


class Catalogue:
    """Rows in the order of the list, found by what is typed."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        """More rows, after those already known; one that is known stays where it is."""
        for row in rows:
            session_id = str(row["id"])
            if session_id not in self._rows:
                words = (session_id, row.get("title") or "", row.get("preview") or "")
                self._rows[session_id] = row
                self._texts[session_id] = "\n".join(words).casefold()

    def remove(self, session_id: str) -> None:
        """A row is gone."""
        self._rows.pop(session_id, None)
        self._texts.pop(session_id, None)

    def mark(self, session_id: str, **facts: Any) -> None:
        """Something about a row has changed."""
        if session_id in self._rows:
            self._rows[session_id].update(facts)

    def entries(self, typed: str, hits: Sequence[Hit] = ()) -> list[Entry]:
        """Rows with all words typed in title, id or preview; below them those that said so."""
        words = typed.casefold().split()
        if not words:
            return [Entry(row) for row in self._rows.values()]
        fitting = {
            session_id: Entry(self._rows[session_id])
            for session_id, text in self._texts.items()
            if all(word in text for word in words)
        }
        for hit in hits:
            if hit.session_id in self._rows and hit.session_id not in fitting:
                fitting[hit.session_id] = Entry(self._rows[hit.session_id], hit.snippet)
        return list(fitting.values())
