"""Where a message comes from, and the key of that place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from gateway.platforms.names import Platform
from hermes_core.legacy_session_keys import legacy_text
from hermes_core.session_keys import SessionKey, place

ALWAYS = ("chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic")
IF_SET = ("user_id_alt", "chat_id_alt", "guild_id", "parent_chat_id", "message_id", "profile")


@dataclass
class SessionSource:
    """Who wrote, and where."""

    platform: Platform
    chat_id: str
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    chat_id_alt: str | None = None
    is_bot: bool = False
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    role_authorized: bool = False
    profile: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it is written down; what was granted for the moment is not."""
        found = {"platform": self.platform.value}
        found |= {name: getattr(self, name) for name in ALWAYS}
        return found | {name: getattr(self, name) for name in IF_SET if getattr(self, name)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """As it was written down."""
        facts = {name: _text(data.get(name)) for name in (*ALWAYS, *IF_SET)}
        facts["chat_id"] = facts["chat_id"] or ""
        facts["chat_type"] = facts["chat_type"] or "dm"
        return cls(platform=Platform(data["platform"]), **facts)  # type: ignore[arg-type]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def place_of(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> SessionKey:
    """The place a source belongs to."""
    return place(
        source.platform.value,
        source.chat_type,
        namespace=source.profile or "main",
        chat_id=source.chat_id,
        thread_id=source.thread_id,
        user_id=source.user_id,
        user_id_alt=source.user_id_alt,
        group_sessions_per_user=group_sessions_per_user,
        thread_sessions_per_user=thread_sessions_per_user,
    )


def build_session_key(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> str:
    """The key of a place in the form that files and plugins know.

    Different places may share it; underneath, routes are kept by the canonical key.
    """
    return legacy_text(
        place_of(
            source,
            group_sessions_per_user=group_sessions_per_user,
            thread_sessions_per_user=thread_sessions_per_user,
        )
    )
