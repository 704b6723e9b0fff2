"""Units that are conversations in a database of their agent."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import orjson

from hermes_core.errors import AgentDatabaseError
from hermes_import.files import file_unit, unreadable_unit
from hermes_import.sources import Unit, by_creation
from hermes_state.imports.foreign_database import ForeignDatabase, file_state
from hermes_state.imports.rows import UnitState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_import.sources import UnitReading
    from hermes_state.imports.foreign_database import FileState
    from hermes_state.imports.rows import ImportedPart


class ListedConversation(NamedTuple):
    """A conversation in a database, without its messages."""

    native_id: str
    revision: str
    created_at: float
    modified_at: float


class DatabaseSource:
    """The base of agents with SQLite databases.

    A database that cannot be listed is one unit, whose reading fails or reports what is missing.
    """

    tables: ClassVar[tuple[str, ...]] = ()  # without which nothing can be read

    def __init__(self) -> None:
        self._open: tuple[FileState, ForeignDatabase] | None = None
        self._errors: dict[str, AgentDatabaseError] = {}

    def databases(self, root: Path) -> list[Path]:
        """The databases of a root."""
        return [root]

    def listed(self, database: ForeignDatabase) -> list[ListedConversation]:
        """The conversations of a database, by one or two queries."""
        raise NotImplementedError

    def reading(
        self, database: ForeignDatabase, unit: Unit, native_id: str, before: UnitState | None
    ) -> UnitReading:
        """One pass over a conversation."""
        raise NotImplementedError

    def missing(self, database: ForeignDatabase) -> list[str]:
        """The tables that are needed and not there."""
        return [name for name in self.tables if not database.columns(name)]

    def units(self, root: Path) -> Iterator[Unit]:
        for path in self.databases(root):
            try:
                yield from self._units_of(path)
            except AgentDatabaseError as error:
                self._errors[str(path)] = error
                yield file_unit(path) or unreadable_unit(path)

    def in_order(self, units: list[Unit]) -> list[Unit]:
        return by_creation(units)

    def read(self, unit: Unit, before: UnitState | None) -> UnitReading:
        error = self._errors.pop(unit.unit_id, None)
        if error is not None:
            return UnreadableDatabase(unit, error)
        try:
            database = self._database(unit.path)
            missing = self.missing(database)
        except AgentDatabaseError as new_error:
            return UnreadableDatabase(unit, new_error)
        if missing:
            return UnknownSchema(unit, missing)
        native_id = unit.unit_id.removeprefix(f"{unit.path}#")
        return self.reading(database, unit, native_id, before)

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        del paths  # a changed database does not say which of its conversations has changed
        return self.units(root)

    def watched(self, root: Path) -> list[Path]:
        del root
        return []

    def polled(self, root: Path) -> list[Path]:
        return [
            file
            for path in self.databases(root)
            for file in (path, path.with_name(f"{path.name}-wal"))
        ]

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _units_of(self, path: Path) -> list[Unit]:
        database = self._database(path)
        state = file_state(path)
        size = state.size_bytes + state.wal_size_bytes
        if self.missing(database):
            revision = f"{state.size_bytes}:{state.modified_ns}"
            return [Unit(str(path), path, revision, size, state.modified_ns / 1e9)]
        listed = self.listed(database)
        return [
            Unit(
                f"{path}#{each.native_id}",
                path,
                each.revision,
                size // len(listed),
                each.modified_at,
                each.created_at,
            )
            for each in listed
        ]

    def _database(self, path: Path) -> ForeignDatabase:
        """A database that is open already, unless it has changed: it may be a copy."""
        state = file_state(path)
        if self._open is not None:
            before, database = self._open
            if database.path == path and before == state:
                return database
            database.close()
            self._open = None
        opened = ForeignDatabase(path)
        self._open = (file_state(path), opened)
        return opened


class UnreadableDatabase:
    """The reading of a database that is damaged or locked; it fails."""

    def __init__(self, unit: Unit, error: AgentDatabaseError) -> None:
        self.unknown: Counter[str] = Counter()
        self._unit = unit
        self._error = error

    def parts(self) -> Iterator[ImportedPart]:
        raise self._error
        yield  # makes this a generator

    def state(self) -> UnitState:
        return UnitState(self._unit.revision)


class UnknownSchema:
    """The reading of a database without the tables that are needed."""

    def __init__(self, unit: Unit, missing: list[str]) -> None:
        self.unknown = Counter(f"no table {name}" for name in missing)
        self._unit = unit

    def parts(self) -> Iterator[ImportedPart]:
        return iter(())

    def state(self) -> UnitState:
        return UnitState(self._unit.revision, unknown=self.unknown)


def parse_json(data: str | bytes) -> JsonValue:
    """The value of JSON text; None if it is not JSON. Halves of characters are kept."""
    try:
        value: JsonValue = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data)
        except ValueError:
            value = None
    return value


def json_in(row: JsonObject, name: str) -> JsonObject:
    """The object in a column with JSON text; an empty one if it is not one."""
    text = row.get(name)
    value = parse_json(text) if isinstance(text, str) else None
    return value if isinstance(value, dict) else {}
