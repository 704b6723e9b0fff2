"""The plugin host: `invoke_hook` calls the registered callbacks of all plugins.

Callers import this module and call `plugins.invoke_hook(...)`, so that a replaced function
takes effect.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from hermes_core.hooks import DECIDING_HOOKS, HOOKS, GuardFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_plugin_host.interface import PluginInterface
    from hermes_plugin_host.manager import PluginManager
    from hermes_plugin_host.services import OpenConversations

VALID_HOOKS: Final = frozenset(hook.name for hook in HOOKS)


def own_interface() -> PluginInterface:
    """The interface of Hermes alone."""
    from hermes_plugin_host.interface import PluginInterface  # noqa: PLC0415 - only for plugins

    return PluginInterface()


class InterfaceChoice:
    """The interface for the plugins of this process, chosen before the first one is loaded."""

    def __init__(self) -> None:
        self.open: Callable[[], PluginInterface] = own_interface


@functools.cache
def interface_choice() -> InterfaceChoice:
    """The choice of this process."""
    return InterfaceChoice()


@functools.cache
def active() -> PluginManager:
    """The plugins of this process, loaded on first use."""
    from hermes_plugin_host.manager import PluginManager  # noqa: PLC0415 - loads everything else

    return PluginManager.of_home()


@functools.cache
def conversations() -> OpenConversations:
    """The open conversations of this process, for plugins."""
    from hermes_plugin_host.services import OpenConversations  # noqa: PLC0415 - only for plugins

    return OpenConversations()


def invoke_hook(name: str, **facts: Any) -> list[Any]:
    """Call every callback registered for *name*; return their results in order.

    Each callback is isolated and has a timeout; results of None are omitted. A failure is the
    result of a callback for a hook that decides, and omitted for all others.
    """
    results: list[Any] = []
    for outcome in active().call(name, facts):
        if not outcome.is_failure:
            results.append(outcome.result)
        elif name in DECIDING_HOOKS:
            results.append(GuardFailure(outcome.plugin, name, outcome.error))
    return [result for result in results if result is not None]


def has_hook(name: str) -> bool:
    """Whether a plugin has registered for a hook."""
    return bool(active().callbacks(name))


# Names of hermes-agent, for its plugins


def get_plugin_manager() -> PluginManager:
    """The plugins of this process."""
    _warn("get_plugin_manager", "hermes_plugin_host.active")
    return active()


def discover_plugins(force: bool = False) -> None:
    """Load the plugins, again with *force*."""
    _warn("discover_plugins", "hermes_plugin_host.active")
    if force:
        active.cache_clear()
    active()


def get_plugin_commands() -> dict[str, dict[str, Any]]:
    """The slash commands of plugins by name."""
    return {
        command.name: {
            "handler": command.handler,
            "description": command.description,
            "args_hint": command.args_hint,
            "plugin": plugin.key,
        }
        for plugin in active().plugins.values()
        for command in plugin.registered.commands
    }


def get_plugin_command_handler(name: str) -> Callable[[str], Any] | None:
    """The handler of a plugin's slash command."""
    return get_plugin_commands().get(name.lstrip("/"), {}).get("handler")


def _warn(name: str, instead: str) -> None:
    from hermes_plugin_host.interface import warn_deprecated  # noqa: PLC0415 - rare

    warn_deprecated(f"hermes_cli.plugins.{name}", instead)
