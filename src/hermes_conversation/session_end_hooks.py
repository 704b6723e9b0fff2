"""The SessionEnd hooks of a conversation, as a consumer of the boundaries of sessions.

The command of a hook is a consumer like the callback of a plugin: it is called at least once,
also after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.project.trust import assess_project
from hermes_agent.shell_hooks.config import MAX_TIMEOUT_SECONDS
from hermes_agent.shell_hooks.events import END_REASONS
from hermes_agent.shell_hooks.invoker import HookRunner
from hermes_agent.shell_hooks.transcripts import Transcripts
from hermes_conversation.boundary_delivery import MAX_AGE_SECONDS
from hermes_conversation.command_environment import environment_without_secrets
from hermes_conversation.shell_hooks import load_hooks
from hermes_core.config.file import ConfigFile
from hermes_plugin_host.callbacks import Callback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.json_values import JsonObject
    from hermes_plugin_host.callbacks import CallbackResult
    from hermes_state.store import SessionDB

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
