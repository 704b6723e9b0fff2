"""Histories of other agents: what is on this machine, and importing it.

Only histories in the places of their agents are imported; other folders are given in a
terminal.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import HTTPException
from pydantic import BaseModel, Field

from hermes_conversation.agent_imports import BackgroundImport, registry_of_home
from hermes_core.config.file import ConfigFile
from hermes_dashboard.models.text import Text, View, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_import.follower_status import FollowerStatus, read_status

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_import.registry import FoundHistory
    from hermes_state.store import SessionDB


class AgentHistory(BaseModel):
    """The history of an agent on this machine."""

    agent: Text
    label: Text
    places: list[Text]
    conversations: int
    size_bytes: int
    new: int = Field(description="conversations that are new or have changed since the import")
    imported: int = Field(description="conversations that were imported")
    imported_at: float | None


class ImportProgress(View):
    """How far the running import is."""

    agent: Text
    units: int
    of_units: int
    read_bytes: int
    of_bytes: int


class ImportResult(View):
    """What the last import has stored from one agent."""

    agent: Text
    new: int
    extended: int
    messages: int
    copies: int
    deleted: int
    taken: int
    unknown: dict[Text, int]
    failures: dict[Text, Text]


class FollowerState(BaseModel):
    """The process that imports new messages while other agents work."""

    is_running: bool
    failing: dict[Text, Text] = Field(description="agents whose files cannot be imported, and why")


class ImportState(BaseModel):
    """The histories of other agents, and the import that is running or was the last."""

    items: list[AgentHistory]
    is_following: bool = Field(description="whether the setting `import.follow` is on")
    follower: FollowerState
    is_running: bool
    progress: ImportProgress | None
    results: list[ImportResult]


class ImportRequest(BaseModel):
    """The agents to import from; all if the list is empty."""

    agents: list[Text] = Field(default_factory=list, max_length=100)


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of imports."""
    routes = ResourceRouter("/api/imports", tag="imports")
    db, imports = context.db, BackgroundImport(context.db)

    @routes.get("", responses=problems(503))
    def show_imports() -> ImportState:
        """The histories of other agents on this machine, and the progress of an import."""
        return _state(db, imports)

    @routes.post("", status_code=202, responses=problems(404, 409, 503))
    def start_import(request: ImportRequest) -> ImportState:
        """Import what is new from some agents, or from all that were found."""
        found = _found()
        unknown = set(request.agents) - {each.source.name for each in found}
        if unknown:
            raise HTTPException(404, f"No history of {', '.join(sorted(unknown))} found.")
        wanted = [
            each for each in found if not request.agents or each.source.name in request.agents
        ]
        if not imports.start(wanted):
            raise HTTPException(409, "An import is running.")
        return _state(db, imports)

    return routes


def _found() -> list[FoundHistory]:
    return registry_of_home().found_in(Path.home(), os.environ)


def _state(db: SessionDB, imports: BackgroundImport) -> ImportState:
    counts = db.imports.counts()
    items = []
    for found in _found():
        count, at = counts.get(found.source.name, (0, None))
        items.append(AgentHistory(**found.facts(db)._asdict(), imported=count, imported_at=at))
    return ImportState.model_validate(
        {
            "items": items,
            "is_following": ConfigFile.of_home().settings().get_bool("import.follow"),
            "follower": _follower_state(),
            "is_running": imports.is_running,
            "progress": imports.progress,
            "results": imports.reports,
        }
    )


def _follower_state() -> FollowerState:
    status = read_status() or FollowerStatus()
    is_running = status.is_running
    return FollowerState(is_running=is_running, failing=dict(status.failing) if is_running else {})
