"""The platforms there are: what each needs, and how its adapter is made.

Nothing of a platform is imported before it is switched on. Plugins add theirs with
`ctx.register_platform`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import hermes_plugin_host
from gateway.platforms.names import Platform
from hermes_core.config.probe import may_be_set
from hermes_core.errors import PlatformRefusedError, UsageError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway.platforms.base import Adapter, AdapterContext
    from hermes_core.package_installer import Progress

    Make = Callable[[AdapterContext], Adapter]

LOCKS: Final = Path(__file__).with_name("libraries")
SIZES: Final = {"telegram": (9, 36), "matrix": (9, 39), "discord": (6, 23), "slack": (5, 19)}  # MB


def library(entry: PlatformEntry) -> Library | None:
    """What a platform needs; None when it needs nothing, or a plugin sees to it."""
    if not entry.needs or entry.name not in SIZES:
        return None
    lock = LOCKS / f"{entry.name}.lock"
    return Library(entry.name, entry.label, entry.needs, lock, *SIZES[entry.name])


def is_usable(entry: PlatformEntry) -> bool:
    """Whether a platform's library can be imported."""
    found = library(entry)
    return found is None or found.is_usable()


def fetch(entry: PlatformEntry, progress: Progress) -> bool:
    """Have a platform's library in place; whether anything had to be fetched."""
    found = library(entry)
    if found is None:
        raise UsageError(f"{entry.label} needs no library")
    return found.fetch(progress)


class PlatformEntry(NamedTuple):
    """A platform: its module has `make(surroundings)`, unless *make* is given."""

    name: str
    label: str
    module: str = ""
    needs: str = ""  # the library, as it is imported
    secrets: tuple[str, ...] = ()  # variables that all have to be set
    make: Make | None = None


BUILT_IN: Final = (
    PlatformEntry("local", "a socket of this machine", "gateway.platforms.local"),
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
        "nio",
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
        "webhook", "signed HTTP", "gateway.platforms.webhook.adapter", secrets=("WEBHOOK_SECRET",)
    ),
    PlatformEntry(
        "api_server",
        "the API of OpenAI",
        "gateway.platforms.api_server.adapter",
        secrets=("API_SERVER_KEY",),
    ),
)


class PlatformRegistry:
    """Platforms by name."""

    def __init__(self, added: Iterable[PlatformEntry] = ()) -> None:
        self._entries = {one.name: one for one in (*BUILT_IN, *added)}
        for name in self._entries:
            Platform.registered(name)

    @classmethod
    def of_home(cls) -> PlatformRegistry:
        """The built-in ones, and what plugins of the user's bring."""
        if not may_be_set("plugins.enabled"):
            return cls()
        return cls(
            PlatformEntry(one.name, one.label, secrets=one.secrets, make=one.make)
            for plugin in hermes_plugin_host.active().plugins.values()
            for one in plugin.registered.platforms
        )

    def __iter__(self) -> Iterator[PlatformEntry]:
        return iter(self._entries.values())

    def get(self, name: str) -> PlatformEntry | None:
        """The platform called *name*."""
        return self._entries.get(name)

    def made(self, name: str, surroundings: AdapterContext) -> Adapter:
        """The adapter of a platform; an error says what is missing and how to get it."""
        entry = self._entries.get(name)
        if entry is None:
            known = ", ".join(self._entries)
            raise PlatformRefusedError(f"there is no platform {name}; there are {known}")
        missing = [one for one in entry.secrets if not surroundings.secret(one)]
        if missing:
            text = f"{entry.label} needs {' and '.join(missing)}, in the environment or in .env"
            raise PlatformRefusedError(text)
        if not is_usable(entry):
            text = f"{entry.label} needs a library: run `hermes gateway add {entry.name}`"
            raise PlatformRefusedError(text)
        if entry.make is not None:
            return entry.make(surroundings)
        make: Make = importlib.import_module(entry.module).make
        return make(surroundings)
