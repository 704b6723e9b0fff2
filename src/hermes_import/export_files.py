"""Histories that a user has exported: a file that is given by its path and does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hermes_import.files import file_unit
from hermes_import.sources import by_creation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes_import.sources import Unit


class ExportFiles:
    """Exports of one program or service."""

    name: ClassVar[str]
    label: ClassVar[str]

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        """None: an export is given by its path."""
        del home, environ
        return []

    def units(self, root: Path) -> Iterator[Unit]:
        """The export as a whole."""
        unit = file_unit(root)
        if unit is not None:
            yield unit

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        """The export as a whole."""
        del paths
        return self.units(root)

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """The exports by age."""
        return by_creation(units)

    def watched(self, root: Path) -> list[Path]:
        """None: an export does not change."""
        del root
        return []

    def polled(self, root: Path) -> list[Path]:
        """None."""
        del root
        return []

    def close(self) -> None:
        """Nothing is left open."""
