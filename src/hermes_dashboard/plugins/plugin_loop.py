"""An event loop of its own for each plugin, so that a handler that blocks stalls only its plugin.

Requests are handed over to a thread of the plugin. What the handler receives and sends goes
through the event loop of the server. A handler that does not start or does not respond in
time is given up; a thread cannot be ended, so it may continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

START_SECONDS: Final = 5.0  # until a handler of a responsive plugin has started
RESPONSE_SECONDS: Final = 30.0  # until the response of a request begins
STOP_SECONDS: Final = 1.0


class PluginStuckError(PluginError):
    """Another handler blocks the plugin."""


class PluginTimeoutError(PluginError):
    """The handler did not respond in time."""


class PluginLoop:
    """The thread of one plugin; it starts with the first request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waiting: dict[object, float] = {}  # calls that have not started, by time

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a handler; raise PluginError if it does not start or respond in time."""
        oldest = min(self._waiting.values(), default=None)
        if oldest is not None and time.monotonic() - oldest > START_SECONDS:
            raise PluginStuckError(f"The plugin {self._name} is busy: a handler blocks it.")
        call = HandlerCall(self._running_loop(), receive, send)
        self._waiting[call] = time.monotonic()
        call.started.add_done_callback(lambda _: self._waiting.pop(call, None))
        try:
            call.begin(app, scope)
            is_http = scope["type"] == "http"
            # Most handlers respond at once: one wait instead of two.
            first = call.responded if is_http else call.started
            if not await _is_done(first, START_SECONDS) and not call.started.done():
                raise PluginStuckError(f"The plugin {self._name} is busy: a handler blocks it.")
            if is_http and not await _is_done(call.responded, RESPONSE_SECONDS):
                raise PluginTimeoutError(
                    f"The plugin {self._name} did not respond within {RESPONSE_SECONDS:g} seconds."
                )
            await call.finished
        finally:
            call.give_up()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run_loop,
                args=(self._loop,),
                name=f"hermes-plugin-{self._name}-loop",
                daemon=True,
            )
            self._thread.start()
        return self._loop

    def close(self) -> None:
        """Stop the thread, unless a handler blocks it."""
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)


class HandlerCall:
    """One request in two event loops: the server's, where it was created, and the plugin's."""

    def __init__(self, plugin: asyncio.AbstractEventLoop, receive: Receive, send: Send) -> None:
        self._plugin = plugin
        self._server = asyncio.get_running_loop()
        self._receive = receive
        self._send = send
        self._task: asyncio.Task[None] | None = None
        self._start_task: asyncio.Task[None] | None = None  # sends the head of the response
        self._is_over = False
        self.started: asyncio.Future[None] = self._server.create_future()
        self.responded: asyncio.Future[None] = self._server.create_future()
        self.finished: asyncio.Future[None] = self._server.create_future()

    def begin(self, app: ASGIApp, scope: Scope) -> None:
        """Hand the request over; the coroutine is created where it runs."""
        self._plugin.call_soon_threadsafe(self._start, app, scope)

    def give_up(self) -> None:
        """Cancel the handler if it is still running, and ignore what it sends."""
        self._is_over = True
        if not self.finished.done():
            self.finished.cancel()
            with contextlib.suppress(RuntimeError):  # the loop of the plugin is closed
                self._plugin.call_soon_threadsafe(self._cancel)

    # In the event loop of the plugin

    def _start(self, app: ASGIApp, scope: Scope) -> None:
        self._tell(_settle, self.started, None)
        if self._is_over:
            return
        self._task = self._plugin.create_task(self._run(app, scope))
        self._task.add_done_callback(self._finish)

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self._receive_far, self._send_far)

    def _finish(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._tell(self._end, error)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _receive_far(self) -> Message:
        message: Message = await self._in_server(self._receive())
        return message

    async def _send_far(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._tell(self._send_start, message)  # the handler need not wait: the body does
        else:
            await self._in_server(self._send_body(message))

    async def _in_server(self, work: Coroutine[Any, Any, Any] | Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._server))

    def _tell(self, *call: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the server has stopped
            self._server.call_soon_threadsafe(*call)

    # In the event loop of the server

    def _send_start(self, message: Message) -> None:
        self._start_task = self._server.create_task(self._send_here(message))

    async def _send_body(self, message: Message) -> None:
        """Send anything but the head, after it."""
        start, self._start_task = self._start_task, None
        if start is not None:
            await start
        await self._send_here(message)

    async def _send_here(self, message: Message) -> None:
        if not self._is_over:
            _settle(self.responded, None)
            await self._send(message)

    def _end(self, error: BaseException | None) -> None:
        _settle(self.responded, None)
        _settle(self.finished, error)


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    """Complete *future* unless that has happened."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    elif isinstance(error, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(error)


async def _is_done(future: asyncio.Future[None], seconds: float) -> bool:
    if future.done():
        return True
    await asyncio.wait([future], timeout=seconds)
    return future.done()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=STOP_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
