"""The end of a log file: text or JSON lines, without secrets, limited in size."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import log_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_TAIL_BYTES: Final = 1_000_000
MAX_MESSAGE_CHARACTERS: Final = 8_000
LOG_NAME: Final = re.compile(r"[\w-]+\.(log|jsonl)(\.\d+)?")
# As LOG_FORMAT writes it; other lines continue the entry before, such as a traceback.
TEXT_LINE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) \d+ "
    r"([\w.<>-]+): (.*)"
)
MIN_SECRET_CHARACTERS: Final = 6
HIDDEN: Final = "[hidden]"
# Credentials that no setting names: of URLs, headers and well-known forms of tokens.
CREDENTIALS: Final = (
    re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"\b(?:sk|xox[abp]|xapp|ghp|gho|syt)[-_][\w-]{10,}"),
    re.compile(r"\b\d{6,12}:[\w-]{30,}"),
    re.compile(r"(?i)(?<=[?&])(?:token|key|access_token|api_key)=[^&\s]+"),
)


class LogFileFacts(NamedTuple):
    """A log file."""

    name: str
    size: int
    changed_at: float


class TailEntry(NamedTuple):
    """An entry of a log file; `at` is None if the line has no time."""

    at: float | None
    level: str
    logger: str
    message: str


def list_logs(folder: Path) -> list[LogFileFacts]:
    """The log files of a folder, the latest first; links are not followed."""
    if not folder.is_dir():
        return []
    found = []
    for path in folder.iterdir():
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode) and LOG_NAME.fullmatch(path.name):
            found.append(LogFileFacts(path.name, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda each: (-each.changed_at, each.name))


def read_tail(
    path: Path, limit: int, level: str = "debug", secrets: Iterable[str] = ()
) -> list[TailEntry]:
    """The last entries of at least a level, oldest first; secrets are replaced."""
    levels = logging.getLevelNamesMapping()
    minimum = levels[level.upper()]
    wanted = (
        entry
        for entry in _entries(_last_lines(path))
        if levels.get(entry.level.upper(), logging.INFO) >= minimum
    )
    known = sorted({each for each in secrets if len(each) >= MIN_SECRET_CHARACTERS}, key=len)
    return [
        entry._replace(message=_without_secrets(entry.message, known[::-1]))
        for entry in deque(wanted, maxlen=limit)
    ]


def _last_lines(path: Path) -> Iterator[str]:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_TAIL_BYTES:
            file.seek(-MAX_TAIL_BYTES, os.SEEK_END)
            file.readline()  # a partial line
        content = file.read(MAX_TAIL_BYTES)
    for line in content.decode(errors="replace").split("\n"):
        if line.strip():
            yield line.rstrip("\r")


def _entries(lines: Iterable[str]) -> Iterator[TailEntry]:
    current: TailEntry | None = None
    for line in lines:
        entry = _entry(line)
        if entry is not None:
            if current is not None:
                yield current
            current = entry
        elif current is None:
            current = TailEntry(None, "info", "", line)
        else:
            text = f"{current.message}\n{line}"[:MAX_MESSAGE_CHARACTERS]
            current = current._replace(message=text)
    if current is not None:
        yield current


def _entry(line: str) -> TailEntry | None:
    """The entry that begins with this line; None if it continues another one."""
    if line.startswith("{"):
        return _json_entry(line)
    match = TEXT_LINE.fullmatch(line)
    if match is None:
        return None
    moment, milliseconds, level, logger, message = match.groups()
    at = datetime.fromisoformat(moment).timestamp() + int(milliseconds) / 1000
    return TailEntry(at, level.lower(), logger, message[:MAX_MESSAGE_CHARACTERS])


def _json_entry(line: str) -> TailEntry | None:
    try:
        entry = log_file.parse_line(line)
        at = datetime.fromisoformat(entry.at).timestamp()
    except ValueError:
        return None
    facts = " ".join(f"{name}={value}" for name, value in entry.facts.items())
    trace = str(entry.fields.get("traceback") or "")
    text = "\n".join(part for part in (f"{entry.message}  {facts}".rstrip(), trace) if part)
    return TailEntry(at, entry.level, entry.logger, text[:MAX_MESSAGE_CHARACTERS])


def _without_secrets(text: str, known: list[str]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for pattern in CREDENTIALS:
        text = pattern.sub(HIDDEN, text)
    return text
