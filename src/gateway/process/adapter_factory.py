"""Creates the adapters of the enabled platforms."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
from typing import TYPE_CHECKING, NamedTuple

from gateway.inbound.access_control import AccessControl
from gateway.inbound.commands import menu_commands
from gateway.platforms.base import AdapterContext, ApiKey
from gateway.platforms.names import Platform
from gateway.platforms.registry import PlatformRegistry
from gateway.process import config_loader
from gateway.process.http_server import HttpServer
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from hermes_core.errors import PlatformError
from hermes_core.isolate import Failure, attempt
from hermes_core.roles import Role, parse_role
from hermes_state.files import AdapterRecords, media_of

if TYPE_CHECKING:
    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter, MessageEvent
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)


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
