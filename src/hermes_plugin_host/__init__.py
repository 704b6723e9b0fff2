"""The plugin host: `invoke_hook` calls the registered callbacks of all plugins.

Callers import this module and call `plugins.invoke_hook(...)`, so that a replaced function
takes effect.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_plugin_host.manager import PluginManager


@functools.cache
def active() -> PluginManager:
    """The plugins of this process, loaded on first use."""
    from hermes_plugin_host.manager import PluginManager  # noqa: PLC0415 - loads everything else

    return PluginManager.of_home()


def invoke_hook(name: str, **facts: Any) -> list[Any]:
    """Call every callback registered for *name*; return their results in order.

    Each callback is isolated and has a timeout; results of None are omitted.
    """
    outcomes = active().call(name, facts)
    return [
        outcome.result
        for outcome in outcomes
        if not outcome.is_failure and outcome.result is not None
    ]


def has_hook(name: str) -> bool:
    """Whether a plugin has registered for a hook."""
    return bool(active().callbacks(name))
