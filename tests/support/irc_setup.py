"""The IRC plugin, and the dependencies of its adapter."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gateway.platforms.names import Platform
from hermes_plugin_host.discovery import bundled_folder
from hermes_plugin_host.importer import import_file
from support.adapters import QUICK_BACKOFF, AdapterSetup, DictMemory

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = bundled_folder() / "irc"
PLUGIN = import_file("hermes_plugins.irc", FOLDER / "__init__.py", FOLDER)
Platform.registered("irc")


def plugin_module(name: str) -> Any:
    """A module of the plugin."""
    return importlib.import_module(f"hermes_plugins.irc.{name}")


class IrcSetup(AdapterSetup):
    """An adapter for a server on loopback; nicks are trusted, because ngircd has no accounts."""

    def __init__(self, port: int, folder: Path, **extra: Any) -> None:
        options = {
            "server": "127.0.0.1", "port": port, "tls": False, "seconds_per_line": 0.0,
            "trust_nicks": True,
        }  # fmt: skip
        super().__init__(DictMemory(), folder, {}, options | extra)

    def adapter(self) -> Any:
        return PLUGIN.IrcAdapter(self.context(), QUICK_BACKOFF)
