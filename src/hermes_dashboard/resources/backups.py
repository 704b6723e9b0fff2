"""Backups: writing, listing and verifying them; a restore needs a terminal.

A restore replaces the store that the dashboard itself has open, and settings that grant
something: the page only names the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field

from hermes_conversation.backups import FOLDER, BackgroundBackup, list_backups
from hermes_core.command_name import terminal_command
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_conversation.backups import StoredBackup
    from hermes_dashboard.context import DashboardContext

IS_BUSY: Final = "A backup is being written or verified."


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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of backups."""
    routes = ResourceRouter("/api/backups", tag="backups")
    folder = context.home / FOLDER
    work = BackgroundBackup(context.db, folder)

    def state() -> BackupState:
        task = work.task
        return BackupState(
            folder=str(folder),
            items=[_item(each) for each in list_backups(folder)],
            task=task and BackupTaskView(**task._asdict(), is_running=task.ended_at is None),
            sessions=sum(context.db.statistics.session_count_by_source().values()),
        )

    @routes.get("", responses=problems(503))
    def show_backups() -> BackupState:
        """The backups in the folder `backups`, and the one that is written or verified."""
        return state()

    @routes.post("", status_code=202, responses=problems(409, 503))
    def write_backup() -> BackupState:
        """Write a backup of history and settings, without secrets, while Hermes is running."""
        if not work.write():
            raise HTTPException(409, IS_BUSY)
        return state()

    @routes.post("/{name}/verify", status_code=202, responses=problems(404, 409, 503))
    def verify_backup(name: Identifier) -> BackupState:
        """Extract a backup into a folder of its own and check every file of it."""
        if name not in {each.path.name for each in list_backups(folder)}:
            raise HTTPException(404, f"No backup {name}.")
        if not work.verify(name):
            raise HTTPException(409, IS_BUSY)
        return state()

    return routes


def _item(backup: StoredBackup) -> BackupItem:
    manifest = backup.manifest
    return BackupItem(
        name=backup.path.name,
        size=backup.size,
        created_at=None if manifest is None else manifest.created_at,
        sessions=None if manifest is None else manifest.sessions,
        messages=None if manifest is None else manifest.messages,
        files=None if manifest is None else len(manifest.files),
        with_secrets=manifest is not None and manifest.with_secrets,
        problem=backup.problem,
        restore_command=terminal_command("restore", str(backup.path)),
    )
