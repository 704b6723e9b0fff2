"""The Python of plugins' tabs: imported when first needed, served apart, never trusted to work."""

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
from hermes_core.isolate import Failure, Step, attempt, attempt_async
from hermes_dashboard import errors
from hermes_dashboard.auth.gate import LOGGED_OUT, NOT_ANY_MORE, let_out
from hermes_dashboard.errors import PlainJson
from hermes_dashboard.plugins.tabs import module_name
from hermes_dashboard.safe_path import inside
from hermes_plugin_host.importer import import_file

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import ModuleType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.plugins.tabs import Tab

    Find = Callable[[], dict[str, Tab]]

log = logging.getLogger(__name__)

PREFIX: Final = "/api/plugins"
LOAD_SECONDS: Final = 10.0  # how long others wait for a plugin's Python
REFUSED: Final = 1008
FAILED: Final = 1011
LONGEST_REASON: Final = 120  # bytes of a close frame are counted


class Loaded(NamedTuple):
    """A plugin's application, or why there is none."""

    app: ASGIApp | None
    error: str | None = None


class Label(NamedTuple):
    """What requests to a plugin are counted under."""

    path: str


class Loading:
    """A plugin's Python on its way in, in a thread of its own: it may take forever."""

    def __init__(self, tab: Tab) -> None:
        self._until = time.monotonic() + LOAD_SECONDS
        self._ended: Future[Loaded] = Future()
        self._ended.set_running_or_notify_cancel()  # nobody who waits can call it off
        name = f"hermes-plugin-{tab.name}"
        threading.Thread(target=self._run, args=(tab,), name=name, daemon=True).start()

    def _run(self, tab: Tab) -> None:
        found = Loaded(None, "it ended its thread while being loaded")
        try:
            found = _load(tab)
        finally:
            self._ended.set_result(found)

    def now(self) -> Loaded:
        """What is known now; one that takes long counts when it is there."""
        if self._ended.done():
            return self._ended.result()
        is_late = time.monotonic() >= self._until
        return Loaded(None, f"it did not load in {LOAD_SECONDS:g} seconds" if is_late else None)

    async def wait(self) -> Loaded:
        """The application, after a while at most; no thread waits meanwhile."""
        left = self._until - time.monotonic()
        if left > 0 and not self._ended.done():
            waiting = asyncio.wrap_future(self._ended)
            await asyncio.wait([waiting], timeout=left)
            waiting.cancel()  # it may end when this loop is long closed
        return self.now()


class PluginApis:
    """Serves `/api/plugins/NAME/…` to the plugin of that name, as long as it is enabled."""

    def __init__(self, find: Find, access: Access) -> None:
        self._find = find
        self._access = access
        self._loading: dict[Tab, Loading] = {}
        self._lock = threading.Lock()

    def tabs(self) -> dict[str, Tab]:
        """The tabs that count now."""
        return self._find()

    def error_of(self, tab: Tab) -> str | None:
        """What is known to be wrong with a tab; its Python begins to load for that."""
        return tab.error or (self._begun(tab).now().error if tab.api else None)

    def _begun(self, tab: Tab) -> Loading:
        """A plugin's Python, imported once."""
        with self._lock:
            if tab not in self._loading:
                self._loading[tab] = Loading(tab)
            return self._loading[tab]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, rest = scope["path"].removeprefix(f"{PREFIX}/").partition("/")
        loading = await run_in_threadpool(self._wanted, name)
        if loading is None:
            text = f"No enabled plugin {name!r} with an API."
            await _refuse(404, text, scope, receive, send)
            return
        found = await loading.wait()
        if found.app is None:
            text = f"The plugin {name} could not be loaded: {found.error}"
            await _refuse(502, text, scope, receive, send)
        else:
            scope["route"] = Label(f"{PREFIX}/{name}")
            inner = {**scope, "path": f"/{rest}", "root_path": "", "raw_path": f"/{rest}".encode()}
            work = _isolated(found.app, name, inner, receive, send)
            await (work if scope["type"] == "http" else self._while_let_in(work, scope, send))

    async def _while_let_in(
        self, work: Coroutine[Any, Any, None], scope: Scope, send: Send
    ) -> None:
        """A socket ends when whoever opened it is logged out."""
        socket = asyncio.create_task(work)
        login = asyncio.create_task(let_out(scope, self._access))
        tasks = (socket, login)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if socket.cancelled():
            with contextlib.suppress(RuntimeError, OSError):  # the page may be gone
                await send(_close(LOGGED_OUT, NOT_ANY_MORE))

    def _wanted(self, name: str) -> Loading | None:
        tab = self._find().get(name)
        return None if tab is None or tab.api is None else self._begun(tab)


def _load(tab: Tab) -> Loaded:
    made: list[ASGIApp] = []
    failure = attempt(Step(f"load the API of {tab.name}", lambda: made.append(_application(tab))))
    if failure is None:
        return Loaded(made[0])
    return Loaded(None, f"{type(failure.error).__name__}: {failure.error}")


def _application(tab: Tab) -> ASGIApp:
    router = getattr(_imported(tab), "router", None)
    if not isinstance(router, APIRouter):
        raise PluginError("it has no `router` (a FastAPI APIRouter)")
    app = FastAPI(title=tab.label, docs_url=None, redoc_url=None)
    app.include_router(router)
    errors.install(app, lambda error: _failed(tab.name, error))
    return app


def _imported(tab: Tab) -> ModuleType:
    """The module that the manifest names."""
    path = inside(tab.folder, tab.api or "")
    if path is None or path.suffix != ".py":
        raise PluginError(f"`api` is {tab.api!r}; it must be a .py file inside {tab.folder}")
    return import_file(module_name(tab.name), path)


async def _isolated(app: ASGIApp, name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Run a plugin's handler; what it throws is told, and stops nobody else."""
    sent = ""

    async def sending(message: Message) -> None:
        nonlocal sent
        sent = message["type"]
        await send(message)

    ended = await attempt_async(f"plugin {name}: {scope['path']}", app(scope, receive, sending))
    is_socket = scope["type"] == "websocket"
    is_over = sent == "websocket.close" if is_socket else bool(sent)
    if isinstance(ended, Failure) and not is_over:
        with contextlib.suppress(RuntimeError, OSError):  # whoever asked may be gone
            await _refuse(500, _failed(name, ended.error), scope, receive, send)


def _failed(name: str, error: Exception) -> str:
    return f"The plugin {name} failed: {type(error).__name__}: {error}"


async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send(_close(FAILED if status >= 500 else REFUSED, detail))
        return
    await PlainJson({"detail": detail}, status)(scope, receive, send)


def _close(code: int, detail: str) -> Message:
    reason = detail.encode(errors="replace")[:LONGEST_REASON].decode(errors="ignore")
    return {"type": "websocket.close", "code": code, "reason": reason}
