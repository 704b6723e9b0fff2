"""The gateway's runner: it wires; what is done lives in small modules beside it.

Attributes are made on first use, so that a runner put together by hand works, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from gateway import status
from gateway.contract_shims import ContractRunner, boundary_db, end_expired
from gateway.process import adapter_factory
from gateway.process.config_loader import config_of_home
from gateway.process.health import Watching
from gateway.process.service import GatewayService
from gateway.session import SessionStore
from hermes_core.config.file import ConfigFile
from hermes_core.errors import PlatformDownError, StoreUnavailableError
from hermes_core.isolate import Step, attempt
from hermes_plugin_host import delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import GatewayConfig
    from gateway.process.http_server import HttpServer
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

FIRST_LOOK_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 300.0
PRUNE_SECONDS: Final = 3600.0


class GatewayRunner(ContractRunner):
    """Starts and stops the parts of a gateway, and ends conversations that have expired."""

    _running = False
    _draining = False
    _last_session_store_prune_ts = 0.0
    _exit_reason: str | None = None
    _service: GatewayService | None = None
    _front: HttpServer | None = None
    _watching: Watching | None = None
    _watcher: asyncio.Task[None] | None = None
    _restart_requested = False
    _leaving: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def config(self) -> GatewayConfig:
        """What the gateway was told."""
        return config_of_home()

    @cached_property
    def session_store(self) -> Any:
        """The places and their conversations."""
        return SessionStore(self.config.sessions_dir, self.config)

    # The beginning

    async def start(self) -> None:
        """Connect the platforms and begin to work."""
        db = boundary_db(self.session_store)
        if db is None:
            raise StoreUnavailableError("the gateway needs a store to keep messages in")
        self._running = True
        settings = ConfigFile.of_home().settings()
        self._restart_drain_timeout = float(settings.get_int("gateway.drain_seconds"))
        status.write_runtime_status("starting")
        self._front = adapter_factory.front_of_home()
        found = await asyncio.to_thread(adapter_factory.equipped, db, self.config, self._front)
        self._service = GatewayService(
            db, self.session_store, self.config, restart=self.ask_to_restart
        )
        self._watching = await self._be_watched(db, self._service)
        self._watcher = asyncio.create_task(self._session_expiry_watcher())
        await self._service.start(found.adapters, found.refused)
        states = self._service.connections.states
        status.write_runtime_status(self._service.state, platforms=states, http_url=self._front.url)

    async def _be_watched(self, db: SessionDB, service: GatewayService) -> Watching:
        """Serve health and metrics; a port that is taken is no reason not to work."""
        connections = service.connections
        watching = Watching(
            db, service.meters, lambda: connections.states, lambda: len(service.turns)
        )
        if self._front is not None:
            try:
                await self._front.add("watching", watching.routes())
            except PlatformDownError as error:
                log.warning("nobody can watch: %s", error)
        return watching

    def leave(self) -> None:
        """Ask it to end, for good; from any thread, or a signal."""
        self._restart_requested = False
        self._go()

    def _go(self) -> None:
        if self._leaving is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._leaving.set)

    def ask_to_restart(self) -> None:
        """Ask it to end and to begin anew; from any thread, or a signal."""
        self._restart_requested = True
        self._go()

    @property
    def is_stuck(self) -> bool:
        """Whether a turn runs on that does not listen."""
        return self._service is not None and len(self._service.turns) > 0

    async def run(self, tell: Callable[[str], object] = log.info) -> bool:
        """Work until asked to leave; whether it is to begin anew. Who is there is *told*."""
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        await self.start()
        for name, state in self._service.connections.states.items() if self._service else ():
            why = f": {state['error_message']}" if state["error_message"] else ""
            tell(f"{name} is {state['state']}{why}")
        await self._leaving.wait()
        await self.stop()
        return self._restart_requested

    # Conversations that are over by themselves

    async def _session_expiry_watcher(self, interval: float = LOOK_SECONDS) -> None:
        """End what is over by policy, once each, and forget places nobody uses."""
        await asyncio.sleep(FIRST_LOOK_SECONDS)
        while self._running:
            await asyncio.to_thread(attempt, Step("end what is over", self._end_expired))
            await asyncio.to_thread(self._prune)
            await asyncio.sleep(interval)

    def _end_expired(self) -> None:
        end_expired(self.session_store)
        self._deliver()

    def _prune(self) -> None:
        if time.time() - self._last_session_store_prune_ts <= PRUNE_SECONDS:
            return
        self._last_session_store_prune_ts = time.time()
        attempt(
            Step(
                "forget places nobody uses",
                lambda: self.session_store.prune_old_entries(
                    self.config.session_store_max_age_days
                ),
            )
        )

    # The end

    async def stop(self) -> None:
        """Finish or stop what runs, tell plugins, let go of the platforms."""
        self._running = False
        self._draining = True
        if self._watcher is not None:
            self._watcher.cancel()
        if self._watching is not None:
            self._watching.is_leaving = True
        if self._service is not None:
            status.write_runtime_status("draining")
            await self._service.stop(self._restart_drain_timeout)
            await asyncio.to_thread(self._deliver)
        if self._front is not None:
            await self._front.close()
        await self._stop_assigned()
        status.write_runtime_status("stopped", exit_reason=self._exit_reason)
        status.remove_pid_file()

    def _deliver(self) -> None:
        db = boundary_db(self.session_store)
        if db is not None:
            attempt(Step("deliver boundaries", lambda: delivery.deliver_due(db)))
