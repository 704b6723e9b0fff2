"""The page talks to the agent: its WebSocket is one of the daemon's, frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from hermes_core.errors import HermesError
from hermes_dashboard.auth.gate import LOGGED_OUT, NOT_ANY_MORE, let_out
from tui_gateway import daemon, frames

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from websockets.asyncio.client import ClientConnection

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.metrics import DashboardMetrics
    from hermes_dashboard.server import ShutdownSignal

log = logging.getLogger(__name__)

REFUSED: Final = frozenset({"gateway.shutdown", "shell.exec", "config.set", "config.get"})
MAX_BYTES: Final = 32 * 1024 * 1024  # from the page; what is too long for the daemon is told
TRIES: Final = 5
PAUSE_SECONDS: Final = 0.1
LONGEST_REASON: Final = 120  # bytes of a close frame are counted
NORMAL: Final = 1000
TEXT_ONLY: Final = 1003
GONE: Final = 1012
TRY_AGAIN: Final = 1013
PAGE_LEFT: Final = 1005


class ChatEnd(NamedTuple):
    """Why a conversation over the wire is over, for the page."""

    code: int
    reason: str


def router(access: Access, farewell: ShutdownSignal, meters: DashboardMetrics) -> APIRouter:
    """The socket."""
    routes = APIRouter(tags=["chat"])
    daemons = Daemons()

    @routes.websocket("/api/ws")
    async def talk(page: WebSocket) -> None:
        """Pass frames on in both directions, until either side goes."""
        await page.accept()
        meters.sockets.inc()
        try:
            ended = await _talk(page, daemons, access, farewell)
            if page.application_state is WebSocketState.CONNECTED:
                with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it may be gone
                    await page.close(ended.code, ended.reason[:LONGEST_REASON])
        finally:
            meters.sockets.dec()

    return routes


async def _talk(
    page: WebSocket, daemons: Daemons, access: Access, farewell: ShutdownSignal
) -> ChatEnd:
    try:
        async with daemons.connected() as connection:
            return await _first(
                _from_page(page, connection),
                _from_daemon(page, connection),
                _end_of(farewell),
                _logout(page, access),
            )
    except (HermesError, OSError, WebSocketException) as error:
        log.warning("the daemon cannot be reached: %s", error)
        return ChatEnd(TRY_AGAIN, str(error))


class Daemons:
    """The daemon of this folder, now this one, later another."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[ClientConnection]:
        """A connection to it, started if none runs; past one that is just dying."""
        connection = await self._connection(TRIES)
        try:
            yield connection
        finally:
            await connection.close()

    async def _connection(self, tries: int) -> ClientConnection:
        place = await asyncio.to_thread(daemon.summoned)
        self._bury()
        self._known.add(place.pid)
        try:
            return await connect(
                place.url,
                additional_headers={"Authorization": f"Bearer {place.token}"},
                compression=None,
                max_size=None,  # a long history is one answer
                proxy=None,
            )
        except (OSError, WebSocketException):
            if tries <= 1:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
        return await self._connection(tries - 1)

    def _bury(self) -> None:
        """A daemon that this process started is its child; one that ended is waited for."""
        for pid in list(self._known):
            try:
                is_over = os.waitpid(pid, os.WNOHANG)[0] == pid
            except ChildProcessError:
                is_over = True  # somebody else's
            if is_over:
                self._known.discard(pid)


async def _first(*works: object) -> ChatEnd:
    """What the first to end says; the others are stopped."""
    tasks = [asyncio.ensure_future(one) for one in works]  # type: ignore[call-overload]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        found: ChatEnd = next(iter(done)).result()
        return found
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _from_page(page: WebSocket, connection: ClientConnection) -> ChatEnd:
    while True:
        message = await page.receive()
        if message["type"] == "websocket.disconnect":
            return ChatEnd(PAGE_LEFT, "")
        text = message.get("text")
        if text is None:
            return ChatEnd(TEXT_ONLY, "frames are text")
        refusal = await _refusal(text)
        try:
            if refusal is None:
                await connection.send(text)
            else:
                await page.send_text(refusal)
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
    except (WebSocketDisconnect, RuntimeError):  # sending to a page that has left
        return ChatEnd(PAGE_LEFT, "")
    return _lost(connection)


async def _end_of(farewell: ShutdownSignal) -> ChatEnd:
    await farewell.wait()
    return ChatEnd(GONE, "the dashboard ends")


async def _logout(page: WebSocket, access: Access) -> ChatEnd:
    await let_out(page.scope, access)
    return ChatEnd(LOGGED_OUT, NOT_ANY_MORE)


def _lost(connection: ClientConnection) -> ChatEnd:
    reason = connection.close_reason or "connect again to start another"
    return ChatEnd(GONE, f"the daemon is gone: {reason}")


async def _refusal(text: str) -> str | None:
    """The answer to a frame that is not for the daemon; None for all others."""
    if len(text) < frames.MAX_FRAME_BYTES // 64:
        return _judged(text)
    return await asyncio.to_thread(_judged, text)


def _judged(text: str) -> str | None:
    line = text.encode("utf-8", "surrogatepass")
    try:
        request = frames.parse(line)
    except frames.RpcError as error:
        answer = frames.error(frames.id_of(line), error.code, str(error))
        return frames.encode(answer).decode()
    if request.method not in REFUSED:
        return None
    why = f"{request.method} is not for pages"
    return frames.encode(frames.error(request.id, frames.UNKNOWN_METHOD, why)).decode()
