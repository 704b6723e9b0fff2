"""The adapters of the platforms that are switched on, each with what it is made from."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, NamedTuple

from gateway.platforms.base import AdapterContext
from gateway.platforms.registry import PlatformRegistry
from gateway.process import config_loader
from gateway.process.http_server import HttpServer
from hermes_core import media_store
from hermes_core.config.file import ConfigFile
from hermes_core.errors import PlatformError
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from gateway.config import GatewayConfig
    from gateway.platforms.base import Adapter
    from hermes_state import SessionDB

log = logging.getLogger(__name__)


class StoredMemory:
    """What an adapter remembers, in the store."""

    def __init__(self, db: SessionDB, platform: str) -> None:
        self._db = db
        self._start = f"platform:{platform}:"

    async def recall(self, name: str) -> str | None:
        """What was kept under a name."""
        return await asyncio.to_thread(self._db.get_meta, self._start + name)

    async def keep(self, name: str, text: str) -> None:
        """Keep a text."""
        await asyncio.to_thread(self._db.set_meta, self._start + name, text)


class Equipped(NamedTuple):
    """Adapters, and the platforms that could not be made, with the reason."""

    adapters: dict[str, Adapter]
    refused: dict[str, str]


def front_of_home() -> HttpServer:
    """The web server, where the settings want it."""
    settings = ConfigFile.of_home().settings()
    return HttpServer(settings.get_str("gateway.http_host"), settings.get_int("gateway.http_port"))


def equipped(
    db: SessionDB,
    config: GatewayConfig,
    front: HttpServer,
    registry: PlatformRegistry | None = None,
) -> Equipped:
    """Make the adapters; one that cannot be made keeps no other from it."""
    registry = registry or PlatformRegistry.of_home()
    secrets = config_loader.Secrets()
    found = Equipped({}, {})
    for entry in config_loader.enabled(config, registry, secrets):
        surroundings = AdapterContext(
            config_loader.of(config, entry.name),
            secrets,
            media_store.of_home(),
            StoredMemory(db, entry.name),
            front,
        )
        failure = attempt(
            Step(
                f"make {entry.name}",
                functools.partial(_make, found, registry, entry.name, surroundings),
            )
        )
        if failure is not None:  # whatever a plugin does, the others work
            found.refused[entry.name] = str(failure.error)
    return found


def _make(
    found: Equipped, registry: PlatformRegistry, name: str, surroundings: AdapterContext
) -> None:
    try:
        found.adapters[name] = registry.made(name, surroundings)
    except PlatformError as error:
        found.refused[name] = str(error)
