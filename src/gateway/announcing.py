"""Telling plugins of boundaries: from their rows, or at once where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hermes_plugin_host
from hermes_core.isolate import Step, attempt
from hermes_plugin_host import delivery

if TYPE_CHECKING:
    from hermes_state import SessionDB


def finalized(session_id: str, platform: str, **more: Any) -> None:
    """A session id will not be written to again."""
    _tell("on_session_finalize", session_id=session_id, platform=platform, **more)


def reset(session_id: str, platform: str) -> None:
    """A place has got a new conversation."""
    _tell("on_session_reset", session_id=session_id, platform=platform)


def _tell(hook: str, **facts: Any) -> None:
    """Call a hook; whatever a plugin does, the gateway goes on."""
    attempt(Step(f"tell plugins: {hook}", lambda: hermes_plugin_host.invoke_hook(hook, **facts)))


def deliver(db: SessionDB) -> None:
    """Tell plugins what stands in the store and was not told yet."""
    attempt(Step("deliver boundaries", lambda: delivery.deliver_due(db)))
