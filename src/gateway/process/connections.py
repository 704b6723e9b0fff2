"""Connects the platforms and supervises their listeners, each independently.

An adapter that has `listen` is listened to by the gateway. One that starts a task of its own in
`connect` is watched: if the task dies, the adapter is disconnected and connected again.

A platform that rejects its configuration is not retried until the next start; `hermes gateway
status` shows the reason.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from gateway.platforms.base import Listens
from gateway.supervision import Supervisor
from hermes_core.backoff import Backoff
from hermes_core.errors import (
    LeaseLostError,
    LeaseTakenError,
    PlatformDownError,
    PlatformError,
    PlatformRefusedError,
    StoreError,
    StoreUnreachableError,
)
from hermes_state.delivery.nodes import PLATFORM_LEASE_PREFIX
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.platforms.base import Adapter, MessageEvent, Receive
    from gateway.status import RuntimePlatform
    from gateway.supervision import TaskRecord
    from hermes_state.delivery.leases import Lease
    from hermes_state.store import SessionDB

RENEWALS_PER_LEASE: Final = 4
POLL_SECONDS: Final = 1.0


class PlatformLeases:
    """The leases of the accounts that this gateway is connected to."""

    def __init__(
        self, db: SessionDB, on_lost: Callable[[], object], supervisor: Supervisor
    ) -> None:
        self._supervisor = supervisor
        self._db = db
        self._on_lost = on_lost
        self._seconds = db.engine.columns.process_timeout_seconds
        self._leases: dict[str, Lease] = {}  # by name
        self._task: asyncio.Task[None] | None = None

    async def acquire(
        self, platform: str, account_key: str, on_wait: Callable[[str], object]
    ) -> None:
        """Wait until this gateway may connect to an account; *on_wait* gets the node that has it.

        *account_key* distinguishes the accounts of a platform: each has a lease of its own.
        """
        name = f"{PLATFORM_LEASE_PREFIX}{platform}:{account_key}"
        holder = ""
        while name not in self._leases:
            try:
                lease = await asyncio.to_thread(
                    self._db.leases.acquire, name, node_name(), self._seconds
                )
            except LeaseTakenError as error:
                if error.holder != holder:
                    holder = error.holder
                    log.info("%s is connected on %s; waiting", platform, holder)
                    on_wait(holder)
            except StoreError as error:
                log.log(_level(error), "%s waits for the database: %s", platform, error)
            else:
                self._leases[name] = lease
                self._task = self._task or self._supervisor.start("lease renewal", self._renew)
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _renew(self) -> None:
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                for lease in list(self._leases.values()):
                    await asyncio.to_thread(self._db.leases.renew, lease, self._seconds)
                renewed_at = time.monotonic()
            except LeaseLostError as error:
                log.error("gateway restarting: another node has taken over (%s)", error)
                break
            except StoreError as error:
                log.log(_level(error), "platform leases not renewed: %s", error)
                if time.monotonic() - renewed_at > self._seconds:
                    log.error("gateway restarting: the database was unreachable for too long")
                    break
        self._on_lost()

    async def release(self) -> None:
        """Let another gateway connect at once."""
        if self._task is not None:
            self._task.cancel()
        leases, self._leases = self._leases, {}
        for lease in leases.values():
            try:
                await asyncio.to_thread(self._db.leases.release, lease)
            except StoreError as error:  # the lease expires
                log.log(_level(error), "platform lease not released: %s", error)


def _level(error: StoreError) -> int:
    """The log level of an error; the store itself reports a server that is lost."""
    return logging.DEBUG if isinstance(error, StoreUnreachableError) else logging.WARNING


log = logging.getLogger(__name__)

CONNECT_BACKOFF: Final = Backoff(1.0, 300.0, factor=4.0)
DISCONNECT_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MAX_TEXT_CHARS: Final = 4000


class Connections:
    """The adapters and their connection states."""

    def __init__(
        self,
        receive: Callable[[str, MessageEvent], Awaitable[None]],
        on_change: Callable[[], object],
        backoff: Backoff = CONNECT_BACKOFF,
        leases: PlatformLeases | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor()
        self._records: dict[str, TaskRecord] = {}
        self._receive = receive
        self._leases = leases  # if other nodes may connect to the same accounts
        self._on_change = on_change
        self._backoff = backoff
        self._tasks: list[asyncio.Task[None]] = []
        self._first_attempts: dict[str, asyncio.Event] = {}
        self.adapters: dict[str, Adapter] = {}
        self._account_keys: dict[str, str] = {}
        self._states: dict[str, RuntimePlatform] = {}
        self._started: set[str] = set()
        # The tasks that adapters start, by the task that runs their `connect`.
        self._adapter_tasks: dict[asyncio.Task[Any] | None, list[asyncio.Task[Any]]] = {}

    @property
    def states(self) -> dict[str, RuntimePlatform]:
        """The state of each platform, by name."""
        return {name: self._current(name, state) for name, state in self._states.items()}

    def _current(self, name: str, state: RuntimePlatform) -> RuntimePlatform:
        record = self._records.get(name)
        if record is not None and record.problem:  # an unexpected error, e.g. of a plugin
            return {"state": "down", "error_message": record.last_error}
        problem = getattr(self.adapters.get(name), "problem", "")
        return {"state": "lost", "error_message": problem} if problem else state

    def start(
        self, adapters: Mapping[str, Adapter], account_keys: Mapping[str, str] | None = None
    ) -> None:
        """Start connecting all adapters."""
        asyncio.get_running_loop().set_task_factory(self._create_task)
        self.adapters.update(adapters)
        self._account_keys.update(account_keys or {})
        for name, adapter in adapters.items():
            self._first_attempts[name] = asyncio.Event()
            self._note(name, "connecting")
            connect = functools.partial(self._connect, name, adapter)
            label = f"connection to {name}"
            task = self._supervisor.start(label, connect, is_platform=True)
            self._records[name] = self._supervisor.records[-1]
            self._tasks.append(task)

    @property
    def all_connected(self) -> bool:
        """Whether every platform is connected, here or on another node."""
        return all(state["state"] in {"connected", "standby"} for state in self.states.values())

    def max_text_chars(self, platform: str) -> int:
        """The length of the longest message that a platform takes."""
        adapter = self.adapters.get(platform)
        return adapter.abilities.longest_text if adapter else DEFAULT_MAX_TEXT_CHARS

    def is_connected(self, name: str) -> bool:
        """Whether a platform is connected."""
        return self._states.get(name, {}).get("state") == "connected"

    async def wait_for_first_attempts(self, seconds: float) -> None:
        """Wait until each platform has been tried once, at most *seconds*."""
        waits = [
            asyncio.create_task(first_attempt.wait())
            for first_attempt in self._first_attempts.values()
        ]
        if waits:
            await asyncio.wait(waits, timeout=seconds)
        for task in waits:
            task.cancel()

    def refuse(self, name: str, error: str) -> None:
        """Mark a platform as refused; it is not retried."""
        log.error("%s not started: %s", name, error)
        self._note(name, "refused", error)

    async def _connect(self, name: str, adapter: Adapter) -> None:
        if self._leases is not None:
            standby = functools.partial(self._note_standby, name)
            await self._leases.acquire(name, self._account_keys.get(name, ""), standby)
        if name in self._started:  # its listener has died
            await self._disconnect(name, adapter)
        self._started.add(name)
        receive = functools.partial(self._forward, adapter)
        attempts = 0
        while True:
            try:
                tasks = await self._open(adapter, receive)
                log.info("%s connected: account %s", name, adapter.account)
                self._note(name, "connected")
                attempts = 0
                await _listen(adapter, receive, tasks)
            except PlatformRefusedError as error:
                self.refuse(name, str(error))
                return
            except (PlatformError, OSError, TimeoutError) as error:
                attempts += 1
                pause = self._backoff.delay(attempts)
                log.warning("%s is down: %s; retrying in %g s", name, error, pause)
                self._note(name, "down", str(error))
                await self._disconnect(name, adapter)
                await asyncio.sleep(pause)
            else:
                return

    async def _open(self, adapter: Adapter, receive: Receive) -> list[asyncio.Task[Any]]:
        """Connect; the tasks that the adapter has started and that are running."""
        if not hasattr(adapter, "connect"):
            return []
        tasks = self._adapter_tasks[asyncio.current_task()] = []
        try:
            await adapter.connect(receive)
        finally:
            del self._adapter_tasks[asyncio.current_task()]
        return [task for task in tasks if not task.done()]

    def _create_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        """The task factory: notes the tasks that an adapter starts while it connects."""
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        self._adapter_tasks.get(asyncio.current_task(loop), []).append(task)
        return task

    def _note_standby(self, name: str, node: str) -> None:
        self._note(name, "standby", f"connected on {node}")

    async def _forward(self, adapter: Adapter, event: MessageEvent) -> None:
        await self._receive(adapter.account, event)

    def _note(self, name: str, state: str, error: str | None = None) -> None:
        self._states[name] = {"state": state, "error_message": error}
        if state != "connecting" and name in self._first_attempts:
            self._first_attempts[name].set()
        self._on_change()

    async def close(self) -> None:
        """Disconnect all platforms, each with a time limit."""
        asyncio.get_running_loop().set_task_factory(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._disconnect(*item) for item in self.adapters.items()))
        if self._leases is not None:
            await self._leases.release()

    async def _disconnect(self, name: str, adapter: Adapter) -> None:
        if not hasattr(adapter, "disconnect"):
            return
        try:
            await asyncio.wait_for(adapter.disconnect(), DISCONNECT_TIMEOUT_SECONDS)
        except (PlatformError, OSError, RuntimeError, TimeoutError) as error:
            log.warning("%s failed to shut down cleanly: %s", name, error)


async def _listen(adapter: Adapter, receive: Receive, tasks: list[asyncio.Task[Any]]) -> None:
    """Run the listener of an adapter, or wait for its own tasks; raises what ends them."""
    if isinstance(adapter, Listens):
        await adapter.listen(receive)
        raise PlatformDownError("its listener has ended")
    for task in asyncio.as_completed(tasks):
        try:
            await task
        except asyncio.CancelledError:
            if (asyncio.current_task() or tasks[0]).cancelling():
                raise  # the gateway stops; else the adapter has stopped its task
