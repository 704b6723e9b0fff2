"""The older, untagged form of session keys, which histories on disk are full of.

    agent:<namespace>:<platform>:<chat type>[:<chat>][:<thread>][:<user>]

The form does not say which part is which, and an id may itself contain ':'. Reading
therefore gives every place that would have been written that way. What is known of
a platform's ids narrows it down; what remains is for the caller to settle.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.errors import KeyFormatError
from hermes_core.session_keys import SessionKey

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "agent"

_COLON_FREE_PLATFORMS = frozenset(
    {"telegram", "discord", "slack", "mattermost", "whatsapp", "google_chat", "sms"}
)
_MATRIX_SERVER = r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"

_DM_ROLES = (("chat",), ("chat", "thread"))
_GROUP_ROLES = (("chat",), ("chat", "thread"), ("chat", "user"), ("chat", "thread", "user"))
_CHATLESS_DM_ROLES = (("user",), ("user", "thread"), ("thread",))
_CHATLESS_GROUP_ROLES = (("user",), ("thread",), ("thread", "user"))


class IdShapes(NamedTuple):
    """What the ids of a platform look like, as patterns for the whole id."""

    chat: str = r".+"
    thread: str = r".+"
    user: str = r".+"


COLON_FREE = IdShapes(r"[^:]+", r"[^:]+", r"[^:]+")
MATRIX = IdShapes(
    chat=rf"[!#][^:]+(?::{_MATRIX_SERVER})?",
    thread=rf"\$[^:]+(?::{_MATRIX_SERVER})?",
    user=rf"@[^:]*:{_MATRIX_SERVER}",
)
ANYTHING = IdShapes()


class LegacyReading(NamedTuple):
    """All places that a legacy key may mean, the likeliest first."""

    text: str
    places: tuple[SessionKey, ...]

    @property
    def is_ambiguous(self) -> bool:
        """Whether the text alone cannot tell which place is meant."""
        return len(self.places) > 1

    @property
    def certain(self) -> SessionKey | None:
        """The place, when there is only one that fits."""
        return None if self.is_ambiguous else self.places[0]


def legacy_text(key: SessionKey) -> str:
    """The legacy spelling of *key*. Different places may share one: see the module."""
    ids = [key.chat_id, key.thread_id, key.user_id]
    if key.chat_type == "dm":
        ids = [key.chat_id or key.user_id, key.thread_id]
    fixed = [PREFIX, key.namespace, key.platform, key.chat_type]
    return ":".join(fixed + [part for part in ids if part])


def parse_legacy(
    text: str, shapes: IdShapes | None = None, *, may_lack_chat: bool = False
) -> LegacyReading:
    """Every place whose legacy spelling is *text*.

    *shapes* replaces what is known of the platform's ids. Places without a chat id
    hardly exist and would make every key ambiguous, so they are considered only
    when nothing else fits or *may_lack_chat* is set.
    """
    prefix, *head = text.split(":", 4)
    if prefix != PREFIX or len(head) < 3 or not all(head[:3]):
        raise KeyFormatError(f"{text!r} is not a session key of the form agent:...")
    bare = SessionKey(*head[:3])
    if len(head) == 3:
        return LegacyReading(text, (bare,))
    patterns = shapes or _shapes_of(bare.platform)
    places = list(_readings(bare, head[3], patterns, _roles(bare, has_chat=True)))
    if may_lack_chat or not places:
        places += _readings(bare, head[3], patterns, _roles(bare, has_chat=False))
    if not places:
        raise KeyFormatError(
            f"{text!r} cannot be read: {head[3]!r} does not look like ids of {bare.platform}."
        )
    return LegacyReading(text, tuple(places))


def _shapes_of(platform: str) -> IdShapes:
    if platform == "matrix":
        return MATRIX
    return COLON_FREE if platform in _COLON_FREE_PLATFORMS else ANYTHING


def _roles(bare: SessionKey, *, has_chat: bool) -> tuple[tuple[str, ...], ...]:
    if bare.chat_type == "dm":
        return _DM_ROLES if has_chat else _CHATLESS_DM_ROLES
    return _GROUP_ROLES if has_chat else _CHATLESS_GROUP_ROLES


def _readings(
    bare: SessionKey, ids: str, shapes: IdShapes, roles: tuple[tuple[str, ...], ...]
) -> Iterator[SessionKey]:
    patterns = shapes._asdict()
    for names in roles:
        for parts in _cuts(ids, len(names)):
            found = dict(zip(names, parts, strict=True))
            if all(re.fullmatch(patterns[name], part, re.DOTALL) for name, part in found.items()):
                yield SessionKey(
                    bare.namespace,
                    bare.platform,
                    bare.chat_type,
                    chat_id=found.get("chat"),
                    thread_id=found.get("thread"),
                    user_id=found.get("user"),
                )


def _cuts(text: str, count: int) -> Iterator[list[str]]:
    """All ways to cut *text* at colons into *count* pieces, none of them empty."""
    colons = [index for index, character in enumerate(text) if character == ":"]
    for chosen in combinations(colons, count - 1):
        starts = [0, *(index + 1 for index in chosen)]
        ends = [*chosen, len(text)]
        pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        if all(pieces):
            yield pieces
