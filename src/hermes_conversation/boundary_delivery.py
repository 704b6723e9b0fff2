"""Delivers the boundaries of sessions to plugins, and their ends to shell hooks (SessionEnd)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import hermes_plugin_host
from hermes_core.config.yaml_reader import is_set
from hermes_core.paths import TRUST_FILE, hermes_home
from hermes_plugin_host.delivery import Delivery

if TYPE_CHECKING:
    from hermes_plugin_host.callbacks import Callback
    from hermes_plugin_host.manager import PluginManager
    from hermes_state.store import SessionDB

MAX_AGE_SECONDS: Final = 86_400.0  # of an end that is announced


def has_consumers() -> bool:
    """Whether plugins or shell hooks may want to know about the boundaries of sessions."""
    return is_set("plugins.enabled", "hooks") or (hermes_home() / TRUST_FILE).exists()


def make_delivery(db: SessionDB) -> Delivery:
    """Delivers boundaries to plugins and to shell hooks."""
    if not is_set("plugins.enabled"):  # their first consumer may be years younger than they
        db.boundaries.skip_before(db.clock.now() - MAX_AGE_SECONDS)
    from hermes_conversation import session_end_hooks  # noqa: PLC0415 - most have no consumers

    consumers = _WithShellHooks(hermes_plugin_host.active(), session_end_hooks.end_callback(db))
    return Delivery(db.boundaries, consumers)


def deliver_due(db: SessionDB) -> None:
    """Deliver all due boundaries; without plugins and hooks nothing is imported."""
    if has_consumers():
        make_delivery(db).deliver_due()


class _WithShellHooks:
    """The callbacks of plugins, and one that runs the SessionEnd hooks."""

    def __init__(self, manager: PluginManager, callback: Callback) -> None:
        self._manager = manager
        self._callback = callback

    def callbacks(self, hook: str) -> list[Callback]:
        """The callbacks of a hook."""
        own = [self._callback] if hook == self._callback.hook else []
        return [*self._manager.callbacks(hook), *own]
