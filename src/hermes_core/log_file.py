"""The log file, which is opened when the first entry is written."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import paths
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject, JsonValue


def log_fields(**fields: JsonValue) -> dict[str, JsonObject]:
    """The `extra` argument of a log call; fields that are None are omitted."""
    return {"facts": {name: value for name, value in fields.items() if value is not None}}


MAX_LOG_BYTES = 2_000_000
MAX_ROTATED_FILES = 3
TEXT_LOG_NAME = "hermes.log"
GATEWAY_LOG_NAME = "gateway.jsonl"
# Some of these log the headers of requests, which carry access tokens.
VERBOSE_LOGGERS = ("httpx2", "httpcore", "uvicorn.error", "websockets")
ENTRY_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=str)
LOG_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


class JsonLinesFormatter(logging.Formatter):
    """An entry as one line of JSON, with the fields of `extra={"facts": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The entry as a JSON line."""
        entry = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": record.process,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return ENTRY_ENCODER.encode(entry)


class LogEntry(NamedTuple):
    """A line of a log file; `facts` are the fields besides the common ones."""

    at: str
    level: str
    logger: str
    message: str
    facts: JsonObject
    fields: JsonObject  # all of them, as written


COMMON_FIELDS: Final = frozenset({"at", "level", "process", "logger", "message", "traceback"})


def parse_line(line: str | bytes) -> LogEntry:
    """A line of a log file of JSON lines; ValueError if it is not one."""
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("not a log entry")  # noqa: TRY004 - as for other invalid JSON
    facts = {name: value for name, value in fields.items() if name not in COMMON_FIELDS}
    at, level, logger, message = (
        str(fields.get(name, "")) for name in ("at", "level", "logger", "message")
    )
    return LogEntry(at, level, logger, message, facts, fields)


class LogFile(logging.Handler):
    """Writes entries to a rotating file in the `logs` folder of the home."""

    def __init__(self, name: str = TEXT_LOG_NAME) -> None:
        super().__init__()
        self._name = name
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one entry."""
        if self._file is None:
            self._file = _open(self._name)
        self._file.emit(record)

    def close(self) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close()
        super().close()


def _open(name: str) -> logging.Handler:
    """Open the file; a file that cannot be opened does not stop the command."""
    try:
        return _open_file(name)
    except OSError:
        return logging.NullHandler()


def _open_file(name: str) -> logging.Handler:
    from logging.handlers import RotatingFileHandler  # noqa: PLC0415 - most commands log nothing

    class QuietFileHandler(RotatingFileHandler):
        """Drops an entry that cannot be written, e.g. on a full disk, without a traceback."""

        def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - of the base class
            """Drop the entry."""

        def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802
            """Whether the file is full, by its size: the base class formats each entry twice."""
            stream = self.stream
            return stream is not None and os.fstat(stream.fileno()).st_size >= self.maxBytes

    path = paths.private_folder(paths.logs_path()) / name
    handler = QuietFileHandler(
        path,
        maxBytes=MAX_LOG_BYTES,
        backupCount=MAX_ROTATED_FILES,
        encoding="utf-8",
        errors="replace",
    )
    paths.private_file(path)
    handler.setFormatter(
        logging.Formatter(LOG_FORMAT) if name == TEXT_LOG_NAME else JsonLinesFormatter()
    )
    return handler


def install(name: str = TEXT_LOG_NAME) -> None:
    """Write this process's log entries to the file, from the configured level.

    A file other than the default one is written as JSON lines.
    """
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, LogFile)]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(LogFile(name))
    root.setLevel(_level())
    for logger_name in VERBOSE_LOGGERS:
        logging.getLogger(logger_name).setLevel(max(root.level, logging.WARNING))


def _level() -> int:
    if is_set("log.level"):
        from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - YAML is slow to load

        try:
            name = ConfigFile.of_home().settings().get_str("log.level")
        except ConfigError:
            return logging.INFO  # reported by `config check` and `doctor`
        return logging.getLevelNamesMapping()[name.upper()]
    return logging.INFO
