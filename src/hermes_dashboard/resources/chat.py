"""The page's WebSocket, relayed frame by frame to the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi import WebSocket  # noqa: TC002 - FastAPI reads annotations
from starlette.websockets import WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from hermes_agent.providers.selection import require_configured_url
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, UsageError
from hermes_dashboard.auth.gate import SIGNED_OUT_CODE, SIGNED_OUT_REASON, wait_for_sign_out
from hermes_dashboard.resources.workspaces import ACCEPT_HOME
from hermes_dashboard.routes import ResourceRouter
from tui_gateway import daemon, frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from websockets.asyncio.client import ClientConnection

    from hermes_core.json_values import JsonObject
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.metrics import DashboardMetrics
    from hermes_dashboard.server import ShutdownSignal

log = logging.getLogger(__name__)

FULL_MODE: Final = (
    "Full mode cannot be chosen on a web page. Type /permissions full in a terminal, where "
    "`hermes -r ID` opens this conversation."
)
# What a page may do; a new method is not available to pages until it is listed here. Slash commands
# state themselves whether pages have them.
PAGE_METHODS: Final = frozenset(
    """
    session.create session.list session.most_recent session.resume session.activate
    session.active_list session.close session.delete session.title session.history session.usage
    session.status session.cwd.set session.reload session.prompts session.rewind session.tree
    session.versions session.todo session.undo session.redo session.retry session.branch
    session.compress session.interrupt session.steer session.queue session.save
    session.permissions checkpoints.list checkpoints.diff checkpoints.preview checkpoints.restore
    prompt.submit image.attach image.detach approval.respond clarify.respond secret.respond
    commands.catalog command.dispatch complete.slash complete.path complete.file model.list
    rpc.discover
    """.split()  # noqa: SIM905 - a table
)
IN_THE_PANEL: Final = (
    "A page restores files in the panel Changed files, which shows the diff first. In a terminal, "
    "`hermes checkpoints restore` does it."
)
# Requests that write files: for a page only where no approval is needed.
LIMITED_METHODS: Final = frozenset({"checkpoints.preview", "checkpoints.restore", "session.save"})
COMMAND_METHODS: Final = frozenset({"commands.catalog", "command.dispatch", "complete.slash"})
# Requests with a working folder.
FOLDER_METHODS: Final = frozenset({"session.create", "session.resume", "session.cwd.set"})
MAX_BYTES: Final = (
    32 * 1024 * 1024
)  # from the page; above the daemon's limit, to answer with an error
CONNECT_ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.1
MAX_REASON_BYTES: Final = 120  # limit of a close frame

TEXT_ONLY: Final = 1003
SERVICE_RESTART: Final = 1012
TRY_AGAIN: Final = 1013
PAGE_LEFT: Final = 1005


class ChatEnd(NamedTuple):
    """The close code and reason for the page."""

    code: int
    reason: str


def router(
    context: DashboardContext,
    access: Access,
    shutdown_signal: ShutdownSignal,
    metrics: DashboardMetrics,
) -> ResourceRouter:
    """The WebSocket route."""
    routes = ResourceRouter(tag="chat")
    connector = DaemonConnector()

    @routes.websocket("/api/ws")
    async def talk(page: WebSocket) -> None:
        """Relay frames in both directions until one side disconnects."""
        await page.accept()
        metrics.sockets.inc()
        try:
            end = await _relay(page, context, connector, access, shutdown_signal)
            if page.application_state is WebSocketState.CONNECTED:
                with contextlib.suppress(
                    RuntimeError, WebSocketDisconnect
                ):  # the page may be disconnected
                    await page.close(end.code, end.reason[:MAX_REASON_BYTES])
        finally:
            metrics.sockets.dec()

    return routes


async def _relay(
    page: WebSocket,
    context: DashboardContext,
    connector: DaemonConnector,
    access: Access,
    shutdown_signal: ShutdownSignal,
) -> ChatEnd:
    try:
        async with connector.connected() as connection:
            return await _first_completed(
                _from_page(page, context, connection),
                _from_daemon(page, connection),
                _shutdown(shutdown_signal),
                _logout(page, access),
            )
    except (HermesError, OSError, WebSocketException) as error:
        log.warning("daemon unreachable: %s", error)
        return ChatEnd(TRY_AGAIN, str(error))


class DaemonConnector:
    """Connects to the daemon of this folder, which may be replaced by another process."""

    def __init__(self) -> None:
        self._pids: set[int] = set()

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[ClientConnection]:
        """A connection; starts a daemon if none runs, retries while one is exiting."""
        connection = await self._connect(CONNECT_ATTEMPTS)
        try:
            yield connection
        finally:
            await connection.close()

    async def _connect(self, attempts: int) -> ClientConnection:
        record = await asyncio.to_thread(daemon.ensure_running)
        self._reap()
        self._pids.add(record.pid)
        try:
            return await connect(
                record.url,
                additional_headers={"Authorization": f"Bearer {record.token}"},
                compression=None,
                max_size=None,  # a long history is one response
                proxy=None,
            )
        except (OSError, WebSocketException):
            if attempts <= 1:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
        return await self._connect(attempts - 1)

    def _reap(self) -> None:
        """Reap daemons that this process started and that have exited."""
        for pid in list(self._pids):
            try:
                has_exited = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                has_exited = True  # not a child of this process
            if has_exited:
                self._pids.discard(pid)


async def _first_completed(*coroutines: object) -> ChatEnd:
    """The result of the first task to complete; the others are cancelled."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]  # type: ignore[call-overload]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        end: ChatEnd = next(iter(done)).result()
        return end
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _from_page(
    page: WebSocket, context: DashboardContext, connection: ClientConnection
) -> ChatEnd:
    while True:
        message = await page.receive()
        if message["type"] == "websocket.disconnect":
            return ChatEnd(PAGE_LEFT, "")
        text = message.get("text")
        if text is None:
            return ChatEnd(TEXT_ONLY, "only text frames are accepted")
        checked = await _check(text, context)
        try:
            if checked.refusal is None:
                await connection.send(checked.text)
            else:
                await page.send_text(checked.refusal)
        except ConnectionClosed:
            return _lost(connection)
        except WebSocketDisconnect:
            return ChatEnd(PAGE_LEFT, "")


async def _from_daemon(page: WebSocket, connection: ClientConnection) -> ChatEnd:
    try:
        async for frame in connection:
            await page.send_text(frame if isinstance(frame, str) else frame.decode())
    except ConnectionClosed:
        return _lost(connection)
    except (WebSocketDisconnect, RuntimeError):  # the page is disconnected
        return ChatEnd(PAGE_LEFT, "")
    return _lost(connection)


async def _shutdown(shutdown_signal: ShutdownSignal) -> ChatEnd:
    await shutdown_signal.wait()
    return ChatEnd(SERVICE_RESTART, "the dashboard is shutting down")


async def _logout(page: WebSocket, access: Access) -> ChatEnd:
    await wait_for_sign_out(page.scope, access)
    return ChatEnd(SIGNED_OUT_CODE, SIGNED_OUT_REASON)


def _lost(connection: ClientConnection) -> ChatEnd:
    reason = connection.close_reason or "reconnect to start a new one"
    return ChatEnd(SERVICE_RESTART, f"the daemon has stopped: {reason}")


class CheckedFrame(NamedTuple):
    """A frame for the daemon, or the error response for the page."""

    text: str
    refusal: str | None = None


async def _check(text: str, context: DashboardContext) -> CheckedFrame:
    """Check a frame of the page; add the working folder to one that opens a conversation."""
    # A long frame takes a while to parse, a model by URL is compared with the settings, and
    # folders are looked up.
    is_quick = len(text) < frames.MAX_FRAME_BYTES // 64 and "://" not in text
    if is_quick and not any(name in text for name in FOLDER_METHODS):
        return _check_frame(text, context)
    return await asyncio.to_thread(_check_frame, text, context)


def _check_frame(text: str, context: DashboardContext) -> CheckedFrame:
    line = text.encode("utf-8", "surrogatepass")
    try:
        request = frames.parse(line)
    except frames.RpcError as error:
        response = frames.error(frames.id_of(line), error.code, str(error))
        return CheckedFrame(text, frames.encode(response).decode())
    if request.method not in PAGE_METHODS:
        message = f"{request.method} is not available to pages"
        refused = frames.error(request.id, frames.UNKNOWN_METHOD, message)
        return CheckedFrame(text, frames.encode(refused).decode())
    try:
        _check_models(request.params)
        _check_mode(request.params)
        _check_restore(request.params)
        if request.method in LIMITED_METHODS:
            text = _with_params(request, {**request.params, "within_permissions": True})
        if request.method in COMMAND_METHODS:
            text = _with_params(request, {**request.params, "surface": "page"})
        if request.method in FOLDER_METHODS:
            text = _with_folder(request, context)
    except HermesError as error:
        refused = frames.error(request.id, frames.INVALID_PARAMS, with_command_name(str(error)))
        return CheckedFrame(text, frames.encode(refused).decode())
    return CheckedFrame(text)


def _with_folder(request: frames.RpcRequest, context: DashboardContext) -> str:
    """The request with a checked working folder: the page's, the conversation's or the default."""
    params, folders = dict(request.params), context.workspaces
    accepts_home = params.pop(ACCEPT_HOME, False) is True
    chosen, session_id = params.get("cwd"), params.get("session_id")
    if isinstance(chosen, str) and chosen:
        folder = folders.check(chosen, accepts_home=accepts_home)
    elif request.method == "session.resume" and isinstance(session_id, str):
        folder = folders.of_session(context.db, session_id)
    else:
        folder = folders.default()
    params["cwd"] = str(folder)
    return _with_params(request, params)


def _with_params(request: frames.RpcRequest, params: JsonObject) -> str:
    frame: frames.Frame = {
        "jsonrpc": "2.0",
        "id": request.id,
        "method": request.method,
        "params": params,
    }
    return frames.encode(frame).decode()


def _check_mode(params: JsonObject) -> None:
    """Refuse the mode without limits, rules in advance and programs to be started."""
    if params.get("allow"):
        raise UsageError("A page cannot allow commands in advance; answer their approvals.")
    if params.get("mcp_servers"):
        raise UsageError("A page cannot start MCP servers; configure them in a terminal.")
    modes = [params.get("mode"), *_arguments_of("permissions", params)]
    words = (mode.split()[:1] for mode in modes if isinstance(mode, str))  # more may follow
    if any(word.lower() == "full" for first in words for word in first):
        raise UsageError(FULL_MODE)


def _check_restore(params: JsonObject) -> None:
    """Refuse to restore files by a command: it shows no diff and reviews no path."""
    undo = [word for text in _arguments_of("undo", params) for word in str(text).lower().split()]
    checkpoints = [str(text).split()[:1] for text in _arguments_of("checkpoints", params)]
    if {"files", "both"} & set(undo) or ["restore"] in checkpoints:
        raise UsageError(IN_THE_PANEL)


def _check_models(params: dict[str, Any]) -> None:
    """Refuse a model by a URL that is not configured: text would be sent there."""
    for name in (params.get("model"), *_arguments_of("model", params)):
        if isinstance(name, str) and "://" in name:
            require_configured_url(ConfigFile.of_home().settings(), name.strip())


def _arguments_of(command: str, params: dict[str, Any]) -> list[Any]:
    """The argument of a slash command, if the frame runs it; in every spelling of its name."""
    name = params.get("name")
    is_meant = isinstance(name, str) and name.removeprefix("/").lower() == command
    return [params.get("arg")] if is_meant else []
