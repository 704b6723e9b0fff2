"""The dependencies of the dashboard, assembled by the process that starts it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_dashboard.analytics.analysis import Analysis, ToolErrorCounts
from hermes_dashboard.resources.health import HealthChecks
from hermes_dashboard.resources.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_dashboard.resources.gateway import GatewayAccess
    from hermes_dashboard.resources.models import Model
    from hermes_state.store import SessionDB


@dataclass(frozen=True)
class DashboardContext:
    """The dependencies of the resources."""

    db: SessionDB
    home: Path
    gateway: GatewayAccess
    models: Callable[[], list[Model]]
    is_demo: bool = False
    start_folder: Path = field(default_factory=Path.cwd)  # where the dashboard was started

    @functools.cached_property
    def workspaces(self) -> Workspaces:
        """The working folders of conversations on the page."""
        return Workspaces(self.home, self.start_folder)

    @functools.cached_property
    def health(self) -> HealthChecks:
        """The health checks, shared by all resources."""
        return HealthChecks(self)

    @functools.cached_property
    def analysis(self) -> Analysis:
        """The analytics of the history, shared by all resources."""
        return Analysis(self.db)

    @functools.cached_property
    def tool_errors(self) -> ToolErrorCounts:
        """The numbers of failed tool calls, for lists that are sorted by them."""
        return ToolErrorCounts(self.db, self.analysis)
