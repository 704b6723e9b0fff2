"""Platforms being connected: each by itself, again and again while it is down.

A platform that does not answer keeps nobody else waiting. One that refuses what is
configured is left alone until the next start, and `hermes gateway status` says why.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Any, Final

from hermes_core.backoff import Backoff
from hermes_core.errors import PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.platforms.base import Adapter, MessageEvent

log = logging.getLogger(__name__)

RECONNECT: Final = Backoff(1.0, 300.0, factor=4.0)
LETTING_GO_SECONDS: Final = 5.0


class Connections:
    """The adapters, and how each of them fares."""

    def __init__(
        self,
        receive: Callable[[str, MessageEvent], Awaitable[None]],
        on_change: Callable[[], object],
        backoff: Backoff = RECONNECT,
    ) -> None:
        self._receive = receive
        self._on_change = on_change
        self._backoff = backoff
        self._tasks: list[asyncio.Task[None]] = []
        self._tried: dict[str, asyncio.Event] = {}
        self.adapters: dict[str, Adapter] = {}
        self._states: dict[str, dict[str, Any]] = {}

    @property
    def states(self) -> dict[str, dict[str, Any]]:
        """How each platform fares, by name."""
        return {name: self._present(name, state) for name, state in self._states.items()}

    def _present(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        problem = getattr(self.adapters.get(name), "problem", "")
        return {"state": "lost", "error_message": problem} if problem else state

    def start(self, adapters: Mapping[str, Adapter]) -> None:
        """Begin to connect all of them."""
        self.adapters.update(adapters)
        for name, adapter in adapters.items():
            self._tried[name] = asyncio.Event()
            self._note(name, "connecting")
            task = asyncio.create_task(self._connect(name, adapter))
            task.add_done_callback(functools.partial(self._ended, name))
            self._tasks.append(task)

    @property
    def is_whole(self) -> bool:
        """Whether all are connected."""
        return all(one["state"] == "connected" for one in self.states.values())

    def is_connected(self, name: str) -> bool:
        """Whether a platform is."""
        return self._states.get(name, {}).get("state") == "connected"

    async def settled(self, seconds: float) -> None:
        """Wait until each has been tried once, but not for ever."""
        waiting = [asyncio.create_task(one.wait()) for one in self._tried.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)
        for task in waiting:
            task.cancel()

    def refuse(self, name: str, error: str) -> None:
        """A platform that could not even be made."""
        log.error("%s is not used: %s", name, error)
        self._note(name, "refused", error)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """A platform that fails in a way nobody foresaw, a plugin's say, is shown as down."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s cannot be connected: %s", name, error, exc_info=error)
            self._note(name, "refused", f"{type(error).__name__}: {error}")

    async def _connect(self, name: str, adapter: Adapter) -> None:
        tries = 0
        while True:
            try:
                await adapter.connect(functools.partial(self._handed_over, adapter))
            except PlatformRefusedError as error:
                self.refuse(name, str(error))
                return
            except (PlatformError, OSError, TimeoutError) as error:
                tries += 1
                pause = self._backoff.delay(tries)
                log.warning("%s is down (%s); again in %g s", name, error, pause)
                self._note(name, "down", str(error))
                await adapter.disconnect()
                await asyncio.sleep(pause)
            else:
                log.info("%s is connected as %s", name, adapter.account)
                self._note(name, "connected")
                return

    async def _handed_over(self, adapter: Adapter, event: MessageEvent) -> None:
        await self._receive(adapter.account, event)

    def _note(self, name: str, state: str, error: str | None = None) -> None:
        self._states[name] = {"state": state, "error_message": error}
        if state != "connecting" and name in self._tried:
            self._tried[name].set()
        self._on_change()

    async def close(self) -> None:
        """Let go of all of them, with a limit for each."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._let_go(*one) for one in self.adapters.items()))

    async def _let_go(self, name: str, adapter: Adapter) -> None:
        try:
            await asyncio.wait_for(adapter.disconnect(), LETTING_GO_SECONDS)
        except (PlatformError, OSError, RuntimeError, TimeoutError) as error:
            log.warning("%s did not let go: %s", name, error)
