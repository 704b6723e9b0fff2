"""The Python of plugins' tabs: imported when first needed, served apart, never trusted to work."""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool

from hermes_core.errors import PluginError
from hermes_core.isolate import Failure, Step, attempt, attempt_async
from hermes_dashboard import errors
from hermes_dashboard.errors import PlainJson
from hermes_dashboard.inside import inside
from hermes_dashboard.plugin_tabs import module_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.plugin_tabs import Tab

    Find = Callable[[], dict[str, Tab]]

log = logging.getLogger(__name__)

PREFIX: Final = "/api/plugins"


class Loaded(NamedTuple):
    """A plugin's application, or why there is none."""

    app: ASGIApp | None
    error: str | None = None


class Label(NamedTuple):
    """What requests to a plugin are counted under."""

    path: str


class PluginApis:
    """Serves `/api/plugins/NAME/…` to the plugin of that name, as long as it is enabled."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._loaded: dict[Tab, Loaded] = {}
        self._lock = threading.RLock()

    def tabs(self) -> dict[str, Tab]:
        """The tabs that count now."""
        return self._find()

    def error_of(self, tab: Tab) -> str | None:
        """What is wrong with a tab; its Python is tried for that."""
        return tab.error or (self.loaded(tab).error if tab.api else None)

    def loaded(self, tab: Tab) -> Loaded:
        """A plugin's application, imported once."""
        with self._lock:
            if tab not in self._loaded:
                self._loaded[tab] = _load(tab)
            return self._loaded[tab]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, rest = scope["path"].removeprefix(f"{PREFIX}/").partition("/")
        found = await run_in_threadpool(self._wanted, name)
        if found is None or scope["type"] != "http":
            text = f"There is no enabled plugin {name!r} with an API."
            await _refuse(404, text, scope, receive, send)
        elif found.app is None:
            text = f"The plugin {name} could not be loaded: {found.error}"
            await _refuse(502, text, scope, receive, send)
        else:
            scope["route"] = Label(f"{PREFIX}/{name}")
            inner = {**scope, "path": f"/{rest}", "root_path": "", "raw_path": f"/{rest}".encode()}
            await _isolated(found.app, name, inner, receive, send)

    def _wanted(self, name: str) -> Loaded | None:
        tab = self._find().get(name)
        return None if tab is None or tab.api is None else self.loaded(tab)


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


def _imported(tab: Tab) -> Any:
    """The module; a SystemExit while importing is a failure like any other."""
    path = inside(tab.folder, tab.api or "")
    if path is None or path.suffix != ".py":
        raise PluginError(f"`api` is {tab.api!r}; it must be a .py file inside {tab.folder}")
    name = module_name(tab.name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, SystemExit):
            raise PluginError(f"it tried to exit while being loaded ({error})") from error
        raise
    return module


async def _isolated(app: ASGIApp, name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Run a plugin's handler; what it throws is told, and stops nobody else."""
    is_begun = False

    async def sending(message: Message) -> None:
        nonlocal is_begun
        is_begun = True
        await send(message)

    ended = await attempt_async(f"plugin {name}: {scope['path']}", app(scope, receive, sending))
    if isinstance(ended, Failure) and not is_begun:
        await _refuse(500, _failed(name, ended.error), scope, receive, send)


def _failed(name: str, error: Exception) -> str:
    return f"The plugin {name} failed: {type(error).__name__}: {error}"


async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": detail[:100]})
        return
    await PlainJson({"detail": detail}, status)(scope, receive, send)
