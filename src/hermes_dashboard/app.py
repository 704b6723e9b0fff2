"""The FastAPI application: all resources behind the access gate. Importing it starts nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from starlette.middleware.gzip import GZipMiddleware

from hermes_core import __version__
from hermes_core.metrics import CONTENT_TYPE
from hermes_dashboard import errors
from hermes_dashboard.auth.gate import GUARDED, Gate
from hermes_dashboard.metrics import DashboardMetrics, MetricsMiddleware
from hermes_dashboard.plugins.apis import PREFIX, PluginApis
from hermes_dashboard.resources import (
    analytics,
    answers,
    auth,
    backups,
    changes,
    chat,
    edits,
    facts,
    files,
    gateway,
    gateway_setup,
    health,
    hooks,
    imports,
    live,
    logs,
    mcp_servers,
    memory,
    models,
    overview,
    pending_changes,
    permissions,
    plugin_tabs,
    plugins,
    schedules,
    search,
    sessions,
    settings,
    transcripts,
    uploads,
    webhook_routes,
    workspaces,
)
from hermes_dashboard.server import ShutdownSignal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import FindTabs

# Resources that need only the context; the first matching route handles a request.
RESOURCES: Final = (
    overview, sessions, transcripts, changes, files, search, answers, analytics,
    gateway_setup, gateway, hooks, settings,
    pending_changes, plugins, health, uploads, models, workspaces, schedules,
    imports, memory, facts, edits, logs, backups, permissions, mcp_servers,
    webhook_routes,
)  # fmt: skip
MIN_COMPRESSED_BYTES: Final = 1024
COMPRESSION_LEVEL: Final = 5


class Dashboard(FastAPI):
    """The application; the access gate is the outermost layer, around error handling too."""

    def __init__(self, access: Access, apis: PluginApis) -> None:
        @contextlib.asynccontextmanager
        async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
            yield
            await asyncio.to_thread(apis.close)

        super().__init__(
            lifespan=lifespan,
            title="Hermes dashboard",
            version=__version__,
            openapi_url=None,  # `_add_description` serves it outside the event loop
            docs_url=None,
            redoc_url=None,
            default_response_class=errors.PlainJson,
        )
        self.access = access
        self.metrics = DashboardMetrics()
        self.shutdown_signal = ShutdownSignal()
        self._openapi_lock = threading.Lock()

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document; building it is slow, so it is built once."""
        with self._openapi_lock:
            return super().openapi()

    def build_middleware_stack(self) -> ASGIApp:
        """The default middleware, wrapped in error logging, metrics and the gate."""
        inner = errors.ErrorLogMiddleware(super().build_middleware_stack())
        return Gate(MetricsMiddleware(inner, self.metrics), self.access)


def create_app(
    context: DashboardContext, access: Access, page: Page, *, tabs: FindTabs
) -> Dashboard:
    """Build the dashboard of *context*; *access* decides which requests pass."""
    apis = PluginApis(tabs, access)
    app = Dashboard(access, apis)
    errors.install(app)
    app.add_middleware(
        GZipMiddleware, minimum_size=MIN_COMPRESSED_BYTES, compresslevel=COMPRESSION_LEVEL
    )
    app.include_router(auth.router(access))
    app.include_router(live.router(context, access, app.shutdown_signal, app.metrics))
    app.include_router(chat.router(context, access, app.shutdown_signal, app.metrics))
    app.include_router(plugin_tabs.router(apis))
    for resource in RESOURCES:
        app.include_router(resource.router(context))
    _add_metrics(app)
    _add_description(app)
    app.mount(PREFIX, apis)  # after the built-in routes below the same path
    _add_page(app, page)
    return app


def _add_metrics(app: Dashboard) -> None:
    @app.get("/metrics", tags=["health"], response_class=Response)
    def metrics() -> Response:
        """Metrics in the Prometheus text format."""
        return Response(app.metrics.registry.render(), headers={"Content-Type": CONTENT_TYPE})


def _add_description(app: Dashboard) -> None:
    @app.get("/openapi.json", include_in_schema=False)
    def description() -> Response:
        """Return the OpenAPI document; a plain function, so it runs in a worker thread."""
        return errors.PlainJson(app.openapi())


def _add_page(app: Dashboard, page: Page) -> None:
    @app.api_route("/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    def everything_else(path: str, request: Request) -> Response:
        """Return the page, which routes the path itself, or one of its files."""
        if f"/{path}".startswith(GUARDED):
            return errors.PlainJson({"detail": "Not found."}, 404)
        return page.response(path, request.scope)
