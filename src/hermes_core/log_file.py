"""The log file: opened when the first entry is written, so that most commands never do."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from hermes_core import paths
from hermes_core.config.probe import may_be_set
from hermes_core.errors import ConfigError


def log_fields(**found: Any) -> dict[str, Any]:
    """The `extra` of a log call; facts that are not known are left out."""
    return {"facts": {name: value for name, value in found.items() if value is not None}}


MAX_BYTES = 2_000_000
KEPT_FILES = 3
PLAIN = "hermes.log"
GATEWAY = "gateway.jsonl"
TALKATIVE = ("httpx2", "uvicorn.error", "aiohttp", "nio", "discord", "slack_sdk")
FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


class JsonLines(logging.Formatter):
    """An entry as one line of JSON, with the facts that came with it as `extra={"facts": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
        return json.dumps(entry, ensure_ascii=False, default=str)


class LogFile(logging.Handler):
    """Hands entries to a rotating file in the home's `logs` folder."""

    def __init__(self, name: str = PLAIN) -> None:
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
    """The file; where nothing can be written, a command is not stopped by its log."""
    try:
        return _open_file(name)
    except OSError:
        return logging.NullHandler()


def _open_file(name: str) -> logging.Handler:
    from logging.handlers import RotatingFileHandler  # noqa: PLC0415 - most commands log nothing

    path = paths.private_folder(paths.logs_path()) / name
    handler = RotatingFileHandler(
        path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="replace"
    )
    paths.private_file(path)
    handler.setFormatter(logging.Formatter(FORMAT) if name == PLAIN else JsonLines())
    return handler


def install(name: str = PLAIN) -> None:
    """Send this process's log entries to the file, from the level the user chose.

    Another file than the usual one is written as lines of JSON.
    """
    root = logging.getLogger()
    for known in [one for one in root.handlers if isinstance(one, LogFile)]:
        root.removeHandler(known)
        known.close()
    root.addHandler(LogFile(name))
    root.setLevel(_level())
    for talkative in TALKATIVE:
        logging.getLogger(talkative).setLevel(max(root.level, logging.WARNING))


def _level() -> int:
    if may_be_set("log.level"):
        from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - YAML is slow to load

        try:
            name = ConfigFile.of_home().settings().get_str("log.level")
        except ConfigError:
            return logging.INFO  # `config check` and `doctor` say what is wrong
        return logging.getLevelNamesMapping()[name.upper()]
    return logging.INFO
