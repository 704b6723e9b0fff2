"""The dashboard of a process: its parts, with the gateway and the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_dashboard.app import Dashboard, create_app
from hermes_dashboard.context import DashboardContext
from hermes_dashboard.resources.gateway import GatewayAccess
from hermes_dashboard.resources.models import available_models

if TYPE_CHECKING:
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import FindTabs
    from hermes_state.store import SessionDB


def app(
    db: SessionDB, access: Access, page: Page, tabs: FindTabs, *, is_demo: bool = False
) -> Dashboard:
    """Build the dashboard app over *db*."""
    parts = DashboardContext(db, paths.hermes_home(), GatewayAccess(db), available_models, is_demo)
    return create_app(parts, access, page, tabs=tabs)
