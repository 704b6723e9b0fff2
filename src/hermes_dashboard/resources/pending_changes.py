"""Changes that need a confirmation in a terminal: the list for the page, and cancelling.

A page may change what grants nothing. What selects a command, an endpoint, a plugin or a
credential of a platform, or lets the agent do more, is only requested here; it takes effect
after `hermes dashboard confirm CODE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field

from hermes_core.command_name import terminal_command
from hermes_core.config.file import ConfigFile
from hermes_dashboard.errors import PlainJson
from hermes_dashboard.models.text import Identifier, Responses, Text
from hermes_dashboard.pending_changes import PendingChanges, facts_of
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.pending_changes import ChangeKind, PendingChange


class PendingChangeItem(BaseModel):
    """A change that takes effect after its command was run in a terminal."""

    code: str
    kind: Literal[
        "setting", "plugin", "job", "platform", "pairing", "role", "mcp_server", "webhook_route"
    ]
    name: Text
    old: Text = Field(description="The current value; of a secret, whether it is set.")
    new: Text
    command: Text
    state: Literal["pending", "applied"]
    expires_at: float


class PendingChangeList(BaseModel):
    """Changes that wait for a confirmation, and those confirmed a short time ago."""

    items: list[PendingChangeItem]
    command: Text = Field(description="The command that confirms all pending changes, or empty.")


NEEDS_CONFIRMATION: Final[Responses] = {
    202: {
        "model": PendingChangeItem,
        "description": "Nothing was changed: the change needs a confirmation in a terminal.",
    }
}


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of pending changes."""
    routes = ResourceRouter("/api/pending-changes", tag="settings")
    changes = PendingChanges(context.home)

    @routes.get("")
    def list_changes() -> PendingChangeList:
        """Changes that wait for a confirmation, and those confirmed a short time ago."""
        config, current = ConfigFile.of_home(), changes.current()
        codes = [change.code for change in current if change.state == "pending"]
        return PendingChangeList(
            items=[change_item(change, config) for change in current],
            command=confirm_command(*codes) if codes else "",
        )

    @routes.remove("/{code}", 404)
    def cancel(code: Identifier) -> None:
        """Cancel a change, or remove a confirmed one from the list."""
        if not changes.remove(code):
            raise HTTPException(404, "No change with this code.")

    return routes


def change_item(change: PendingChange, config: ConfigFile) -> PendingChangeItem:
    """A change as the page shows it; the value of a secret is omitted."""
    command = confirm_command(change.code)
    return PendingChangeItem(**facts_of(change, config), command=command, state=change.state)


def request_change(home: Path, kind: ChangeKind, name: str, value: str | None) -> PlainJson:
    """Store a change until a terminal confirms it; the response to its request."""
    change = PendingChanges(home).add(kind, name, value)
    return PlainJson(change_item(change, ConfigFile.of_home()).model_dump(), 202)


def confirm_command(*codes: str) -> str:
    """The command that confirms changes."""
    return terminal_command("dashboard", "confirm", *codes)
