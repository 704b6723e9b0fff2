"""Chooses the interface of plugins when a process starts: that of Hermes and of hermes-agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes_plugin_host

if TYPE_CHECKING:
    from hermes_plugin_host.interface import PluginInterface


def choose_interface() -> None:
    """Choose it; nothing is loaded before the first plugin."""
    hermes_plugin_host.interface_choice().open = _original_interface


def _original_interface() -> PluginInterface:
    from hermes_compat.plugins.interface import OriginalInterface  # noqa: PLC0415 - only for plugins

    return OriginalInterface()
