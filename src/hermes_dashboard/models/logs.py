"""Models of log files."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text

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
