"""The connection to the daemon from an event loop: calls, and events by conversation.

The daemon is started when it is needed, also after it has ended.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from hermes_core import __version__
from hermes_core.errors import HermesError
from tui_gateway import daemon
from tui_gateway.frames import CRASHED, RpcError
from tui_gateway.protocol import ConnectionLost, MessageDelta, ReasoningText, ToolText

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from hermes_core.json_values import JsonObject, JsonValue
    from tui_gateway.client import RpcClient
    from tui_gateway.protocol import ClientEvent

    T = TypeVar("T")

MAX_CALLS: Final = 16  # at the same time
OTHER_RELEASE: Final = (
    "The running daemon is a different version of Hermes ({}, this one is {}). Stop it with "
    "`hermes serve --stop`, then try again."
)


class SessionEvents:
    """The events of one conversation; pieces of text that wait are joined."""

    def __init__(self) -> None:
        self._events: deque[ClientEvent] = deque()
        self._has_events = asyncio.Event()

    def put(self, event: ClientEvent) -> None:
        """Add an event."""
        joined = _join(self._events[-1], event) if self._events else None
        if joined is None:
            self._events.append(event)
        else:
            self._events[-1] = joined
        self._has_events.set()

    async def get(self) -> ClientEvent:
        """The next event."""
        while not self._events:
            self._has_events.clear()
            await self._has_events.wait()
        return self._events.popleft()


def _join(first: ClientEvent, second: ClientEvent) -> ClientEvent | None:
    """Both as one event; None if they are not pieces of one text."""
    if isinstance(first, MessageDelta) and isinstance(second, MessageDelta):
        return MessageDelta(first.text + second.text)
    if isinstance(first, ReasoningText) and isinstance(second, ReasoningText):
        return ReasoningText(first.text + second.text)
    if isinstance(first, ToolText) and isinstance(second, ToolText):
        is_same = first.tool_id == second.tool_id
        return ToolText(first.tool_id, first.text + second.text) if is_same else None
    return None


class DaemonLink:
    """A client of the daemon that connects again when its connection is lost."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="hermes-acp")
        self._client: RpcClient | None = None
        self._connecting = asyncio.Lock()
        self._queues: dict[str, SessionEvents] = {}

    async def call(self, method: str, **params: JsonValue) -> JsonObject:
        """The result of a request; RpcError when it failed."""
        client = await self._connected()
        result: JsonObject = await self._run(functools.partial(client.call, method, **params))
        return result

    def events(self, live_id: str) -> SessionEvents:
        """The events of an open conversation; they are kept from the first one."""
        return self._queues.setdefault(live_id, SessionEvents())

    def forget(self, live_id: str) -> None:
        """Drop the events of a conversation that is not shown any longer."""
        self._queues.pop(live_id, None)

    async def close(self) -> None:
        """Disconnect; the conversations stay open in the daemon."""
        client, self._client = self._client, None
        if client is not None:
            await self._run(client.close)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _connected(self) -> RpcClient:
        async with self._connecting:
            if self._client is None:
                self._client = await self._run(self._connect)
            return self._client

    def _connect(self) -> RpcClient:
        """Connect in a thread of the pool; the events arrive in a thread of the client."""
        lost: list[RpcClient] = []

        def on_event(live_id: str, event: ClientEvent) -> None:
            if not self._loop.is_closed():
                client = lost[0] if lost else None
                self._loop.call_soon_threadsafe(self._deliver, client, live_id, event)

        try:
            version = daemon.ensure_detached().version
            if version != __version__:
                raise RpcError(CRASHED, OTHER_RELEASE.format(version, __version__))
            client = daemon.connect_to_daemon(on_event, daemon.ensure_detached)
        except HermesError as error:
            raise RpcError(CRASHED, str(error)) from error
        lost.append(client)
        return client

    def _deliver(self, client: RpcClient | None, live_id: str, event: ClientEvent) -> None:
        if not isinstance(event, ConnectionLost):
            if live_id:
                self.events(live_id).put(event)
            return
        if client is not None and client is not self._client:
            return  # closed by us, or replaced
        self._client = None
        for queue in self._queues.values():
            queue.put(event)
        self._queues = {}

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._pool, work)
