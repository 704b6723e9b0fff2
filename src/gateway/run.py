"""The gateway runner: starts and stops the service, the HTTP server and the expiry sweep.

Attributes are created on first use, so a runner made without `__init__` works, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from gateway import status
from gateway.contract_shims import ContractRunner, boundary_db, end_expired
from gateway.people import take_role_notice
from gateway.process import adapter_factory
from gateway.process.config_loader import config_of_home
from gateway.process.health import HealthEndpoints
from gateway.process.nodes import join_nodes
from gateway.process.service import GatewayService
from gateway.session import SessionStore
from hermes_conversation import boundary_delivery
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, PlatformDownError, StoreUnavailableError
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import GatewayConfig
    from gateway.process.http_server import HttpServer
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

FIRST_SWEEP_SECONDS: Final = 60.0
SWEEP_SECONDS: Final = 300.0
PRUNE_SECONDS: Final = 3600.0
NO_PROFILES: Final = (
    "multiplex_profiles in config.yaml is not supported: a gateway serves one profile. Remove it, "
    "and run a gateway with its own HERMES_HOME for each profile."
)


class GatewayRunner(ContractRunner):
    """Starts and stops the parts of a gateway, and ends conversations that have expired."""

    _running = False
    _draining = False
    _last_session_store_prune_ts = 0.0
    _exit_reason: str | None = None
    _service: GatewayService | None = None
    _http_server: HttpServer | None = None
    _health: HealthEndpoints | None = None
    _expiry_task: asyncio.Task[None] | None = None
    _restart_requested = False
    _stop_requested: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def config(self) -> GatewayConfig:
        """The configuration."""
        return config_of_home()

    @cached_property
    def session_store(self) -> Any:
        """The routes: chats and their conversations."""
        return SessionStore(self.config.sessions_dir, self.config)

    # Start

    async def start(self) -> None:
        """Connect the platforms and handle messages."""
        if self.config.multiplex_profiles:
            raise ConfigError(NO_PROFILES)
        db = boundary_db(self.session_store)
        if db is None:
            raise StoreUnavailableError("The gateway requires a session store.")
        if not db.engine.database.is_file:
            await asyncio.to_thread(join_nodes, db)
        self._running = True
        settings = ConfigFile.of_home().settings()
        self._restart_drain_timeout = float(settings.get_int("gateway.drain_seconds"))
        status.write_runtime_status("starting")
        self._http_server = adapter_factory.http_server_of_home()
        created = await asyncio.to_thread(
            adapter_factory.create_adapters, db, self.config, self._http_server
        )
        self._service = GatewayService(
            db, self.session_store, self.config, restart=self.request_restart
        )
        self._health = await self._serve_health(db, self._service)
        supervisor = self._service.supervisor
        self._expiry_task = supervisor.start("expiry sweep", self._session_expiry_watcher)
        await self._service.start(*created)
        states = self._service.connections.states
        status.write_runtime_status(
            self._service.state, platforms=states, http_url=self._http_server.url
        )

    async def _serve_health(self, db: SessionDB, service: GatewayService) -> HealthEndpoints:
        """Serve health and metrics; the gateway also works if the port is taken."""
        health = HealthEndpoints(db, service.metrics, service.facts)
        if self._http_server is not None:
            try:
                await self._http_server.add("health", health.routes())
            except PlatformDownError as error:
                log.warning("health and metrics endpoints unavailable: %s", error)
        return health

    def request_stop(self) -> None:
        """Request a stop; from any thread or a signal handler."""
        self._restart_requested = False
        self._signal_stop()

    def _signal_stop(self) -> None:
        if self._stop_requested is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop_requested.set)

    def request_restart(self) -> None:
        """Request a restart; from any thread or a signal handler."""
        self._restart_requested = True
        self._signal_stop()

    @property
    def is_stuck(self) -> bool:
        """Whether a turn is still running after the stop."""
        return self._service is not None and len(self._service.inbox_workers) > 0

    async def run(self, report: Callable[[str], object] = log.info) -> bool:
        """Run until a stop is requested; whether to restart. *report* gets a line per platform."""
        self._loop, self._stop_requested = asyncio.get_running_loop(), asyncio.Event()
        await self.start()
        for name, state in self._service.connections.states.items() if self._service else ():
            reason = f" ({state['error_message']})" if state["error_message"] else ""
            report(f"{name}: {state['state']}{reason}")
        notice = await asyncio.to_thread(self._role_notice)
        if notice:
            report(notice)
        await self._stop_requested.wait()
        await self.stop()
        return self._restart_requested

    def _role_notice(self) -> str:
        db = boundary_db(self.session_store)
        return take_role_notice(db, self.config) if db is not None else ""

    # Expired conversations

    async def _session_expiry_watcher(self, interval: float = SWEEP_SECONDS) -> None:
        """End expired conversations, once each, and prune unused routes."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS)
        while self._running:
            await asyncio.to_thread(attempt, "end expired conversations", self._end_expired)
            await asyncio.to_thread(self._prune)
            await asyncio.sleep(interval)

    def _end_expired(self) -> None:
        if isinstance(self.session_store, SessionStore):
            self.session_store.reload()
        end_expired(self.session_store)
        self._deliver()

    def _prune(self) -> None:
        if time.time() - self._last_session_store_prune_ts <= PRUNE_SECONDS:
            return
        self._last_session_store_prune_ts = time.time()
        attempt(
            "prune unused routes",
            lambda: self.session_store.prune_old_entries(self.config.session_store_max_age_days),
        )

    # Stop

    async def stop(self) -> None:
        """Finish or stop running turns, deliver boundary events, disconnect the platforms."""
        self._running = False
        self._draining = True
        if self._expiry_task is not None:
            self._expiry_task.cancel()
        if self._health is not None:
            self._health.is_draining = True
        if self._service is not None:
            status.write_runtime_status("draining")
            await self._service.stop(self._restart_drain_timeout)
            await asyncio.to_thread(self._deliver)
        if self._http_server is not None:
            await self._http_server.close()
        await self._stop_assigned()
        db = boundary_db(self.session_store)
        if db is not None and not db.engine.database.is_file:
            await asyncio.to_thread(attempt, "leave the other nodes", db.nodes.leave)
        status.write_runtime_status("stopped", exit_reason=self._exit_reason, turns={}, problems=[])
        status.remove_pid_file()

    def _deliver(self) -> None:
        db = boundary_db(self.session_store)
        if db is not None:
            attempt("deliver boundary events", lambda: boundary_delivery.deliver_due(db))
