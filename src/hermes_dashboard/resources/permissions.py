"""Permissions: the mode, the sandbox and the rules.

A page may revoke a rule, which grants nothing. Rules are added in a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import HTTPException, Query
from pydantic import BaseModel

from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from hermes_agent.sandbox.runner import find_sandbox
from hermes_core.config.file import ConfigFile
from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_state.files import shared_files

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext


class PermissionState(BaseModel):
    """What the agent may do without asking in new conversations."""

    mode: Text
    sandbox: Text
    is_sandbox_available: bool
    problem: Text | None
    rules: list[Text]


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of permissions."""
    routes = ResourceRouter("/api", tag="permissions")
    grants = Grants(context.home / GRANTS_FILE, shared=shared_files(context.db))

    @routes.get("/permissions", responses=problems(503))
    def show_permissions() -> PermissionState:
        """The mode and the sandbox of new conversations, and what is always allowed."""
        sandbox = find_sandbox()
        return PermissionState(
            mode=ConfigFile.of_home().settings().get_str("agent.approvals"),
            sandbox=sandbox.name,
            is_sandbox_available=sandbox.is_available,
            problem=sandbox.problem,
            rules=grants.always(),
        )

    @routes.remove("/permissions/rules", 404, 503)
    def revoke_rule(rule: Annotated[str, Query(min_length=1, max_length=20_000)]) -> None:
        """Remove a rule; the agent asks again."""
        if not grants.revoke(rule):
            raise HTTPException(404, f"No rule {rule!r}.")

    return routes
