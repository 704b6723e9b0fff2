"""The platform registry: the requirements of each platform and how its adapter is created.

A platform is imported only if it is enabled. Plugins add platforms with `ctx.register_platform`.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Final, cast

import hermes_plugin_host
from gateway.platforms import api_server, discord, email, matrix, slack, telegram, webhook
from gateway.platforms.names import Platform
from hermes_core.config.platform_spec import PlatformSpec
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway.platforms.base import Adapter, AdapterContext

LOCAL: Final = PlatformSpec(
    "local",
    "Local socket",
    "gateway.platforms.local",
    next_steps=("No setup needed: the socket is always available.",),
)
BUILT_IN_PLATFORMS: Final = (
    LOCAL,
    telegram.PLATFORM,
    matrix.PLATFORM,
    discord.PLATFORM,
    slack.PLATFORM,
    email.PLATFORM,
    webhook.PLATFORM,
    api_server.PLATFORM,
)


def explain_missing(name: str) -> str:
    """Why there is no platform with a name, and the next command."""
    plugin = hermes_plugin_host.active().plugins.get(name)
    if plugin is None or plugin.discovered.manifest.kind != "platform":
        known = ", ".join(item.name for item in PlatformRegistry.of_home())
        return f"Unknown platform {name}. Available: {known}."
    if plugin.status == "failed":
        return f"The plugin {name} failed to load: {plugin.detail}"
    return f"The plugin {name} is not enabled. Run `hermes plugins enable {name}`."


class PlatformRegistry:
    """The platforms by name."""

    def __init__(self, added: Iterable[PlatformSpec] = ()) -> None:
        self._entries = {item.name: item for item in (*BUILT_IN_PLATFORMS, *added)}
        for name in self._entries:
            Platform.registered(name)

    @classmethod
    def of_home(cls) -> PlatformRegistry:
        """The built-in platforms and those of enabled plugins."""
        if not is_set("plugins.enabled"):
            return cls()
        return cls(
            platform
            for plugin in hermes_plugin_host.active().plugins.values()
            for platform in plugin.registered.platforms
        )

    def __iter__(self) -> Iterator[PlatformSpec]:
        return iter(self._entries.values())

    def get(self, name: str) -> PlatformSpec | None:
        """The platform with a name."""
        return self._entries.get(name)

    def create_adapter(self, name: str, context: AdapterContext) -> Adapter:
        """Create the adapter of a platform; PlatformRefusedError if something is missing."""
        entry = self._entries.get(name)
        if entry is None:
            raise PlatformRefusedError(explain_missing(name))
        problem = entry.missing(context.secret)
        if problem:
            raise PlatformRefusedError(problem)
        for logger in entry.loggers:
            logging.getLogger(logger).setLevel(max(logging.getLogger().level, logging.WARNING))
        make = entry.make
        if isinstance(make, str):
            make = cast("Callable[[AdapterContext], Adapter]", importlib.import_module(make).make)
        adapter: Adapter = make(context)
        return adapter
