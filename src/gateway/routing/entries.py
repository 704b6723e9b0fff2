"""What the gateway notes about a place: its conversation, and what was done to it lately."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from gateway import config_values
from gateway.config import Platform, known_platform
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from hermes_core.policy import Expiry, ResetPolicy
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from gateway.config import SessionResetPolicy


def expiry_reason(
    entry: SessionEntry,
    policy: SessionResetPolicy,
    now: datetime | None = None,
    zone: ZoneInfo | None = None,
) -> Expiry | None:
    """Why the conversation is over: `idle` or `daily`; None while it is not."""
    if policy.mode == "none":
        return None
    rule = ResetPolicy(policy.mode, policy.at_hour, policy.idle_minutes)
    last, present = entry.updated_at.astimezone(UTC), now or datetime.now(UTC)
    return rule.expired(last, present, zone or user_zone())


def user_zone() -> ZoneInfo:
    """The zone in which the user's days begin."""
    return find_zone(ConfigFile.of_home().settings().get_str("display.timezone"))


NUMBERS: Final = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens",
    "last_prompt_tokens",
)  # fmt: skip
FLAGS: Final = (
    "was_auto_reset", "reset_had_activity", "is_fresh_reset", "expiry_finalized", "suspended",
    "resume_pending",
)  # fmt: skip
TEXTS: Final = ("display_name", "auto_reset_reason", "resume_reason", "prev_session_id")
PATH_LIKE: Final = re.compile(r"\.\.|[/\\]|^[A-Za-z]:")


@dataclass
class SessionEntry:
    """A place and its conversation; moments are of the local clock, without a zone."""

    session_key: str
    session_id: str
    created_at: datetime
    updated_at: datetime
    origin: SessionSource | None = None
    display_name: str | None = None
    platform: Platform | None = None
    chat_type: str = "dm"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    total_tokens: int = 0
    estimated_cost_usd: float = 0.0
    cost_status: str = "unknown"
    last_prompt_tokens: int = 0
    was_auto_reset: bool = False
    auto_reset_reason: str | None = None
    reset_had_activity: bool = False
    is_fresh_reset: bool = False
    expiry_finalized: bool = False
    suspended: bool = False
    resume_pending: bool = False
    resume_reason: str | None = None
    last_resume_marked_at: datetime | None = None
    prev_session_id: str | None = None
    place: str = field(
        default="", repr=False
    )  # the canonical key; empty where only a text is known

    def to_dict(self) -> dict[str, Any]:
        """As it is written down."""
        marked = self.last_resume_marked_at
        found: dict[str, Any] = {
            "session_key": self.session_key,
            "session_id": self.session_id,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "platform": self.platform.value if self.platform else None,
            "chat_type": self.chat_type,
            "estimated_cost_usd": self.estimated_cost_usd,
            "cost_status": self.cost_status,
            "last_resume_marked_at": marked.isoformat() if marked else None,
        }
        found |= {name: getattr(self, name) for name in (*NUMBERS, *FLAGS, *TEXTS)}
        if self.origin is not None:
            found["origin"] = self.origin.to_dict()
        if self.place:
            found["place"] = self.place
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """As it was written down; ValueError where it cannot be a place or a conversation."""
        session_key, session_id = str(data["session_key"]), str(data["session_id"])
        if PATH_LIKE.search(session_id) or not session_id:
            raise ValueError(f"{session_id!r} looks like a path, not like a conversation")
        if ".." in session_key or "\\" in session_key or not session_key:
            raise ValueError(f"{session_key!r} looks like a path, not like a place")
        origin = data.get("origin")
        known = isinstance(origin, dict) and known_platform(origin.get("platform")) is not None
        marked = data.get("last_resume_marked_at")
        facts: dict[str, Any] = {name: config_values.number(data.get(name), 0) for name in NUMBERS}
        facts |= {name: config_values.flag(data.get(name), default=False) for name in FLAGS}
        facts |= {name: config_values.text(data.get(name)) or None for name in TEXTS}
        facts["expiry_finalized"] |= config_values.flag(data.get("memory_flushed"), default=False)
        return cls(
            session_key,
            session_id,
            datetime.fromisoformat(str(data["created_at"])),
            datetime.fromisoformat(str(data["updated_at"])),
            origin=SessionSource.from_dict(origin) if known and origin else None,
            platform=known_platform(data.get("platform")),
            chat_type=config_values.text(data.get("chat_type"), "dm"),
            estimated_cost_usd=config_values.fraction(data.get("estimated_cost_usd"), 0.0),
            cost_status=config_values.text(data.get("cost_status"), "unknown"),
            last_resume_marked_at=datetime.fromisoformat(str(marked)) if marked else None,
            place=config_values.text(data.get("place")),
            **facts,
        )
