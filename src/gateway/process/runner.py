"""The gateway of this process: starts and stops the service, the HTTP server and the sweep."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import status
from gateway.inbound.access_control import AccessControl
from gateway.inbound.commands import menu_commands
from gateway.people import take_role_notice
from gateway.platforms.base import AdapterContext, ApiKey
from gateway.platforms.names import Platform
from gateway.platforms.registry import PlatformRegistry
from gateway.process import config_loader
from gateway.process.config_loader import config_of_home
from gateway.process.health import HealthEndpoints
from gateway.process.http_server import HttpServer
from gateway.process.nodes import join_nodes
from gateway.process.service import GatewayService
from gateway.routing.session_routes import SessionRoutes
from gateway.routing.sources import SessionSource
from hermes_conversation import boundary_delivery
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, PlatformDownError, PlatformError
from hermes_core.isolate import Failure, attempt
from hermes_core.roles import Role, parse_role
from hermes_state.files import AdapterRecords, media_of
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter, MessageEvent


class AdapterMemory:
    """The memory of an adapter, in the store."""

    def __init__(self, db: SessionDB, platform: str) -> None:
        self._db = db
        self._prefix = f"platform:{platform}:"

    async def recall(self, name: str) -> str | None:
        """The text stored under a name."""
        return await asyncio.to_thread(self._db.meta.get_meta, self._prefix + name)

    async def keep(self, name: str, text: str) -> None:
        """Store a text."""
        await asyncio.to_thread(self._db.meta.set_meta, self._prefix + name, text)


class CreatedAdapters(NamedTuple):
    """The adapters by platform, and the error of each platform without one.

    `account_keys` distinguish accounts before they are connected: a digest of their secrets.
    """

    adapters: dict[str, Adapter]
    refused: dict[str, str]
    account_keys: dict[str, str]


def http_server_of_home() -> HttpServer:
    """The HTTP server at the configured address."""
    settings = ConfigFile.of_home().settings()
    return HttpServer(settings.get_str("gateway.http_host"), settings.get_int("gateway.http_port"))


def find_api_key(db: SessionDB, key: str) -> ApiKey | None:
    """The name and role of a key of `hermes api-keys`."""
    found = db.people.find_api_key(key)
    return ApiKey(found.name, parse_role(found.role) or Role.GUEST) if found else None


def is_owner(db: SessionDB, config: GatewayConfig, platform: str, user_id: str) -> bool:
    """Whether a user of a platform is the owner."""
    source = SessionSource(Platform(platform), user_id, user_id=user_id)
    return AccessControl(db, config).role_of(source) is Role.OWNER


def is_accepted(db: SessionDB, config: GatewayConfig, event: MessageEvent) -> bool:
    """Whether a message is for the agent and its sender has access."""
    access, source = AccessControl(db, config), event.source
    return (
        source is not None
        and access.is_for_agent(source, is_addressed=event.is_addressed)
        and access.has_access(source)
    )


async def quarantine(
    db: SessionDB, platform: str, update_id: str, content: object, error: str
) -> None:
    """Store an update that cannot be handled."""
    text = json.dumps(content, default=repr)
    await asyncio.to_thread(db.inbox.quarantine, platform, update_id, text, error)


def create_adapters(
    db: SessionDB,
    config: GatewayConfig,
    http_server: HttpServer,
    registry: PlatformRegistry | None = None,
) -> CreatedAdapters:
    """Create the adapters; a platform that fails does not affect the others."""
    registry = registry or PlatformRegistry.of_home()
    secrets = config_loader.Secrets()
    created = CreatedAdapters({}, config_loader.unavailable_platforms(registry), {})
    for entry in config_loader.enabled_platforms(config, registry, secrets):
        values = "\n".join(map(secrets, entry.secrets))
        created.account_keys[entry.name] = hashlib.sha256(values.encode()).hexdigest()[:16]
        context = AdapterContext(
            config_loader.platform_config(config, entry.name),
            secrets,
            media_of(db),
            AdapterMemory(db, entry.name),
            http_server,
            functools.partial(find_api_key, db),
            functools.partial(quarantine, db, entry.name),
            commands=menu_commands(),
            records=AdapterRecords(db.files, entry.name),
            is_owner=functools.partial(is_owner, db, config, entry.name),
            is_accepted=functools.partial(is_accepted, db, config),
            api_requests=db.api_requests,
        )
        create = functools.partial(_create, created, registry, entry.name, context)
        result = attempt(f"create {entry.name} adapter", create)
        if isinstance(result, Failure):  # a faulty plugin does not affect the other platforms
            created.refused[entry.name] = str(result.error)
    return created


def _create(
    created: CreatedAdapters, registry: PlatformRegistry, name: str, context: AdapterContext
) -> None:
    try:
        created.adapters[name] = registry.create_adapter(name, context)
    except PlatformError as error:
        created.refused[name] = str(error)


log = logging.getLogger(__name__)

FIRST_SWEEP_SECONDS: Final = 60.0
SWEEP_SECONDS: Final = 300.0
PRUNE_SECONDS: Final = 3600.0
NO_PROFILES: Final = (
    "multiplex_profiles in config.yaml is not supported: a gateway serves one profile. Remove it, "
    "and run a gateway with its own HERMES_HOME for each profile."
)


class Gateway:
    """Starts and stops the parts of a gateway, and ends conversations that have expired."""

    _restart_requested = False
    _stop_requested: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _service: GatewayService | None = None
    _http_server: HttpServer | None = None
    _health: HealthEndpoints | None = None
    _expiry_task: asyncio.Task[None] | None = None

    def __init__(self) -> None:
        self.config: GatewayConfig = config_of_home()
        if self.config.multiplex_profiles:
            raise ConfigError(NO_PROFILES)
        self.db = SessionDB()
        self.routes = SessionRoutes(self.db, self.config.sessions_dir, self.config)
        self._running = False
        self._pruned_at = 0.0
        settings = ConfigFile.of_home().settings()
        self._drain_seconds = float(settings.get_int("gateway.drain_seconds"))

    # Start

    async def start(self) -> None:
        """Connect the platforms and handle messages."""
        db = self.db
        if not db.engine.database.is_file:
            await asyncio.to_thread(join_nodes, db)
        self._running = True
        db.search.updater.start()
        status.write_runtime_status("starting")
        self._http_server = http_server_of_home()
        created = await asyncio.to_thread(create_adapters, db, self.config, self._http_server)
        self._service = GatewayService(db, self.routes, self.config, restart=self.request_restart)
        self._health = await self._serve_health(db, self._service)
        supervisor = self._service.supervisor
        self._expiry_task = supervisor.start("expiry sweep", self._watch_expiry)
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
        notice = await asyncio.to_thread(take_role_notice, self.db, self.config)
        if notice:
            report(notice)
        await self._stop_requested.wait()
        await self.stop()
        return self._restart_requested

    # Expired conversations

    async def _watch_expiry(self, interval: float = SWEEP_SECONDS) -> None:
        """End expired conversations, once each, and prune unused routes."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS)
        while self._running:
            await asyncio.to_thread(attempt, "end expired conversations", self._end_expired)
            await asyncio.to_thread(self._prune)
            await asyncio.sleep(interval)

    def _end_expired(self) -> None:
        self.routes.end_expired()
        self._deliver()

    def _prune(self) -> None:
        if time.time() - self._pruned_at <= PRUNE_SECONDS:
            return
        self._pruned_at = time.time()
        attempt(
            "prune unused routes",
            lambda: self.routes.prune_old_entries(self.config.session_store_max_age_days),
        )

    # Stop

    async def stop(self) -> None:
        """Finish or stop running turns, deliver boundary events, disconnect the platforms."""
        self._running = False
        if self._expiry_task is not None:
            self._expiry_task.cancel()
        if self._health is not None:
            self._health.is_draining = True
        if self._service is not None:
            status.write_runtime_status("draining")
            await self._service.stop(self._drain_seconds)
            await asyncio.to_thread(self._deliver)
        if self._http_server is not None:
            await self._http_server.close()
        if not self.db.engine.database.is_file:
            await asyncio.to_thread(attempt, "leave the other nodes", self.db.nodes.leave)
        status.write_runtime_status("stopped", exit_reason=None, turns={}, problems=[])
        status.remove_pid_file()

    def _deliver(self) -> None:
        attempt("deliver boundary events", lambda: boundary_delivery.deliver_due(self.db))
