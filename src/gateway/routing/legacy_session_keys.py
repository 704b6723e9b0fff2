"""The older, untagged form of session keys, which existing histories use.

    agent:<namespace>:<platform>:<chat type>[:<chat>][:<thread>][:<user>]

The form does not identify the parts, and an ID may contain ':'. Parsing therefore returns
every place with this legacy key. The known formats of a platform's IDs reduce the number;
the caller resolves the rest.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.errors import KeyFormatError
from hermes_core.session_keys import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator

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
