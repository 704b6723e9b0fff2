"""The interface of an agent's history: where it is, what it consists of, how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes_state.imports.rows import ImportedPart, UnitState


class Unit(NamedTuple):
    """What is read at once: a file, or a conversation in a database.

    A unit whose revision has not changed is not read again.
    """

    unit_id: str
    path: Path
    revision: str
    size_bytes: int
    modified_at: float
    created_at: float = 0.0
    conversations: int = 1


def by_creation(units: list[Unit]) -> list[Unit]:
    """Units in the order in which they were created, as far as that is known."""
    return sorted(units, key=lambda unit: (unit.created_at, unit.unit_id))


class UnitReading(Protocol):
    """One pass over a unit."""

    unknown: Counter[str]  # records that are not understood, by kind

    def parts(self) -> Iterator[ImportedPart]:
        """The conversations of the unit in parts; each ends with one that `is_last`."""
        ...

    def state(self) -> UnitState:
        """How far the unit was read; after all parts."""
        ...


class AgentSource(Protocol):
    """The history of one agent."""

    name: str  # of commands, and the `source` of its conversations
    label: str

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        """The folders and databases of the agent in a home folder, if it has any.

        *environ* may name others; it is empty for a home folder of another machine.
        """
        ...

    def root_at(self, path: Path) -> Path | None:
        """The root in the agent's own folder, or *path* itself if it is one; otherwise None."""
        ...

    def units(self, root: Path) -> Iterator[Unit]:
        """Everything that can be read, without reading it."""
        ...

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """The units in the order in which they are read: what was copied before its copies."""
        ...

    def read(self, unit: Unit, before: UnitState | None) -> UnitReading:
        """Read a unit; *before* is how far it was read earlier."""
        ...

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        """The units to which changed files belong."""
        ...

    def watched(self, root: Path) -> list[Path]:
        """Folders in which a change, also deep inside, means that there is something to read."""
        ...

    def polled(self, root: Path) -> list[Path]:
        """Files, in folders that are too large to watch, whose state is compared every second."""
        ...

    def close(self) -> None:
        """Close what reading has opened."""
        ...
