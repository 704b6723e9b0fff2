"""aider: one Markdown file per project, in the folder of the project.

Each start of the program begins a section. Lines of the program are quotes, lines of a prompt
are headings; both end with two spaces. There are no IDs: a section is identified by its start
and its first prompt. Token counts are rounded and therefore not imported; costs are.

There is no central place, so that folders below the home folder are searched, within bounds:
four levels, hidden folders and those of dependencies left out. Projects elsewhere are found by
their path, and the current directory is always looked at.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_import.contents import INTERRUPTED, joined
from hermes_import.files import existing, file_unit, is_regular, start_of
from hermes_import.json_lines import HEAD_KEY, head_of
from hermes_import.sources import by_creation
from hermes_state.imports import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_import.sources import Unit

FILE: Final = ".aider.chat.history.md"
SEARCH_DEPTH: Final = 4
MAX_FOLDERS: Final = 2000  # tenths of a second when nothing is cached
SKIPPED: Final = frozenset(
    {"node_modules", "vendor", "venv", "site-packages", "target", "build", "dist", "Library",
     "__pycache__", "go", "snap", "miniconda3", "anaconda3"}
)  # fmt: skip
HEADING: Final = "# aider chat started at "
HEADING_BYTES: Final = re.compile(rb"^# aider chat started at ", re.MULTILINE)
LINE_END: Final = "  "  # of the lines that the program adds
PROMPT: Final = "####"
QUOTE: Final = "> "
MODEL: Final = re.compile(r"> (?:Main model|Model): (\S+)")
COST: Final = re.compile(r"> Tokens: .*Cost: \$([\d.]+) message")
TOKENS: Final = "> Tokens: "
INTERRUPTION: Final = "KeyboardInterrupt"
THINKING: Final = re.compile(r"<(thinking-content-\w+)>\s*(.*?)\s*</\1>\s*", re.DOTALL)
# Commands of the program; those that ask the model are prompts.
COMMAND: Final = re.compile(r"!|/(?!(?:ask|code|architect|context)\b)[a-z-]+(?:\s|$)")


class Aider:
    """The history of aider."""

    name = "aider"
    label = "aider"

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        named = environ.get("AIDER_CHAT_HISTORY_FILE")
        current = environ.get("PWD")
        candidates = [Path(named)] if named else []
        candidates += [Path(current) / FILE] if current else []
        return list(dict.fromkeys([*existing(candidates), *_search(home)]))

    def root_at(self, path: Path) -> Path | None:
        if path.name == FILE:
            return path
        return next(iter(existing([path / FILE])), None)

    def units(self, root: Path) -> Iterator[Unit]:
        unit = file_unit(root)
        if unit is not None:
            yield unit._replace(conversations=_count_headings(root))

    def in_order(self, units: list[Unit]) -> list[Unit]:
        return by_creation(units)

    def read(self, unit: Unit, before: rows.UnitState | None) -> AiderReading:
        return AiderReading(unit, start_of(unit, before))

    def units_at(self, root: Path, paths: Iterable[Path]) -> Iterator[Unit]:
        del paths
        return self.units(root)

    def watched(self, root: Path) -> list[Path]:
        del root
        return []

    def polled(self, root: Path) -> list[Path]:
        return [root]

    def close(self) -> None:
        """Nothing is left open."""


def _count_headings(path: Path) -> int:
    """Number of conversations in a file, at least 1; reading it reports what is wrong with it."""
    try:
        with path.open("rb") as file:
            return max(1, sum(bool(HEADING_BYTES.match(line)) for line in file))
    except OSError:
        return 1


def _search(home: Path) -> list[Path]:
    """The history files in a folder and below it, the nearest first."""
    found: list[Path] = []
    level, scanned = [home], 0
    for _ in range(SEARCH_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            if scanned >= MAX_FOLDERS:
                return found
            scanned += 1
            if is_regular(folder / FILE):
                found.append(folder / FILE)
            below += _subfolders(folder)
        level = below
    return found


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".")
                and entry.name not in SKIPPED
                and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []  # not readable by this user
    return [folder / name for name in sorted(names)]


class AiderReading:
    """One pass over a file, from the last section that was read before."""

    def __init__(self, unit: Unit, start: rows.UnitState) -> None:
        self._unit = unit
        self._position = start.position
        self._head = str(start.state.get(HEAD_KEY, ""))
        self.unknown: Counter[str] = Counter(start.unknown)

    def parts(self) -> Iterator[rows.ImportedPart]:
        with self._unit.path.open("rb") as file:
            self._head = head_of(file.read(256))
            file.seek(self._position)
            data = file.read()
        starts = [found.start() for found in HEADING_BYTES.finditer(data)]
        if starts:
            self._position += starts[-1]
        elif data.strip() and not self._position:
            self.unknown["text before the first section"] += 1
        for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
            section = Section(data[start:end].decode("utf-8", "replace"))
            if section.messages:
                yield self._part(section, is_last_section=end == len(data))

    def state(self) -> rows.UnitState:
        state = {HEAD_KEY: self._head}
        return rows.UnitState(self._unit.revision, self._position, state, self.unknown)

    def _part(self, section: Section, *, is_last_section: bool) -> rows.ImportedPart:
        messages = section.messages
        # Only the start is recorded; the file was changed with the last message.
        if is_last_section and self._unit.modified_at > section.started_at:
            messages[-1] = messages[-1]._replace(at=self._unit.modified_at)
        conversation = rows.ImportedConversation(
            section.native_id,
            section.started_at,
            cwd=str(self._unit.path.parent),
            model=section.model or None,
        )
        return rows.ImportedPart(conversation, messages, section.usage, is_last=True)


class Section:
    """A conversation: what was written since a start of the program."""

    def __init__(self, text: str) -> None:
        heading, *lines = text.split("\n")
        self._start = heading.removeprefix(HEADING).strip()
        self.started_at = _local_seconds(self._start)
        self.native_id = ""
        self.model = ""
        self.messages: list[rows.ImportedMessage] = []
        self.usage: list[rows.ImportedUsage] = []
        self._prompt: list[str] = []
        self._answer: list[str] = []
        for line in lines:
            self._read_line(line)
        self._flush()

    def _read_line(self, line: str) -> None:
        is_own = line.endswith(LINE_END)
        if is_own and line.startswith(PROMPT):
            if self._answer:
                self._flush()
            self._prompt.append(line.removeprefix(PROMPT).strip())
            return
        self._flush_prompt()
        if is_own and line.startswith(QUOTE):
            self._read_quote(line)
        elif line.strip() or self._answer:
            self._answer.append(line)

    def _read_quote(self, line: str) -> None:
        if found := MODEL.match(line):
            self.model = self.model or found[1]
        elif line.startswith(TOKENS):
            self._flush()
            if self.native_id and (found := COST.match(line)):
                cost = float(found[1])
                key = f"{self.native_id}:{len(self.messages)}"
                usage = rows.ImportedUsage(self.model, cost_usd=cost, key=key, is_call=False)
                self.usage.append(usage)
        elif INTERRUPTION in line:
            self._flush()
            if self.messages and self.messages[-1].role == "assistant":
                self.messages[-1] = self.messages[-1]._replace(finish_reason=INTERRUPTED)

    def _flush(self) -> None:
        self._flush_prompt()
        text, self._answer = "\n".join(self._answer).strip(), []
        if not text or not self.native_id:
            return  # outputs of commands before the first prompt
        thoughts = [found[2] for found in THINKING.finditer(text)]
        content = THINKING.sub("", text).strip()
        self._add("assistant", content, joined(thoughts) or None)

    def _flush_prompt(self) -> None:
        text, self._prompt = "\n".join(self._prompt).strip(), []
        if not text or COMMAND.match(text):
            return
        if not self.native_id:
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            time = re.sub(r"\D+", "", self._start)
            self.native_id = f"{time[:8]}-{time[8:]}-{digest}"
        self._add("user", text)

    def _add(self, role: str, content: str, reasoning: str | None = None) -> None:
        is_answer = role == "assistant"
        self.messages.append(
            rows.ImportedMessage(
                f"{self.native_id}:{len(self.messages)}",
                role,
                content,
                self.started_at,
                reasoning=reasoning,
                finish_reason="stop" if is_answer else None,
                may_change=is_answer,
            )
        )


def _local_seconds(text: str) -> float:
    """Seconds since 1970 of a local time without its zone; 0 if it is not one."""
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        return 0.0
