"""The platform registry: the requirements of each platform and how its adapter is created.

A platform is imported only if it is enabled. Plugins add platforms with `ctx.register_platform`.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import hermes_plugin_host
from gateway.platforms.names import Platform
from hermes_compat.plugins.platform import OriginalPlatform
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import PlatformRefusedError, UsageError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway.platforms.base import Adapter, AdapterContext
    from hermes_core.package_installer import Progress

    Make = Callable[[AdapterContext], Adapter]

LOCK_FOLDER: Final = Path(__file__).with_name("libraries")
LIBRARY_SIZES_MB: Final = {
    "telegram": (9, 36),
    "matrix": (11, 44),
    "discord": (6, 23),
    "slack": (5, 19),
    "email": (1, 1),
}


def library_of(entry: PlatformEntry) -> Library | None:
    """The library of a platform; None if it needs none or belongs to a plugin."""
    if not entry.needs or entry.name not in LIBRARY_SIZES_MB:
        return None
    lock = LOCK_FOLDER / f"{entry.name}.lock"
    return Library(entry.name, entry.label, entry.needs, lock, *LIBRARY_SIZES_MB[entry.name])


def is_usable(entry: PlatformEntry) -> bool:
    """Whether the library of a platform can be imported."""
    needed = library_of(entry)
    return needed is None or needed.is_usable()


def install_library(entry: PlatformEntry, progress: Progress) -> bool:
    """Install the library of a platform; whether anything was downloaded."""
    needed = library_of(entry)
    if needed is None:
        raise UsageError(f"{entry.label} does not need a library")
    return needed.fetch(progress)


def find_missing(entry: PlatformEntry, secret: Callable[[str], str]) -> str:
    """What a platform needs and does not have; empty if it can be created."""
    missing = [name for name in entry.secrets if not secret(name)]
    if missing:
        return f"{entry.label}: set {' and '.join(missing)} in the environment or in .env."
    if not is_usable(entry):
        return f"{entry.label}: library not installed. Run `hermes gateway add {entry.name}`."
    return ""


class PlatformEntry(NamedTuple):
    """A platform; without *make*, its module has a function `make(context)`."""

    name: str
    label: str
    module: str = ""
    needs: str = ""  # the import name of the library
    secrets: tuple[str, ...] = ()  # the variables that must be set
    make: Make | None = None
    setup: str = ""  # the next steps, of a plugin's platform


BUILT_IN_PLATFORMS: Final = (
    PlatformEntry("local", "Local socket", "gateway.platforms.local"),
    PlatformEntry(
        "telegram",
        "Telegram",
        "gateway.platforms.telegram.adapter",
        "aiogram",
        ("TELEGRAM_BOT_TOKEN",),
    ),
    PlatformEntry(
        "matrix",
        "Matrix",
        "gateway.platforms.matrix.adapter",
        "vodozemac",  # an older installation has nio only
        ("MATRIX_HOMESERVER", "MATRIX_ACCESS_TOKEN"),
    ),
    PlatformEntry(
        "discord",
        "Discord",
        "gateway.platforms.discord.adapter",
        "discord",
        ("DISCORD_BOT_TOKEN",),
    ),
    PlatformEntry(
        "slack",
        "Slack",
        "gateway.platforms.slack.adapter",
        "slack_sdk",
        ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"),
    ),
    PlatformEntry(
        "email",
        "E-mail",
        "gateway.platforms.email.adapter",
        "imapclient",
        ("EMAIL_ADDRESS", "EMAIL_PASSWORD"),
    ),
    PlatformEntry(
        "webhook", "Signed HTTP", "gateway.platforms.webhook.adapter", secrets=("WEBHOOK_SECRET",)
    ),
    PlatformEntry(
        "api_server",
        "OpenAI-compatible API",
        "gateway.platforms.api_server.adapter",
        secrets=("API_SERVER_KEY",),
    ),
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


def _maker(make: Make | OriginalPlatform) -> Make:
    """What creates the adapter of a plugin's platform."""
    if not isinstance(make, OriginalPlatform):
        return make
    from hermes_compat.platforms.connection import connect_original  # noqa: PLC0415 - rare

    return cast("Make", functools.partial(connect_original, make))


class PlatformRegistry:
    """The platforms by name."""

    def __init__(self, added: Iterable[PlatformEntry] = ()) -> None:
        self._entries = {item.name: item for item in (*BUILT_IN_PLATFORMS, *added)}
        for name in self._entries:
            Platform.registered(name)

    @classmethod
    def of_home(cls) -> PlatformRegistry:
        """The built-in platforms and those of enabled plugins."""
        if not is_set("plugins.enabled"):
            return cls()
        return cls(
            PlatformEntry(
                platform.name,
                platform.label,
                secrets=platform.secrets,
                make=_maker(platform.make),
                setup=platform.setup,
            )
            for plugin in hermes_plugin_host.active().plugins.values()
            for platform in plugin.registered.platforms
        )

    def __iter__(self) -> Iterator[PlatformEntry]:
        return iter(self._entries.values())

    def get(self, name: str) -> PlatformEntry | None:
        """The platform with a name."""
        return self._entries.get(name)

    def create_adapter(self, name: str, context: AdapterContext) -> Adapter:
        """Create the adapter of a platform; PlatformRefusedError if something is missing."""
        entry = self._entries.get(name)
        if entry is None:
            raise PlatformRefusedError(explain_missing(name))
        problem = find_missing(entry, context.secret)
        if problem:
            raise PlatformRefusedError(problem)
        if entry.make is not None:
            return entry.make(context)
        make: Make = importlib.import_module(entry.module).make
        return make(context)
