"""Plugins: `invoke_hook` announces something to all of them.

Callers import this module and call `plugins.invoke_hook(...)`, so that whoever replaces
the function is heard.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_plugin_host.manager import PluginManager


@functools.cache
def active() -> PluginManager:
    """The plugins of this process, loaded when first asked for."""
    from hermes_plugin_host.manager import PluginManager  # noqa: PLC0415 - loads everything else

    return PluginManager.of_home()


def invoke_hook(name: str, **facts: Any) -> list[Any]:
    """Tell every plugin that registered for *name*; what they answered, in order.

    Each callback is isolated and time-limited; an answer of None does not count.
    """
    outcomes = active().call(name, facts)
    return [one.result for one in outcomes if not one.is_failure and one.result is not None]
