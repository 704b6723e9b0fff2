"""Log files: their list, and the end of one."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field

from hermes_core import log_file
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_dashboard.context import DashboardContext


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


LogLevel = Literal["debug", "info", "warning", "error"]


class LogFileItem(BaseModel):
    """A log file."""

    name: Text
    size: int
    changed_at: float


class LogFileList(BaseModel):
    """The log files, the latest first."""

    folder: Text
    items: list[LogFileItem]


class LogLine(BaseModel):
    """An entry of a log file."""

    at: float | None
    level: Text
    logger: Text
    message: Text


class LogTail(BaseModel):
    """The end of a log file, oldest entry first; credentials are replaced."""

    name: Text
    size: int = Field(description="of the whole file")
    items: list[LogLine]


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of log files."""
    routes = ResourceRouter("/api/logs", tag="logs")
    folder = context.home / "logs"

    @routes.get("")
    def list_logs() -> LogFileList:
        """All log files of the Hermes folder, the latest first."""
        return LogFileList(folder=str(folder), items=find_logs(folder))

    @routes.get("/{name}", responses=problems(404))
    def show_log(
        name: Identifier,
        level: LogLevel = "info",
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> LogTail:
        """The last entries of a log file, at least of a level; credentials are replaced.

        A log that was not written yet has no entries.
        """
        if not LOG_NAME.fullmatch(name):
            raise HTTPException(404, f"No log file {name}.")
        facts = next((each for each in find_logs(folder) if each.name == name), None)
        if facts is None:
            return LogTail(name=name, size=0, items=[])
        entries = read_tail(folder / name, limit, level, _secrets())
        return LogTail(name=name, size=facts.size, items=entries)

    return routes


def _secrets() -> Iterator[str]:
    """The values of all configured secrets."""
    config = ConfigFile.of_home()
    for setting in SETTINGS:
        if setting.secret:
            yield config.secret(setting.name) or ""


def find_logs(folder: Path) -> list[LogFileItem]:
    """The log files of a folder, the latest first; links are not followed."""
    if not folder.is_dir():
        return []
    found = []
    for path in folder.iterdir():
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode) and LOG_NAME.fullmatch(path.name):
            found.append(LogFileItem(name=path.name, size=facts.st_size, changed_at=facts.st_mtime))
    return sorted(found, key=lambda each: (-each.changed_at, each.name))


def read_tail(
    path: Path, limit: int, level: str = "debug", secrets: Iterable[str] = ()
) -> list[LogLine]:
    """The last entries of at least a level, oldest first; secrets are replaced."""
    levels = logging.getLevelNamesMapping()
    minimum = levels[level.upper()]
    wanted = (
        entry
        for entry in _entries(last_lines(path))
        if levels.get(entry.level.upper(), logging.INFO) >= minimum
    )
    known = sorted({each for each in secrets if len(each) >= MIN_SECRET_CHARACTERS}, key=len)
    return [
        entry.model_copy(update={"message": _without_secrets(entry.message, known[::-1])})
        for entry in deque(wanted, maxlen=limit)
    ]


def last_lines(path: Path) -> Iterator[str]:
    """The last lines of a file, without blank ones."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_TAIL_BYTES:
            file.seek(-MAX_TAIL_BYTES, os.SEEK_END)
            file.readline()  # a partial line
        content = file.read(MAX_TAIL_BYTES)
    for line in content.decode(errors="replace").split("\n"):
        if line.strip():
            yield line.rstrip("\r")


def _entries(lines: Iterable[str]) -> Iterator[LogLine]:
    current: LogLine | None = None
    for line in lines:
        entry = _entry(line)
        if entry is not None:
            if current is not None:
                yield current
            current = entry
        elif current is None:
            current = LogLine(at=None, level="info", logger="", message=line)
        else:
            text = f"{current.message}\n{line}"[:MAX_MESSAGE_CHARACTERS]
            current = current.model_copy(update={"message": text})
    if current is not None:
        yield current


def _entry(line: str) -> LogLine | None:
    """The entry that begins with this line; None if it continues another one."""
    if line.startswith("{"):
        return _json_entry(line)
    match = TEXT_LINE.fullmatch(line)
    if match is None:
        return None
    moment, milliseconds, level, logger, message = match.groups()
    at = datetime.fromisoformat(moment).timestamp() + int(milliseconds) / 1000
    return LogLine(
        at=at, level=level.lower(), logger=logger, message=message[:MAX_MESSAGE_CHARACTERS]
    )


def _json_entry(line: str) -> LogLine | None:
    try:
        entry = log_file.parse_line(line)
        at = datetime.fromisoformat(entry.at).timestamp()
    except ValueError:
        return None
    facts = " ".join(f"{name}={value}" for name, value in entry.facts.items())
    trace = str(entry.fields.get("traceback") or "")
    text = "\n".join(part for part in (f"{entry.message}  {facts}".rstrip(), trace) if part)
    return LogLine(
        at=at, level=entry.level, logger=entry.logger, message=text[:MAX_MESSAGE_CHARACTERS]
    )


def _without_secrets(text: str, known: list[str]) -> str:
    for secret in known:
        text = text.replace(secret, HIDDEN)
    for pattern in CREDENTIALS:
        text = pattern.sub(HIDDEN, text)
    return text
