"""Models of backups."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text


class BackupItem(BaseModel):
    """A backup; one that cannot be read has a problem."""

    name: Text
    size: int
    created_at: float | None
    sessions: int | None
    messages: int | None
    files: int | None
    with_secrets: bool
    problem: Text
    restore_command: Text = Field(
        description="to run in a terminal after all Hermes processes were stopped"
    )


class BackupTaskView(BaseModel):
    """The backup that is written or verified, or was the last."""

    action: Literal["write", "verify"]
    name: Text
    progress: Text
    error: Text
    is_running: bool


class BackupState(BaseModel):
    """The backups of the Hermes folder, and what is being done."""

    folder: Text
    items: list[BackupItem]
    task: BackupTaskView | None
    sessions: int = Field(description="conversations in the history now")
