"""The FastAPI application: all resources behind the access gate. Importing it starts nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import warnings
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.middleware.gzip import GZipMiddleware

from hermes_core import __version__
from hermes_core.metrics import CONTENT_TYPE
from hermes_dashboard import errors
from hermes_dashboard.auth.gate import GUARDED, Gate
from hermes_dashboard.metrics import DashboardMetrics, MetricsMiddleware
from hermes_dashboard.plugins.apis import PREFIX, PluginApis
from hermes_dashboard.resources import (
    analytics,
    auth,
    backups,
    changes,
    chat,
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
    model_catalog,
    model_setup,
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
    transcriptions,
    transcripts,
    uploads,
    webhook_routes,
    workspaces,
)
from hermes_dashboard.server import ShutdownSignal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.page import Page
    from hermes_dashboard.plugins.apis import FindTabs
    from hermes_dashboard.routes import ResourceRouter

# Resources that need only the context; the first matching route handles a request.
RESOURCES: Final = (
    overview, sessions, transcripts, changes, files, search, analytics, gateway_setup, gateway,
    hooks, settings,
    pending_changes, plugins, health, uploads, models, model_setup, workspaces, schedules,
    imports, memory, logs, backups, permissions, transcriptions, mcp_servers, model_catalog,
    webhook_routes,
)  # fmt: skip
MIN_COMPRESSED_BYTES: Final = 1024
COMPRESSION_LEVEL: Final = 5


class Dashboard(FastAPI):
    """The application; the access gate is the outermost layer, around error handling too."""

    def __init__(self, access: Access, apis: PluginApis) -> None:
        routers: list[ResourceRouter] = []

        @contextlib.asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            async with contextlib.AsyncExitStack() as stack:
                for router in routers:
                    await stack.enter_async_context(router.lifespan_context(app))
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
        self._routers = routers
        self.access = access
        self.metrics = DashboardMetrics()
        self.shutdown_signal = ShutdownSignal()
        self._openapi_lock = threading.Lock()

    def add_resource(self, router: ResourceRouter) -> None:
        """Add the routes of a resource, and what it runs at start and end.

        `include_router` would build the models of every route again at the first request.
        """
        self._routers.append(router)
        self.router.routes.extend(router.routes)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document; building it is slow, so it is built once."""
        with self._openapi_lock:
            return super().openapi()

    def build_middleware_stack(self) -> ASGIApp:
        """The default middleware, wrapped in error logging, metrics and the gate."""
        self.router.middleware_stack = RouteIndex(self.router.routes, self.router.app)
        inner = errors.ErrorLogMiddleware(super().build_middleware_stack())
        return Gate(MetricsMiddleware(inner, self.metrics), self.access)


def create_app(
    context: DashboardContext, access: Access, page: Page, *, tabs: FindTabs
) -> Dashboard:
    """Build the dashboard of *context*; *access* decides which requests pass."""
    # FastAPI ignores it with a filter that another thread may remove while it builds a route.
    warnings.filterwarnings("ignore", "The '", UnsupportedFieldAttributeWarning)
    apis = PluginApis(tabs, access)
    app = Dashboard(access, apis)
    errors.install(app)
    app.add_middleware(
        GZipMiddleware, minimum_size=MIN_COMPRESSED_BYTES, compresslevel=COMPRESSION_LEVEL
    )
    app.add_resource(auth.router(access))
    app.add_resource(live.router(context, access, app.shutdown_signal, app.metrics))
    app.add_resource(chat.router(context, access, app.shutdown_signal, app.metrics))
    app.add_resource(plugin_tabs.router(apis))
    for resource in RESOURCES:
        app.add_resource(resource.router(context))
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


class RouteIndex:
    """Dispatches a request to the routes that begin like its path, else to *fallback*.

    FastAPI compares a path with one route after the other; with a hundred of them that costs
    more than a small request does.
    """

    def __init__(self, routes: Iterable[BaseRoute], fallback: ASGIApp) -> None:
        self._fallback = fallback
        grouped: dict[str, list[BaseRoute]] = {}
        for route in routes:
            start = _start_of(getattr(route, "path", ""))
            if start and "{" not in start:
                grouped.setdefault(start, []).append(route)
        self._routers = {start: _router(found, fallback) for start, found in grouped.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        router = self._routers.get(_start_of(scope.get("path", "")))  # a lifespan has no path
        await (self._fallback if router is None else router.app)(scope, receive, send)


def _router(routes: list[BaseRoute], fallback: ASGIApp) -> APIRouter:
    """A router of some routes; what it does not know is left to *fallback*."""
    router = APIRouter(default=fallback, redirect_slashes=False)
    router.routes.extend(routes)
    return router


def _start_of(path: str) -> str:
    """`/api/sessions` of `/api/sessions/1/messages`."""
    return "/".join(path.split("/", 3)[:3])
