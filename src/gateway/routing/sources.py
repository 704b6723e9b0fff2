"""Where messages come from, the conversation of each place, and keys of older releases."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

from gateway import config_values
from gateway.config import Platform
from hermes_core.config.file import ConfigFile
from hermes_core.errors import KeyFormatError
from hermes_core.session_keys import SessionKey, place
from hermes_core.time_zones import find_zone
from hermes_state.delivery.routes import Route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from hermes_core.policy import Expiry, ResetPolicy
    from hermes_state.delivery.rows import StoredRoute, StoredSource
    from hermes_state.engine.values import SqlValue


LEGACY_PREFIX = "agent"

_COLON_FREE_PLATFORMS = frozenset(
    {"telegram", "discord", "slack", "mattermost", "whatsapp", "google_chat", "sms"}
)
_MATRIX_SERVER = r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"

_DM_ROLES = (("chat",), ("chat", "thread"))
_GROUP_ROLES = (("chat",), ("chat", "thread"), ("chat", "user"), ("chat", "thread", "user"))
_CHATLESS_DM_ROLES = (("user",), ("user", "thread"), ("thread",))
_CHATLESS_GROUP_ROLES = (("user",), ("thread",), ("thread", "user"))


class IdPatterns(NamedTuple):
    """Patterns for the complete IDs of a platform."""

    chat: str = r".+"
    thread: str = r".+"
    user: str = r".+"


COLON_FREE_IDS = IdPatterns(r"[^:]+", r"[^:]+", r"[^:]+")
MATRIX_IDS = IdPatterns(
    chat=rf"[!#][^:]+(?::{_MATRIX_SERVER})?",
    thread=rf"\$[^:]+(?::{_MATRIX_SERVER})?",
    user=rf"@[^:]*:{_MATRIX_SERVER}",
)
ANY_IDS = IdPatterns()


class LegacyReading(NamedTuple):
    """All places that a legacy key may mean, most likely first."""

    text: str
    places: tuple[SessionKey, ...]

    @property
    def is_ambiguous(self) -> bool:
        """Whether several places match."""
        return len(self.places) > 1

    @property
    def certain(self) -> SessionKey | None:
        """The place, if only one matches."""
        return None if self.is_ambiguous else self.places[0]


def format_legacy(key: SessionKey) -> str:
    """The legacy form of *key*, which different places may share."""
    ids = [key.chat_id, key.thread_id, key.user_id]
    if key.chat_type == "dm":
        ids = [key.chat_id or key.user_id, key.thread_id]
    fixed = [LEGACY_PREFIX, key.namespace, key.platform, key.chat_type]
    return ":".join(fixed + [part for part in ids if part])


def parse_legacy(
    text: str, id_patterns: IdPatterns | None = None, *, may_lack_chat: bool = False
) -> LegacyReading:
    """Every place whose legacy form is *text*.

    *id_patterns* replaces the known ID patterns of the platform. Places without a chat ID are
    rare and would make every key ambiguous, so they are considered only if nothing else
    matches or *may_lack_chat* is set.
    """
    prefix, *head = text.split(":", 4)
    if prefix != LEGACY_PREFIX or len(head) < 3 or not all(head[:3]):
        raise KeyFormatError(f"{text!r} is not a session key of the form agent:...")
    bare = SessionKey(*head[:3])
    if len(head) == 3:
        return LegacyReading(text, (bare,))
    patterns = id_patterns or _patterns_of(bare.platform)
    places = list(_readings(bare, head[3], patterns, _roles(bare, has_chat=True)))
    if may_lack_chat or not places:
        places += _readings(bare, head[3], patterns, _roles(bare, has_chat=False))
    if not places:
        raise KeyFormatError(
            f"{text!r} cannot be read: {head[3]!r} does not look like ids of {bare.platform}."
        )
    return LegacyReading(text, tuple(places))


def _patterns_of(platform: str) -> IdPatterns:
    if platform == "matrix":
        return MATRIX_IDS
    return COLON_FREE_IDS if platform in _COLON_FREE_PLATFORMS else ANY_IDS


def _roles(bare: SessionKey, *, has_chat: bool) -> tuple[tuple[str, ...], ...]:
    if bare.chat_type == "dm":
        return _DM_ROLES if has_chat else _CHATLESS_DM_ROLES
    return _GROUP_ROLES if has_chat else _CHATLESS_GROUP_ROLES


def _readings(
    bare: SessionKey, ids: str, id_patterns: IdPatterns, roles: tuple[tuple[str, ...], ...]
) -> Iterator[SessionKey]:
    patterns = id_patterns._asdict()
    for names in roles:
        for parts in _splits(ids, len(names)):
            ids_by_role = dict(zip(names, parts, strict=True))
            if all(
                re.fullmatch(patterns[name], part, re.DOTALL) for name, part in ids_by_role.items()
            ):
                yield SessionKey(
                    bare.namespace,
                    bare.platform,
                    bare.chat_type,
                    chat_id=ids_by_role.get("chat"),
                    thread_id=ids_by_role.get("thread"),
                    user_id=ids_by_role.get("user"),
                )


def _splits(text: str, count: int) -> Iterator[list[str]]:
    """All ways to split *text* at colons into *count* non-empty pieces."""
    colons = [index for index, character in enumerate(text) if character == ":"]
    for positions in combinations(colons, count - 1):
        starts = [0, *(index + 1 for index in positions)]
        ends = [*positions, len(text)]
        pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        if all(pieces):
            yield pieces


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


log = logging.getLogger(__name__)


def key_of_entry(entry: SessionEntry) -> str:
    """The canonical key of an entry that only has the text form; else the text itself."""
    try:
        certain = parse_legacy(entry.session_key).certain
    except KeyFormatError:
        certain = None
    return certain.encode() if certain else entry.session_key


def to_route(entry: SessionEntry) -> Route:
    """The route of an entry."""
    return Route(
        entry.place or key_of_entry(entry),
        entry.session_key,
        entry.session_id,
        entry.updated_at.timestamp(),
        entry.to_dict(),
    )


def to_entry(route: Route) -> SessionEntry | None:
    """The entry of a route; None if it is unreadable."""
    try:
        entry = SessionEntry.from_dict(route.entry)
    except (TypeError, ValueError, KeyError) as error:
        log.warning("route %s ignored: %s", route.session_key, error)
        return None
    entry.place = route.place
    return entry


def successor(entry: SessionEntry, session_id: str, now: datetime) -> SessionEntry:
    """The entry of the same chat with another conversation."""
    return SessionEntry(
        entry.session_key,
        session_id,
        now,
        now,
        origin=entry.origin,
        display_name=entry.display_name,
        platform=entry.platform,
        chat_type=entry.chat_type,
        prev_session_id=entry.session_id,
        place=entry.place,
    )


def row_fields(entry: SessionEntry) -> dict[str, SqlValue]:
    """The columns of a conversation that describe its chat."""
    origin = entry.origin
    return {
        "session_key": entry.session_key,
        "chat_type": entry.chat_type,
        "display_name": entry.display_name,
        "chat_id": origin.chat_id if origin else None,
        "thread_id": origin.thread_id if origin else None,
        "user_id": origin.user_id if origin else None,
    }


STORED_ACTIVITY: Final = timedelta(seconds=5)  # that of shorter turns is stored at their start


def expiry_reason(
    entry: SessionEntry,
    policy: ResetPolicy,
    now: datetime | None = None,
    zone: ZoneInfo | None = None,
) -> Expiry | None:
    """Why the conversation has expired: `idle` or `daily`; None if it has not."""
    if policy.mode == "none":
        return None
    last_active, current = entry.updated_at.astimezone(UTC), now or datetime.now(UTC)
    return policy.expired(last_active, current, zone or user_zone())


def user_zone() -> ZoneInfo:
    """The configured time zone of the user."""
    return find_zone(ConfigFile.of_home().settings().get_str("display.timezone"))


NUMBER_FIELDS: Final = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens",
    "last_prompt_tokens",
)  # fmt: skip
FLAG_FIELDS: Final = (
    "was_auto_reset", "reset_had_activity", "is_fresh_reset", "expiry_finalized", "suspended",
    "resume_pending",
)  # fmt: skip
TEXT_FIELDS: Final = ("display_name", "auto_reset_reason", "resume_reason", "prev_session_id")
PATH_LIKE: Final = re.compile(r"\.\.|[/\\]|^[A-Za-z]:")


@dataclass
class SessionEntry:
    """A chat and its conversation; times are local and naive."""

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
    )  # the canonical key; empty if only the text form is known

    def end_turn(self, now: datetime) -> bool:
        """Note the end of a turn; whether to store it, because expiry may depend on it.

        The start of the turn is stored, which will do for a short one, unless the clock was set
        back or, in another minute, a daily reset may have been due meanwhile.
        """
        start, self.updated_at = self.updated_at, now
        is_short = timedelta(0) <= now - start < STORED_ACTIVITY
        return not is_short or start.minute != now.minute

    def to_dict(self) -> StoredRoute:
        """The JSON form."""
        resumed_at = self.last_resume_marked_at
        data: StoredRoute = {
            "session_key": self.session_key,
            "session_id": self.session_id,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "platform": self.platform.value if self.platform else None,
            "chat_type": self.chat_type,
            "estimated_cost_usd": self.estimated_cost_usd,
            "cost_status": self.cost_status,
            "last_resume_marked_at": resumed_at.isoformat() if resumed_at else None,
        }
        names = (*NUMBER_FIELDS, *FLAG_FIELDS, *TEXT_FIELDS)
        data.update(cast("StoredRoute", {name: getattr(self, name) for name in names}))
        if self.origin is not None:
            data["origin"] = self.origin.to_dict()
        if self.place:
            data["place"] = self.place
        return data

    @classmethod
    def from_dict(cls, data: StoredRoute) -> Self:
        """Read the JSON form; ValueError for an invalid session key or ID."""
        session_key, session_id = str(data["session_key"]), str(data["session_id"])
        if PATH_LIKE.search(session_id) or not session_id:
            raise ValueError(f"{session_id!r} is not a valid session ID")
        if ".." in session_key or "\\" in session_key or not session_key:
            raise ValueError(f"{session_key!r} is not a valid session key")
        stored_origin = data.get("origin")
        origin: StoredSource = stored_origin if isinstance(stored_origin, dict) else {}
        has_origin = _stored_platform(origin.get("platform")) is not None
        resumed_at = data.get("last_resume_marked_at")
        fields: dict[str, Any] = {
            name: config_values.number(data.get(name), 0) for name in NUMBER_FIELDS
        }
        fields |= {name: config_values.flag(data.get(name), default=False) for name in FLAG_FIELDS}
        fields |= {name: config_values.text(data.get(name)) or None for name in TEXT_FIELDS}
        fields["expiry_finalized"] |= config_values.flag(data.get("memory_flushed"), default=False)
        return cls(
            session_key,
            session_id,
            datetime.fromisoformat(str(data["created_at"])),
            datetime.fromisoformat(str(data["updated_at"])),
            origin=SessionSource.from_dict(origin) if has_origin else None,
            platform=_stored_platform(data.get("platform")),
            chat_type=config_values.text(data.get("chat_type"), "dm"),
            estimated_cost_usd=config_values.fraction(data.get("estimated_cost_usd"), 0.0),
            cost_status=config_values.text(data.get("cost_status"), "unknown"),
            last_resume_marked_at=datetime.fromisoformat(str(resumed_at)) if resumed_at else None,
            place=config_values.text(data.get("place")),
            **fields,
        )


def _stored_platform(name: object) -> Platform | None:
    """A platform by its stored name, also of a plugin that is not loaded; None if it is invalid."""
    try:
        return Platform.registered(str(name)) if name else None
    except ValueError:
        return None


def local_now() -> datetime:
    """The local time without a zone, as entries store it."""
    return datetime.now()  # noqa: DTZ005 - naive by format
