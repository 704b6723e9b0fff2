"""Histories that consist of files of JSON lines, one conversation each."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from hermes_core.json_values import text_in
from hermes_import.files import (
    FolderWalk,
    existing,
    file_unit,
    path_text,
    start_of,
    unreadable_unit,
)
from hermes_import.json_lines import HEAD_KEY, JsonLines, parsed_object
from hermes_import.sources import by_creation
from hermes_state.imports import rows

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit

log = logging.getLogger(__name__)

MESSAGES_PER_PART: Final = 500
BYTES_PER_PART: Final = 1 << 23
OWN_FIELD: Final = "hermes"  # of a record that Hermes has written: the identity of its message
NO_MESSAGE: Final = "none"  # instead of it: the record stands for no message
DAMAGED_RECORD: Final = "(damaged)"
# What a field of the wrong type causes.
UNEXPECTED: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
ENDINGS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")


class LineFiles:
    """The history of an agent in folders of its own folder."""

    name: ClassVar[str]
    label: ClassVar[str]
    home_folder: ClassVar[str]  # of the agent, in a home folder
    variable: ClassVar[str] = ""  # of the environment, which names another folder
    folders: ClassVar[tuple[str, ...]]
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    reading: ClassVar[type[LineReading]]

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        """The agent's folder."""
        named = environ.get(self.variable) if self.variable else None
        root = self.root_at(Path(named) if named else home / self.home_folder)
        return [] if root is None else [root]

    def root_at(self, path: Path) -> Path | None:
        """*path*, if it is a folder of the agent."""
        return path if self.watched(path) else None

    def units(self, root: Path) -> Iterator[Unit]:
        """All files with conversations."""
        for folder in self.watched(root):
            files = FolderWalk(folder, self.endings)
            yield from self.units_at(root, files)
            yield from map(unreadable_unit, files.unreadable)

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        """Those of the files that have conversations."""
        del root
        for path in paths:
            if path.name.endswith(self.endings) and self.has_conversation(path):
                unit = file_unit(path, self.created_at(path.name))
                if unit is not None:
                    yield unit

    def has_conversation(self, path: Path) -> bool:
        """Whether a file is one of conversations."""
        del path
        return True

    def created_at(self, name: str) -> float:
        """When a file was created, by its name; 0 if that does not say it."""
        del name
        return 0.0

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """Files in the order of their creation."""
        return by_creation(units)

    def read(self, unit: Unit, before: rows.UnitState | None) -> LineReading:
        """Read a file from the last turn that was read before."""
        return self.reading(unit, start_of(unit, before))

    def watched(self, root: Path) -> list[Path]:
        """The folders with files."""
        return existing([root / folder for folder in self.folders])

    def polled(self, root: Path) -> list[Path]:
        """None."""
        del root
        return []

    def close(self) -> None:
        """Nothing is left open."""


class LineReading:
    """One pass over a file, from the start of the last turn that was read before.

    `about` is what is known of the conversation; it is kept for the next pass.
    `line_position` is where the current line begins.
    """

    skipped: ClassVar[re.Pattern[bytes] | None] = None  # beginnings of lines not worth parsing

    def __init__(self, unit: Unit, start: rows.UnitState) -> None:
        self.unit = unit
        self.unknown: Counter[str] = Counter(start.unknown)
        self.about: JsonObject = dict(start.state)
        self.messages: list[rows.ImportedMessage] = []
        self.usage: list[rows.ImportedUsage] = []
        self._lines = JsonLines(unit.path, self.unknown, start)
        self._turn_position = self._lines.position
        self.line_position = self._lines.position
        self.own_key = ""  # of the current record, if Hermes has written it

    @property
    def stem(self) -> str:
        """The name of the file without its endings."""
        return path_text(Path(self.unit.path.name)).split(".", 1)[0]

    @property
    def place(self) -> str:
        """The identity of a record that has none of its own."""
        return f"{self.stem}@{self.line_position}"

    def description(self) -> JsonObject:
        """What the file beside this one says of it (`NAME.meta.json`); empty without one."""
        try:
            data = self.unit.path.with_name(f"{self.stem}.meta.json").read_bytes()
        except OSError:
            return {}
        return parsed_object(data)

    def parts(self) -> Iterator[rows.ImportedPart]:
        """The conversation in parts."""
        read_record, parse, size = self.read_record, self._lines.parse, 0
        for line in self._lines.raw(self.skipped):
            size += len(line)
            record = parse(line)
            del line  # not kept while a part is stored, which may be as large
            if record is None:
                continue
            if record.get(OWN_FIELD) == NO_MESSAGE:
                continue
            self.line_position = self._lines.line_position
            self.own_key = rows.own_key(text_in(record, OWN_FIELD))
            try:
                read_record(record)
            except UNEXPECTED as error:
                log.warning("record unreadable: %s: %r", path_text(self.unit.path), error)
                self.unknown[DAMAGED_RECORD] += 1
            del record
            is_full = len(self.messages) >= MESSAGES_PER_PART or size >= BYTES_PER_PART
            if is_full and not self.own_key:
                size = 0
                yield from self._part(is_last=False)
        yield from self.last_part()

    def last_part(self) -> Iterator[rows.ImportedPart]:
        """What is left at the end of the file."""
        self.finish()
        yield from self._part(is_last=True)

    def _part(self, *, is_last: bool) -> Iterator[rows.ImportedPart]:
        conversation = self.conversation()
        if conversation is None:
            return
        messages, self.messages = self.messages, []
        usage, self.usage = self.usage, []
        inherits = self.inherited()
        yield rows.ImportedPart(conversation, messages, usage, is_last=is_last, inherits=inherits)

    def state(self) -> rows.UnitState:
        """Where the next pass begins."""
        state = {**self.about, HEAD_KEY: self._lines.head}
        return rows.UnitState(self.unit.revision, self._turn_position, state, self.unknown)

    def begin_turn(self) -> None:
        """The next pass begins with the current line, if no later turn begins before that.

        What was handed to the agent is read again until it has added a turn: only then is the
        conversation stored.
        """
        if not self.own_key:
            self._turn_position = max(0, self.line_position)

    def finish_last(self, reason: str) -> None:
        """Set the finish reason of the last answer, if the last prompt has one."""
        for position in range(len(self.messages) - 1, -1, -1):
            if self.messages[position].role == "user":
                return
            if self.messages[position].role == "assistant":
                changed = self.messages[position]._replace(finish_reason=reason)
                self.messages[position] = changed
                return

    def read_record(self, record: JsonObject) -> None:
        """Read a record."""
        raise NotImplementedError

    def finish(self) -> None:
        """Add what is incomplete at the end of the file."""

    def conversation(self) -> rows.ImportedConversation | None:
        """What is known of the conversation; None if it has not begun."""
        raise NotImplementedError

    def inherited(self) -> rows.InheritedHistory | None:
        """The history that the conversation continues without repeating it."""
        return None
