"""The dependencies of the dashboard, assembled by the process that starts it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hermes_dashboard.analytics.analysis import Analysis
from hermes_dashboard.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB


class GatewayReader(Protocol):
    """Read access to the chat gateway, which may run in another process."""

    def state(self) -> dict[str, Any]:
        """The state of the process and of each platform.

        `is_running`, `pid`, `started_at`, `version` and `platforms`: a list with `name`,
        `state`, `detail`, `account` and `since`.
        """
        ...

    def errors(self, limit: int) -> list[dict[str, Any]]:
        """Recent errors, newest first: `at`, `level`, `logger`, `message`."""
        ...

    def chats(self, limit: int) -> list[dict[str, Any]]:
        """Chats with a conversation, most recently active first.

        `key`, `platform`, `name`, `kind`, `session_id` and `last_active`.
        """
        ...


@dataclass(frozen=True)
class DashboardContext:
    """The dependencies of the resources."""

    db: SessionDB
    home: Path
    gateway: GatewayReader
    models: Callable[[], list[dict[str, Any]]]  # as in `hermes models list --json`
    is_demo: bool = False
    start_folder: Path = field(default_factory=Path.cwd)  # where the dashboard was started

    @functools.cached_property
    def workspaces(self) -> Workspaces:
        """The working folders of conversations on the page."""
        return Workspaces(self.home, self.start_folder)

    @functools.cached_property
    def analysis(self) -> Analysis:
        """The analytics of the history, shared by all resources."""
        return Analysis(self.db)
