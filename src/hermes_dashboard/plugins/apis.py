"""Python APIs of plugin tabs: imported on first use, mounted separately, isolated from errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool

from hermes_core.errors import PluginError
from hermes_core.isolate import Failure, attempt, attempt_async
from hermes_dashboard import errors
from hermes_dashboard.auth.gate import SIGNED_OUT_CODE, SIGNED_OUT_REASON, wait_for_sign_out
from hermes_dashboard.caches import config_version
from hermes_dashboard.errors import PlainJson
from hermes_dashboard.plugins.plugin_loop import PluginLoop, PluginStuckError, PluginTimeoutError
from hermes_dashboard.plugins.tabs import module_name
from hermes_dashboard.safe_path import resolve_inside
from hermes_plugin_host.importer import import_file

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import ModuleType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.plugins.tabs import Tab

    FindTabs = Callable[[], dict[str, Tab]]

log = logging.getLogger(__name__)

PREFIX: Final = "/api/plugins"
KNOWN_SECONDS: Final = 1.0
LOAD_SECONDS: Final = 10.0  # how long a request waits for the import
REFUSED: Final = 1008
FAILED: Final = 1011
MAX_REASON_BYTES: Final = 120  # limit of a close frame


class LoadedApi(NamedTuple):
    """A plugin's application, or the error of its import."""

    app: ASGIApp | None
    error: str | None = None


# The status of a request that a plugin did not handle.
STATUS_BY_ERROR: Final[dict[type[Exception], int]] = {
    PluginStuckError: 503,
    PluginTimeoutError: 504,
}


class RouteLabel(NamedTuple):
    """The metrics label of requests to a plugin."""

    path: str


class ApiLoader:
    """Imports a plugin's module in a separate thread, because the import may never end."""

    def __init__(self, tab: Tab) -> None:
        self._deadline = time.monotonic() + LOAD_SECONDS
        self._future: Future[LoadedApi] = Future()
        self._future.set_running_or_notify_cancel()  # a waiting request cannot cancel it
        self.loop = PluginLoop(tab.name)
        name = f"hermes-plugin-{tab.name}"
        threading.Thread(target=self._run, args=(tab,), name=name, daemon=True).start()

    def _run(self, tab: Tab) -> None:
        loaded = LoadedApi(None, "the import ended its thread")
        try:
            loaded = _load(tab)
        finally:
            self._future.set_result(loaded)

    def now(self) -> LoadedApi:
        """The current result; a late import counts as soon as it ends."""
        if self._future.done():
            return self._future.result()
        is_late = time.monotonic() >= self._deadline
        return LoadedApi(
            None, f"the import took longer than {LOAD_SECONDS:g} seconds" if is_late else None
        )

    async def wait(self) -> LoadedApi:
        """The result, after a bounded wait that blocks no thread."""
        left = self._deadline - time.monotonic()
        if left > 0 and not self._future.done():
            waiting = asyncio.wrap_future(self._future)
            await asyncio.wait([waiting], timeout=left)
            waiting.cancel()  # the import may end after this loop is closed
        return self.now()


class KnownLoader(NamedTuple):
    """The loader of a plugin's API; the folders of plugins are not searched for every request."""

    loader: ApiLoader
    version: object  # of the configuration
    until: float


class PluginApis:
    """Routes `/api/plugins/NAME/…` to the enabled plugin of that name."""

    def __init__(self, find: FindTabs, access: Access) -> None:
        self._find = find
        self._access = access
        self._loaders: dict[Tab, ApiLoader] = {}
        self._known: dict[str, KnownLoader] = {}
        self._lock = threading.Lock()

    def tabs(self) -> dict[str, Tab]:
        """The enabled tabs."""
        return self._find()

    def error_of(self, tab: Tab) -> str | None:
        """The known error of a tab; starts the import of its API."""
        return tab.error or (self._loader(tab).now().error if tab.api else None)

    def _loader(self, tab: Tab) -> ApiLoader:
        """The loader of a plugin's API; each API is imported once."""
        with self._lock:
            if tab not in self._loaders:
                self._loaders[tab] = ApiLoader(tab)
            return self._loaders[tab]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, rest = scope["path"].removeprefix(f"{PREFIX}/").partition("/")
        loader = self._known_loader(name) or await run_in_threadpool(self._loader_for, name)
        if loader is None:
            text = f"No enabled plugin {name!r} with an API."
            await _refuse(404, text, scope, receive, send)
            return
        loaded = await loader.wait()
        if loaded.app is None:
            text = f"The plugin {name} could not be loaded: {loaded.error}"
            await _refuse(502, text, scope, receive, send)
        else:
            scope["route"] = RouteLabel(f"{PREFIX}/{name}")
            inner = {**scope, "path": f"/{rest}", "root_path": "", "raw_path": f"/{rest}".encode()}
            handler = _run_isolated(loader.loop, loaded.app, name, inner, receive, send)
            await (
                handler if scope["type"] == "http" else self._until_sign_out(handler, scope, send)
            )

    async def _until_sign_out(
        self, handler: Coroutine[Any, Any, None], scope: Scope, send: Send
    ) -> None:
        """Close a WebSocket when its client is signed out."""
        socket = asyncio.create_task(handler)
        sign_out = asyncio.create_task(wait_for_sign_out(scope, self._access))
        tasks = (socket, sign_out)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if socket.cancelled():
            with contextlib.suppress(RuntimeError, OSError):  # the client may be disconnected
                await send(_close(SIGNED_OUT_CODE, SIGNED_OUT_REASON))

    def close(self) -> None:
        """Stop the threads of the plugins."""
        with self._lock:
            for loader in self._loaders.values():
                loader.loop.close()

    def _known_loader(self, name: str) -> ApiLoader | None:
        """The loader that was found a moment ago, with the same configuration."""
        kept = self._known.get(name)
        is_current = kept is not None and kept.until > time.monotonic()
        return kept.loader if kept and is_current and kept.version == config_version() else None

    def _loader_for(self, name: str) -> ApiLoader | None:
        version = config_version()
        tab = self._find().get(name)
        if tab is None or tab.api is None:
            return None
        loader = self._loader(tab)
        self._known[name] = KnownLoader(loader, version, time.monotonic() + KNOWN_SECONDS)
        return loader


def _load(tab: Tab) -> LoadedApi:
    app = attempt(f"load the API of {tab.name}", lambda: _build_app(tab))
    if isinstance(app, Failure):
        return LoadedApi(None, f"{type(app.error).__name__}: {app.error}")
    return LoadedApi(app)


def _build_app(tab: Tab) -> ASGIApp:
    router = getattr(_import_module(tab), "router", None)
    if not isinstance(router, APIRouter):
        raise PluginError("the module has no `router` (a FastAPI APIRouter)")
    app = FastAPI(title=tab.label, docs_url=None, redoc_url=None)
    app.include_router(router)
    errors.install(app, lambda error: _failure_text(tab.name, error))
    return app


def _import_module(tab: Tab) -> ModuleType:
    """Import the module named in the manifest."""
    path = resolve_inside(tab.folder, tab.api or "")
    if path is None or path.suffix != ".py":
        raise PluginError(f"`api` is {tab.api!r}; it must be a .py file inside {tab.folder}")
    return import_file(module_name(tab.name), path)


async def _run_isolated(
    loop: PluginLoop, app: ASGIApp, name: str, scope: Scope, receive: Receive, send: Send
) -> None:
    """Run a plugin's handler in its own loop; an exception becomes an error response."""
    last_type = ""

    async def send_tracked(message: Message) -> None:
        nonlocal last_type
        last_type = message["type"]
        await send(message)

    result = await attempt_async(
        f"plugin {name}: {scope['path']}", loop.run(app, scope, receive, send_tracked)
    )
    is_socket = scope["type"] == "websocket"
    has_response = last_type == "websocket.close" if is_socket else bool(last_type)
    if isinstance(result, Failure) and not has_response:
        status = STATUS_BY_ERROR.get(type(result.error), 500)
        text = str(result.error) if status != 500 else _failure_text(name, result.error)
        with contextlib.suppress(RuntimeError, OSError):  # the client may be disconnected
            await _refuse(status, text, scope, receive, send)


def _failure_text(name: str, error: Exception) -> str:
    return f"The plugin {name} failed: {type(error).__name__}: {error}"


async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send(_close(FAILED if status >= 500 else REFUSED, detail))
        return
    await PlainJson({"detail": detail}, status)(scope, receive, send)


def _close(code: int, detail: str) -> Message:
    reason = detail.encode(errors="replace")[:MAX_REASON_BYTES].decode(errors="ignore")
    return {"type": "websocket.close", "code": code, "reason": reason}
