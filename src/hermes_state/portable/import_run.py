"""An export file taken in: checked as a whole, then session by session, each all or nothing."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal

from hermes_core.errors import UsageError
from hermes_state.portable.export_reader import ExportFile
from hermes_state.portable.export_writer import write_record
from hermes_state.portable.message_identities import Identities
from hermes_state.portable.session_import import Newcomer, link_waiting
from hermes_state.sessions.rows import EXISTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.portable.export_reader import Line

    Progress = Callable[[int, int], object]

OnConflict = Literal["skip", "rename", "fail"]


@dataclass
class ImportReport:
    """What became of each session of the file."""

    imported: int = 0
    messages: int = 0
    unchanged: int = 0
    skipped: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    retitled: dict[str, str] = field(default_factory=dict)
    is_redacted: bool = False
    is_dry_run: bool = False


class Import:
    """One file on its way into one store."""

    def __init__(self, engine: Engine, on_conflict: OnConflict, *, is_dry_run: bool) -> None:
        self._engine = engine
        self._on_conflict = on_conflict
        self._report = ImportReport(is_dry_run=is_dry_run)

    def run(self, file: IO[bytes], name: str, progress: Progress | None) -> ImportReport:
        """Check the whole file, then store it."""
        source = ExportFile(file, name)
        taken: list[str] = []
        summary = source.verify(lambda line: self._note_taken(line, taken))
        self._report.is_redacted = summary.is_redacted
        if taken and self._on_conflict == "fail":
            raise UsageError(
                f"{len(taken)} of {summary.sessions} sessions are here already, the first is "
                f"{taken[0]}. Nothing was changed; choose --on-conflict skip or rename."
            )
        compared = taken if self._on_conflict == "rename" else []
        with Identities(self._engine, compared) as identities:
            for done, line in enumerate(source.sessions()):
                if progress is not None:
                    progress(done, summary.sessions)
                self._one(line, identities)
        if not self._report.is_dry_run:
            self._engine.write_upkeep(link_waiting)
        return self._report

    def _note_taken(self, line: Line, taken: list[str]) -> None:
        if self._engine.read(lambda reader: reader.value(EXISTS, (line.session_id,))):
            taken.append(line.session_id)

    def _one(self, line: Line, identities: Identities) -> None:
        if self._report.is_dry_run:
            session_id = self._engine.read(lambda reader: self._place(reader, line, identities))
            self._count(line, session_id, None)
            return

        def store(tx: Tx) -> tuple[str | None, str | None]:
            session_id = self._place(tx, line, identities)
            if session_id is None:
                return None, None
            newcomer = Newcomer(tx, session_id, line.record, self._report.renamed)
            newcomer.store()
            return session_id, newcomer.title

        self._count(line, *self._engine.write_upkeep(store))

    def _place(self, reader: Reader, line: Line, identities: Identities) -> str | None:
        """The id under which a session is stored; None if it is not."""
        session_id = line.session_id
        if not reader.value(EXISTS, (session_id,)):
            return session_id
        if self._on_conflict != "rename":
            return None  # with "fail", it came into being after the file was checked
        if self._is_here(reader, line, identities):
            return None
        number = 2
        while reader.value(EXISTS, (f"{session_id}-{number}",)):
            number += 1
        return f"{session_id}-{number}"

    @staticmethod
    def _is_here(reader: Reader, line: Line, identities: Identities) -> bool:
        """Whether the session that has the id is the very same."""
        own = io.BytesIO()
        write_record(reader, line.session_id, identities, None, own)
        return own.getvalue() == line.raw

    def _count(self, line: Line, session_id: str | None, title: str | None) -> None:
        report, wanted = self._report, line.session_id
        if session_id is None:
            if self._on_conflict == "rename":
                report.unchanged += 1
            else:
                report.skipped.append(wanted)
            return
        report.imported += 1
        report.messages += len(line.record["messages"])
        if session_id != wanted:
            report.renamed[wanted] = session_id
        asked: Any = line.record["session"].get("title")
        if title is not None and title != asked:
            report.retitled[session_id] = title
