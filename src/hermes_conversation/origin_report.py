"""Why lines of a file are there, as people read it: ranges of lines with their conversations."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.permissions.file_access import FileAccess
from hermes_conversation.line_origins import WrittenBy, origins_of, written_by
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home
from hermes_import.registry import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_conversation.git_history import Commit
    from hermes_conversation.line_origins import FileOrigins, LineOrigin
    from hermes_core.json_values import JsonObject
    from hermes_state.store import SessionDB

    MayRead = Callable[[str], bool]  # whether a conversation may be named

PLACE: Final = re.compile(r"(?P<file>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL)
NOT_A_FILE: Final = "{} is not a file."
MAX_SHOWN_NAME: Final = 200
MAX_SHOWN_LINES: Final = 12
MAX_FILL_SECONDS: Final = 5.0  # for tool calls that were not read yet


def readable_file(name: str, folder: Path) -> Path:
    """A file that a conversation may show; UsageError for one that holds credentials."""
    file = _real_path(name, folder)
    if FileAccess(hermes_home(), Path.home()).is_hidden(file, folder):
        raise UsageError(f"{file} belongs to Hermes or holds credentials: it cannot be shown.")
    return file


def _real_path(name: str, folder: Path) -> Path:
    try:
        return (folder / Path(name).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop, an unknown user, a NUL
        raise UsageError(NOT_A_FILE.format(name[:MAX_SHOWN_NAME])) from error


class LineRange(NamedTuple):
    """Lines of a file that have the same origin."""

    first: int
    last: int
    texts: tuple[str, ...]
    turn: WrittenBy | None
    commit: Commit | None

    def as_fields(self) -> JsonObject:
        """The range as JSON."""
        commit = self.commit
        return {
            "first": self.first,
            "last": self.last,
            "lines": list(self.texts),
            "written_by": "agent" if self.turn else "person" if commit else "unknown",
            "conversation": self.turn.as_fields() if self.turn else None,
            "commit": None if commit is None else {
                "id": commit.id, "at": commit.at, "author": commit.author,
                "summary": commit.summary,
            },
        }  # fmt: skip

    @property
    def lines(self) -> str:
        """The numbers of the lines."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def origin(self) -> str:
        """Who wrote the lines, and when."""
        if self.turn is not None:
            name = self.turn.title or self.turn.session_id
            agent = self.turn.source if self.turn.source in BUILT_IN else "Hermes"
            return f"{agent}, {human_format.local(self.turn.at)}, “{name}”"
        if self.commit is not None:
            day = human_format.date(self.commit.at)
            return (
                f"{self.commit.author}, {day}, commit {self.commit.id[:10]}: {self.commit.summary}"
            )
        return "not committed, and not written by an agent"

    def command(self) -> str:
        """The command that opens the message; empty for lines of people."""
        turn = self.turn
        return f"sessions show {turn.session_id} --around {turn.message_id}" if turn else ""


class OriginReport(NamedTuple):
    """The origins of a file, or of some of its lines."""

    path: Path
    ranges: list[LineRange]
    has_git: bool


class Place(NamedTuple):
    """Lines of a file; *last* is 0 for all from the first one."""

    file: Path
    first: int = 1
    last: int = 0


def parse_place(text: str, folder: Path) -> Place:
    """A file with the lines that were asked for: FILE, FILE:LINE or FILE:FIRST-LAST."""
    found = None if os.path.lexists(folder / text) else PLACE.fullmatch(text)
    name = found.group("file") if found else text
    file = _real_path(name, folder)
    if not os.path.isfile(file):  # noqa: PTH113 - a Path raises for a name that is too long
        raise UsageError(NOT_A_FILE.format(name[:MAX_SHOWN_NAME]))
    if found is None:
        return Place(file)
    first = int(found.group("first"))
    return Place(file, first, int(found.group("last") or first))


def report_of(
    db: SessionDB, place: Place, may_read: MayRead = lambda _session_id: True
) -> OriginReport:
    """Who wrote the lines of a place; conversations that may not be read are not named."""
    file, first, last = place
    found: FileOrigins = origins_of(db, file)
    if first > len(found.lines) or (last and last < first) or first < 1:
        raise UsageError(f"{file.name} has {len(found.lines)} lines.")
    lines = found.lines[first - 1 : last or None]
    turns: dict[int, WrittenBy] = {}

    def key(origin: LineOrigin) -> tuple[int, str]:
        if origin.edit is not None and may_read(origin.edit.session_id):
            return origin.edit.message_id, ""
        return 0, origin.line.commit.id if origin.line.commit else ""

    ranges = []
    for (message_id, _), group in itertools.groupby(lines, key):
        origins = list(group)
        edit = origins[0].edit if message_id else None
        if edit is not None and message_id not in turns:
            turns[message_id] = written_by(db, edit)
        numbers = [origin.line.number for origin in origins]
        texts = tuple(origin.line.text for origin in origins)
        turn = turns.get(message_id)
        ranges.append(LineRange(numbers[0], numbers[-1], texts, turn, origins[0].line.commit))
    return OriginReport(file, ranges, found.has_git)


def as_text(report: OriginReport) -> str:
    """A report as text: one line for each range, or all about a single one."""
    if len(report.ranges) == 1:
        return _details(report.ranges[0])
    width = max((len(each.lines) for each in report.ranges), default=0)
    return "\n".join(f"{each.lines:>{width}}  {each.origin()}" for each in report.ranges)


def _details(found: LineRange) -> str:
    shown = [f"  {text}" for text in found.texts[:MAX_SHOWN_LINES]]
    if len(found.texts) > MAX_SHOWN_LINES:
        shown.append(f"  … {len(found.texts) - MAX_SHOWN_LINES} more lines")
    lines = [*shown, "", found.origin()]
    if found.turn is not None:
        lines.append(f"Prompt: {found.turn.prompt or '(none)'}")
        if found.commit is not None:
            lines.append(f"Commit: {found.commit.id[:10]} {found.commit.summary}")
        lines.append(f"Open: hermes {found.command()}")
    return "\n".join(lines)
