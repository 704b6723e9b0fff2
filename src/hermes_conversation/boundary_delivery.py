"""Delivers the boundaries of sessions to plugins, and their ends to shell hooks (SessionEnd)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hermes_plugin_host
from hermes_agent.project.trust import assess_project
from hermes_agent.shell_hooks.config import MAX_TIMEOUT_SECONDS
from hermes_agent.shell_hooks.events import END_REASONS
from hermes_agent.shell_hooks.invoker import HookRunner
from hermes_agent.shell_hooks.transcripts import Transcripts
from hermes_conversation.command_environment import environment_without_secrets
from hermes_conversation.shell_hooks import load_hooks
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.paths import TRUST_FILE, hermes_home
from hermes_plugin_host.callbacks import Callback
from hermes_plugin_host.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.json_values import JsonObject
    from hermes_plugin_host.callbacks import CallbackResult
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

    consumers = _WithShellHooks(hermes_plugin_host.active(), end_callback(db))
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


PLUGIN_NAME: Final = "shell hooks"  # under which deliveries are recorded
FINALIZE: Final = "on_session_finalize"


@dataclass
class _SlowCallback(Callback):
    """A callback whose commands have time limits of their own."""

    def call(
        self, facts: Mapping[str, Any], timeout_seconds: float = MAX_TIMEOUT_SECONDS
    ) -> CallbackResult:
        """Call it with the time that commands may take."""
        return super().call(facts, max(timeout_seconds, MAX_TIMEOUT_SECONDS))


def end_callback(db: SessionDB) -> Callback:
    """Runs the SessionEnd hooks of a session that has ended."""

    def session_ended(session_id: str, **_facts: Any) -> None:
        row, now = db.sessions.find(session_id), db.clock.now()
        if row is None or (row.ended_at or now) < now - MAX_AGE_SECONDS:
            return
        cwd = Path(row.cwd) if row.cwd and Path(row.cwd).is_dir() else Path.home()
        trust = assess_project(cwd) if row.cwd else None
        hooks = load_hooks(ConfigFile.of_home(), trust)
        if hooks.has("SessionEnd"):
            reason = END_REASONS.get(row.end_reason or "", "other")
            runner = HookRunner(hooks, cwd, environment_without_secrets(), Transcripts(db))
            fields: JsonObject = {"reason": reason, "hermes_reason": row.end_reason}
            try:
                runner.run("SessionEnd", session_id, fields, reason)
            finally:
                runner.close()

    return _SlowCallback(PLUGIN_NAME, FINALIZE, session_ended)
