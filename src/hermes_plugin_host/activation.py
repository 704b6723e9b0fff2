"""Enables and disables plugins, for every front end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import hermes_plugin_host
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.config.values import did_you_mean
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_plugin_host.manager import Plugin


class EventBacklog(Protocol):
    """The store method that enabling a plugin needs."""

    def skip_all(self) -> Any:
        """Mark all undelivered events as settled."""
        ...


def find_plugin(name: str) -> Plugin:
    """The plugin called *name*; raise UsageError if there is none."""
    plugins = hermes_plugin_host.active().plugins
    if name not in plugins:
        hint = did_you_mean(name, plugins)
        text = f"Unknown plugin '{name}'.{hint} See `hermes plugins list`."
        raise UsageError(with_command_name(text))
    return plugins[name]


def enable(name: str, events: EventBacklog | None) -> Plugin:
    """Enable and load a plugin; return it with its state."""
    find_plugin(name)
    if events is not None and not hermes_plugin_host.active().all_callbacks():
        events.skip_all()  # the first plugin receives only new events
    _move(name, into="plugins.enabled", out_of="plugins.disabled")
    hermes_plugin_host.active.cache_clear()
    return find_plugin(name)


def disable(name: str) -> Plugin:
    """Disable a plugin."""
    find_plugin(name)
    _move(name, into="plugins.disabled", out_of="plugins.enabled")
    hermes_plugin_host.active.cache_clear()
    return find_plugin(name)


def forget(name: str) -> None:
    """Remove a plugin from the settings, before it is deleted."""
    config = ConfigFile.of_home()
    for setting in ("plugins.enabled", "plugins.disabled"):
        _drop(config, setting, name)
    hermes_plugin_host.active.cache_clear()


def _move(name: str, *, into: str, out_of: str) -> None:
    config = ConfigFile.of_home()
    present = config.settings().get_list(into)
    if name not in present:
        config.set(into, ", ".join([*present, name]))
    _drop(config, out_of, name)


def _drop(config: ConfigFile, setting: str, name: str) -> None:
    names = config.settings().get_list(setting)
    rest = [item for item in names if item != name]
    if len(rest) != len(names):
        config.set(setting, ", ".join(rest)) if rest else config.unset(setting)
