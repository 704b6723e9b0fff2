"""Where the achievement records are: files of a folder, or a database that machines share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

import orjson

from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.json_files import read_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

STATE_FILE: Final = "state.json"
SNAPSHOT_FILE: Final = "scan_snapshot.json"
FORMAT: Final = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS


class RecordStorage(Protocol):
    """JSON objects by name; an error is an OSError or a HermesError."""

    def read(self, name: str) -> JsonObject:
        """An object; empty if it is missing or unreadable."""

    def write(self, name: str, value: JsonObject) -> None:
        """Replace an object."""

    def change(self, name: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace an object by what *change* makes of it; no other process does so meanwhile.

        *change* may be called again after a conflict.
        """

    def remove(self, name: str) -> None:
        """Delete an object, if it exists."""


def encode(value: JsonObject) -> bytes:
    """The JSON of a record."""
    return orjson.dumps(value, default=list, option=FORMAT)


class FolderStorage:
    """Files, written atomically and readable only by their owner.

    The folder is created by the first write.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def read(self, name: str) -> JsonObject:
        """An object; the state may be that of newer releases of the original program."""
        path = self._folder / name
        try:
            result = read_json(path, {}, self._clock).value
        except OSError as error:  # unreadable, or damaged and not movable
            log.warning("achievements file unreadable: %s: %s", path, error)
            return {}
        if not result and name == STATE_FILE:
            result = self._read_original()
        return result if isinstance(result, dict) else {}

    def write(self, name: str, value: JsonObject) -> None:
        """Replace an object."""
        write_atomically(self._folder / name, encode(value))

    def change(self, name: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace an object, with the folder locked."""
        with folder_locked(self._folder):
            self.write(name, change(self.read(name)))

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self._folder / name).unlink(missing_ok=True)

    def _read_original(self) -> object:
        path = self._folder.parent.parent / "plugin-data" / self._folder.name / STATE_FILE
        return read_json(path, {}, self._clock).value if path.is_file() else {}
