"""Imports what is new in the history of an agent."""

from __future__ import annotations

import functools
import logging
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import StatementError, StoreError
from hermes_core.isolate import Failure, attempt, attempt_each
from hermes_import.files import path_text
from hermes_state.imports.rows import StoredUnit, session_id_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_core.messages import Content
    from hermes_import.sources import AgentSource, Unit, UnitReading
    from hermes_state.imports.rows import ImportedPart, PartResult, UnitState
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

BATCH_MESSAGES: Final = 4000  # per transaction: about a tenth of a second
BATCH_PARTS: Final = 200
BATCH_CHARACTERS: Final = 1 << 24
FEW_UNITS: Final = 20


class ImportOptions(NamedTuple):
    """What to import."""

    since: float = 0.0  # only units that were changed after this time
    project: Path | None = None  # only conversations in this folder or below it
    is_dry_run: bool = False
    live_seconds: float = 0.0  # a conversation with a record so recently is still open


class Progress(NamedTuple):
    """How far an import is."""

    agent: str
    units: int
    of_units: int
    read_bytes: int
    of_bytes: int


@dataclass
class SourceReport:
    """The result of an import from one agent."""

    agent: str
    units: int = 0
    unchanged: int = 0
    new: int = 0
    extended: int = 0
    messages: int = 0
    copies: int = 0
    deleted: int = 0  # conversations that the user has deleted here
    taken: int = 0  # conversations that are here already, not by an import
    other_project: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)  # by path


class BatchPart(NamedTuple):
    """A part, and the unit that it was read from."""

    unit_id: str
    path: str
    part: ImportedPart
    is_live: bool


class Batch:
    """Parts that are stored in one transaction."""

    def __init__(self) -> None:
        self.parts: list[BatchPart] = []
        self.units: list[StoredUnit] = []
        self._messages = self._characters = 0

    def add(self, part: BatchPart) -> None:
        """Add a part."""
        messages = part.part.messages
        self.parts.append(part)
        self._messages += len(messages)
        self._characters += sum([_size(message.content) for message in messages])

    @property
    def is_full(self) -> bool:
        """Whether it is time to store it."""
        return (
            self._messages >= BATCH_MESSAGES
            or self._characters >= BATCH_CHARACTERS
            or len(self.units) >= BATCH_PARTS
        )

    def by_unit(self) -> Iterator[tuple[str, Batch]]:
        """The content of the batch, a batch for each unit."""
        batches: dict[str, Batch] = {}
        for part in self.parts:
            batches.setdefault(part.unit_id, Batch()).parts.append(part)
        for unit in self.units:
            batches.setdefault(unit.unit_id, Batch()).units.append(unit)
        yield from batches.items()


def _size(content: Content) -> int:
    return len(content) if isinstance(content, str) else len(str(content))


class AgentImport:
    """An import from one agent."""

    def __init__(
        self,
        db: SessionDB,
        source: AgentSource,
        options: ImportOptions | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self._db = db
        self._source = source
        self._options = options or ImportOptions()
        self._on_progress = on_progress
        self._batch = Batch()
        self._started_at = db.clock.now()
        self._failed: set[str] = set()  # units of which a part could not be stored
        self._new: set[str] = set()
        self._extended: set[str] = set()
        self._deleted: set[str] = set()
        self._taken: set[str] = set()
        self._in_project: dict[str, bool] = {}  # folders of conversations
        self._counted: set[bytes] = set()  # messages that a dry run has counted
        self.report = SourceReport(source.name)

    def run(self, units: Iterable[Unit]) -> SourceReport:
        """Import the units that are new or have changed."""
        units = list(self._readable(units))
        unit_ids = [unit.unit_id for unit in units] if len(units) < FEW_UNITS else None
        known = self._db.imports.units(self._source.name, unit_ids)
        changed = self._source.in_order(self._changed(units, known))
        total = sum(unit.size_bytes for unit in changed)
        done = 0
        for number, unit in enumerate(changed):
            self._note(number, len(changed), done, total)
            self._read(unit, known.get(unit.unit_id))
            done += unit.size_bytes
        self._source.close()
        self._store()
        if (self._new or self._extended) and not self._options.is_dry_run:
            self._db.imports.link()
        self._note(len(changed), len(changed), done, total)
        self.report.new, self.report.extended = len(self._new), len(self._extended)
        self.report.deleted, self.report.taken = len(self._deleted), len(self._taken)
        return self.report

    def _readable(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """The units as far as they can be found."""
        for unit in attempt_each(f"find conversations of {self._source.name}", units):
            if isinstance(unit, Failure):
                self.report.failures[self._source.label] = reason_of(unit.error)
            else:
                yield unit

    def _changed(self, units: Iterable[Unit], known: dict[str, UnitState]) -> list[Unit]:
        changed = []
        for unit in units:
            before = known.get(unit.unit_id)
            if before is not None and before.revision == unit.revision:
                self.report.unchanged += 1
            elif unit.modified_at >= self._options.since:
                changed.append(unit)
        return changed

    def _note(self, units: int, of_units: int, done: int, of_bytes: int) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(self._source.name, units, of_units, done, of_bytes))

    def _read(self, unit: Unit, before: UnitState | None) -> None:
        """Read a unit; one that cannot be read is reported, and the others are imported."""
        self.report.units += 1
        readings: list[UnitReading] = []

        def parts() -> Iterator[ImportedPart]:
            readings.append(self._source.read(unit, before))
            yield from readings[0].parts()

        is_complete, is_other = True, False
        latest: dict[str, float] = {}
        for part in attempt_each(f"import {path_text(unit.path)}", parts()):
            if isinstance(part, Failure):
                name = path_text(unit.path)
                self.report.failures[name] = reason_of(part.error).removeprefix(f"{name}: ")
                is_complete = False
            elif self._is_wanted(part):
                self._add(unit, part, latest)
            else:
                is_other = True
        self.report.other_project += is_other
        for reading in readings:
            self.report.unknown.update(reading.unknown - Counter(before.unknown if before else {}))
            if is_complete and not is_other and unit.unit_id not in self._failed:
                self._batch.units.append(StoredUnit(unit.unit_id, reading.state()))
        if self._batch.is_full:
            self._store()

    def _is_wanted(self, part: ImportedPart) -> bool:
        if self._options.project is None:
            return True
        cwd = part.conversation.cwd or ""
        if cwd not in self._in_project:
            self._in_project[cwd] = _is_inside(cwd, self._options.project)
        return self._in_project[cwd]

    def _add(self, unit: Unit, part: ImportedPart, latest: dict[str, float]) -> None:
        native_id = part.conversation.native_id
        times = [message.at for message in part.messages]
        latest[native_id] = max(latest.get(native_id, 0.0), *times, 0.0)
        now = self._db.clock.now()  # records of the future do not keep a conversation open
        is_live = min(latest[native_id], now) > now - self._options.live_seconds
        self._batch.add(BatchPart(unit.unit_id, path_text(unit.path), part, is_live))
        if self._batch.is_full:
            self._store()

    def _store(self) -> None:
        batch, self._batch = self._batch, Batch()
        if self._options.is_dry_run:
            self._count_only(batch)
            return
        if not batch.parts and not batch.units:
            return
        result = attempt("store imported conversations", lambda: self._store_batch(batch))
        if not isinstance(result, Failure):
            return
        _raise_unless_of_the_data(result.error)
        for unit_id, each in batch.by_unit():
            result = attempt(f"store {unit_id}", functools.partial(self._store_batch, each))
            if isinstance(result, Failure):
                _raise_unless_of_the_data(result.error)
                self._failed.add(unit_id)
                self.report.failures[unit_id] = reason_of(result.error)

    def _store_batch(self, batch: Batch) -> None:
        parts = [(each.path, each.part, each.is_live) for each in batch.parts]
        units = [unit for unit in batch.units if unit.unit_id not in self._failed]
        for result in self._db.imports.store(
            self._source.name, parts, units, run_started_at=self._started_at
        ):
            self._count(result)

    def _count_only(self, batch: Batch) -> None:
        known = {each.session_id for each in self._db.imports.all()}
        for each in batch.parts:
            part, about = each.part, each.part.conversation
            session_id = session_id_of(self._source.name, about.native_id)
            if about.keeps_id:
                session_id = about.native_id
                if session_id not in known and self._db.sessions.find(session_id) is not None:
                    self._taken.add(session_id)
                    continue
            if session_id in known and self._db.imports.is_deleted(session_id):
                self._deleted.add(session_id)
                continue
            keys = [message.key for message in part.messages if not message.is_copy]
            uids = self._db.imports.unknown_messages(self._source.name, keys) - self._counted
            self._counted |= uids
            self.report.messages += len(uids)
            if session_id not in known:
                self._new.add(session_id)
            elif uids:
                self._extended.add(session_id)

    def _count(self, result: PartResult) -> None:
        report = self.report
        report.messages += result.messages
        report.copies += result.copies
        if result.is_deleted:
            self._deleted.add(result.session_id)
        if result.is_taken:
            self._taken.add(result.session_id)
        if result.is_new:
            self._new.add(result.session_id)
        elif result.messages and result.session_id not in self._new:
            self._extended.add(result.session_id)


def _is_inside(folder: str, project: Path) -> bool:
    """Whether a folder is a project or in it, also by another path that links make."""
    if not folder:
        return False
    if Path(folder).is_relative_to(project):
        return True
    real = os.path.realpath(project)  # unlike `Path.resolve`, not an error in a loop of links
    return any(Path(each).is_relative_to(real) for each in (folder, os.path.realpath(folder)))


def reason_of(error: Exception) -> str:
    """Why something failed, without the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _raise_unless_of_the_data(error: Exception) -> None:
    """Raise an error that the next conversation would cause, too."""
    if isinstance(error, StoreError) and not isinstance(error, StatementError):
        raise error


def found_units(source: AgentSource, roots: Iterable[Path]) -> Iterator[Unit]:
    """All units of an agent."""
    for root in roots:
        yield from source.units(root)
