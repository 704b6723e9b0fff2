"""Hands a conversation to a chat platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_state.store import SessionDB

HANDOFF_WAIT_SECONDS: Final = 2.5  # a running gateway looks every second


def hand_off(db: SessionDB, session_id: str, platform: str) -> str:
    """Hand a conversation to a platform; what came of it. A running gateway does it at once."""
    require_set_up(platform)
    if not db.handoffs.request_handoff(session_id, platform):
        raise UsageError("A hand-off is already pending.")
    handoff = db.handoffs.wait(session_id, HANDOFF_WAIT_SECONDS)
    if handoff is not None and handoff.state == "failed":
        raise UsageError(f"The conversation was not handed off. {handoff.error}")
    if handoff is not None and handoff.state == "completed":
        return f"Handed off to {platform.capitalize()}."
    return (
        f"Handed off to {platform.capitalize()}; the gateway will pick it up once it is running "
        "(`hermes gateway start`)."
    )


def require_set_up(platform: str) -> None:
    """Raise UsageError if a platform needs a key and has neither that nor other settings."""
    config = ConfigFile.of_home()
    names = {f"keys.{platform.lower()}", f"keys.{platform.lower()}_bot"}
    keys = [setting.name for setting in SETTINGS if setting.name in names]
    if not keys or platform in config.block("platforms") or any(map(config.secret, keys)):
        return
    raise UsageError(
        f"{platform.capitalize()} is not set up. Run `hermes gateway add {platform.lower()}`."
    )
