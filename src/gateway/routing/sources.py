"""The source of a message: platform, chat and sender, and the session key made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from gateway.platforms.names import Platform
from gateway.routing.legacy_session_keys import format_legacy
from hermes_core.session_keys import SessionKey, place

if TYPE_CHECKING:
    from hermes_state.delivery.stored_json import StoredSource

ALWAYS_FIELDS = (
    "chat_id",
    "chat_name",
    "chat_type",
    "user_id",
    "user_name",
    "thread_id",
    "chat_topic",
)
OPTIONAL_FIELDS = (
    "user_id_alt",
    "chat_id_alt",
    "guild_id",
    "parent_chat_id",
    "message_id",
    "profile",
)


@dataclass
class SessionSource:
    """The sender of a message and the chat it was sent to."""

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

    @property
    def description(self) -> str:
        """The chat in a few words, for lists and logs."""
        name = self.chat_name or self.user_name or self.chat_id
        chat = f"{self.chat_type} {name}" if self.chat_type != "dm" else f"direct chat with {name}"
        thread = f", thread {self.thread_id}" if self.thread_id else ""
        return f"{self.platform.value}: {chat}{thread}"

    def to_dict(self) -> StoredSource:
        """The JSON form; temporary grants are left out."""
        data = {"platform": self.platform.value}
        data |= {name: getattr(self, name) for name in ALWAYS_FIELDS}
        data |= {name: getattr(self, name) for name in OPTIONAL_FIELDS if getattr(self, name)}
        return cast("StoredSource", data)

    @classmethod
    def from_dict(cls, data: StoredSource) -> Self:
        """Read the JSON form; the platform may be that of a plugin that is not loaded."""
        fields = {name: _text(data.get(name)) for name in (*ALWAYS_FIELDS, *OPTIONAL_FIELDS)}
        fields["chat_id"] = _text(data.get("chat_id")) or ""
        fields["chat_type"] = _text(data.get("chat_type")) or "dm"
        return cls(platform=Platform.registered(data["platform"]), **fields)  # type: ignore[arg-type]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def place_of(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> SessionKey:
    """The canonical session key of a source."""
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
    """The session key in the text form that files and plugins use.

    Different chats may share it; routes are stored by the canonical key.
    """
    return format_legacy(
        place_of(
            source,
            group_sessions_per_user=group_sessions_per_user,
            thread_sessions_per_user=thread_sessions_per_user,
        )
    )
