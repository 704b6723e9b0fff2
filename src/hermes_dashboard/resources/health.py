"""Quick health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from hermes_dashboard.health_checks import OK, Checked
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext


class Health(BaseModel):
    """Result of the quick checks."""

    status: Literal["ok", "attention"]
    checks: list[Checked]


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the checks."""
    routes = ResourceRouter("/api/health", tag="health")

    @routes.get("")
    def show_health() -> Health:
        """Quick checks only; `hermes doctor` runs all checks."""
        checks = context.health.run()
        is_fine = all(check.status == OK for check in checks)
        return Health(status="ok" if is_fine else "attention", checks=checks)

    return routes
