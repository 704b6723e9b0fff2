"""Log files: their list, and the end of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field

from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_dashboard import log_tail
from hermes_dashboard.models.text import Identifier, Text, View, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.context import DashboardContext

LogLevel = Literal["debug", "info", "warning", "error"]


class LogFileItem(View):
    """A log file."""

    name: Text
    size: int
    changed_at: float


class LogFileList(BaseModel):
    """The log files, the latest first."""

    folder: Text
    items: list[LogFileItem]


class LogLine(View):
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
        items = log_tail.list_logs(folder)
        return LogFileList.model_validate({"folder": folder, "items": items})

    @routes.get("/{name}", responses=problems(404))
    def show_log(
        name: Identifier,
        level: LogLevel = "info",
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> LogTail:
        """The last entries of a log file, at least of a level; credentials are replaced.

        A log that was not written yet has no entries.
        """
        if not log_tail.LOG_NAME.fullmatch(name):
            raise HTTPException(404, f"No log file {name}.")
        facts = next((each for each in log_tail.list_logs(folder) if each.name == name), None)
        if facts is None:
            return LogTail(name=name, size=0, items=[])
        entries = log_tail.read_tail(folder / name, limit, level, _secrets())
        return LogTail.model_validate({"name": name, "size": facts.size, "items": entries})

    return routes


def _secrets() -> Iterator[str]:
    """The values of all configured secrets."""
    config = ConfigFile.of_home()
    for setting in SETTINGS:
        if setting.secret:
            yield config.secret(setting.name) or ""
