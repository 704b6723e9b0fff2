"""The application: all resources behind one gate. Importing it starts nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from starlette.middleware.gzip import GZipMiddleware

from hermes_core import __version__
from hermes_core.metrics import CONTENT_TYPE
from hermes_dashboard import errors
from hermes_dashboard.auth.gate import GUARDED, Gate
from hermes_dashboard.metrics import DashboardMetrics, Metered
from hermes_dashboard.plugins.apis import PREFIX, PluginApis
from hermes_dashboard.resources import (
    analytics,
    auth,
    changes,
    chat,
    files,
    gateway,
    health,
    hooks,
    live,
    models,
    overview,
    plugin_tabs,
    plugins,
    search,
    sessions,
    settings,
    transcripts,
    uploads,
)
from hermes_dashboard.server import ShutdownSignal

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import Find

# Those that stand on the parts alone; the first that fits a path answers.
RESOURCES: Final = (
    overview, sessions, transcripts, changes, files, search, analytics, gateway, hooks, settings,
    plugins, health, uploads, models,
)  # fmt: skip
MIN_PACKED: Final = 1024
EFFORT: Final = 5


class Dashboard(FastAPI):
    """An application whose gate is in front of everything, errors included."""

    def __init__(self, access: Access) -> None:
        super().__init__(
            title="Hermes dashboard",
            version=__version__,
            openapi_url=None,  # `_add_description` serves it, not in the event loop
            docs_url=None,
            redoc_url=None,
            default_response_class=errors.PlainJson,
        )
        self.access = access
        self.meters = DashboardMetrics()
        self.farewell = ShutdownSignal()
        self._describing = threading.Lock()

    def openapi(self) -> dict[str, Any]:
        """What the server says of itself; made once, which takes a while."""
        with self._describing:
            return super().openapi()

    def build_middleware_stack(self) -> ASGIApp:
        """The usual stack, behind the gate."""
        inner = errors.Caught(super().build_middleware_stack())
        return Gate(Metered(inner, self.meters), self.access)


def create_app(parts: DashboardContext, access: Access, page: Page, *, tabs: Find) -> Dashboard:
    """The dashboard of *parts*, for those whom *access* lets in."""
    app = Dashboard(access)
    errors.install(app)
    app.add_middleware(GZipMiddleware, minimum_size=MIN_PACKED, compresslevel=EFFORT)
    apis = PluginApis(tabs, access)
    app.include_router(auth.router(access))
    app.include_router(live.router(parts, access, app.farewell, app.meters))
    app.include_router(chat.router(access, app.farewell, app.meters))
    app.include_router(plugin_tabs.router(apis))
    for resource in RESOURCES:
        app.include_router(resource.router(parts))
    _add_metrics(app)
    _add_description(app)
    app.mount(PREFIX, apis)  # after our own routes below the same path
    _add_page(app, page)
    return app


def _add_metrics(app: Dashboard) -> None:
    @app.get("/metrics", tags=["health"], response_class=Response)
    def metrics() -> Response:
        """Metrics in the Prometheus text format."""
        return Response(app.meters.registry.render(), headers={"Content-Type": CONTENT_TYPE})


def _add_description(app: Dashboard) -> None:
    @app.get("/openapi.json", include_in_schema=False)
    def description() -> Response:
        """All addresses, in a thread: others are answered meanwhile."""
        return errors.PlainJson(app.openapi())


def _add_page(app: Dashboard, page: Page) -> None:
    @app.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    def everything_else(path: str, request: Request) -> Response:
        """The page; it reads the path itself."""
        if f"/{path}".startswith(GUARDED):
            return errors.PlainJson({"detail": "There is nothing here."}, 404)
        return page.response(path, request.scope)
