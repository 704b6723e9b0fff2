"""The record of a checkpoint: the message of its commit, as JSON."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_core.json_values import list_in, number_in, object_in, text_in

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

VERSION: Final = 1
TURN: Final = "turn"
RESTORE: Final = "restore"
Kind = Literal["turn", "restore"]


class ModeChange(NamedTuple):
    """The permissions of a file before and after; None where it did not exist."""

    before: int | None
    after: int | None


class Checkpoint(NamedTuple):
    """The state of a folder before a turn, and after it.

    `after` is empty while the turn runs. After a crash, the next look at the folder stands for
    it, and `is_interrupted` is set.
    """

    number: int
    kind: Kind
    folder: str
    session_id: str
    message_id: int  # of the prompt; 0 if unknown
    started_at: float
    before: str  # a tree
    after: str = ""
    ended_at: float = 0.0
    files: int = 0  # that differ
    is_interrupted: bool = False
    is_shared: bool = False  # another turn ran in the folder at the same time
    restored: tuple[int, ...] = ()  # the checkpoints that a restore undid
    modes: tuple[tuple[bytes, ModeChange], ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether its end is not recorded."""
        return not self.after

    def encoded(self) -> bytes:
        """The record as one line of ASCII."""
        fields = self._asdict()
        fields["modes"] = {os.fsdecode(path): list(change) for path, change in self.modes}
        return json.dumps({"version": VERSION, **fields}).encode()

    @classmethod
    def parse(cls, line: bytes) -> Checkpoint | None:
        """The record in a line; None for one of another layout."""
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            return None
        return cls(
            number=number_in(fields, "number"),
            kind=RESTORE if fields.get("kind") == RESTORE else TURN,
            folder=text_in(fields, "folder"),
            session_id=text_in(fields, "session_id"),
            message_id=number_in(fields, "message_id"),
            started_at=_time(fields, "started_at"),
            before=text_in(fields, "before"),
            after=text_in(fields, "after"),
            ended_at=_time(fields, "ended_at"),
            files=number_in(fields, "files"),
            is_interrupted=fields.get("is_interrupted") is True,
            is_shared=fields.get("is_shared") is True,
            restored=tuple(item for item in list_in(fields, "restored") if isinstance(item, int)),
            modes=tuple(_modes(fields)),
        )


def _time(fields: JsonObject, name: str) -> float:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _modes(fields: JsonObject) -> list[tuple[bytes, ModeChange]]:
    found = []
    for path, change in object_in(fields, "modes").items():
        if isinstance(change, list) and len(change) == 2:
            before, after = (mode if isinstance(mode, int) else None for mode in change)
            found.append((os.fsencode(path), ModeChange(before, after)))
    return found
