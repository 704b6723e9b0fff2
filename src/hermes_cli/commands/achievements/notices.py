"""New achievements in one line, for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_core import human_format
from hermes_core.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

STAR: Final = "★"
NAMED: Final = 5  # more than so many are not all named


def notice_of(announcement: Mapping[str, Any]) -> str:
    """What to say of an announcement; nothing where nothing is new.

    The first scan of a long history finds many at once: then their number is enough.
    """
    unlocks = announcement["unlocks"]
    count = int(announcement["count"])
    if not count:
        return ""
    if announcement["is_first_scan"] and count > NAMED:
        earned = human_format.plural(count, "achievement")
        return f"{STAR} Your history has earned {earned}; see `hermes achievements`"
    names = ", ".join(_named(one) for one in unlocks[:NAMED])
    if count == 1:
        return f"{STAR} Achievement: {names}"
    rest = f" and {human_format.number(count - NAMED)} more" if count > NAMED else ""
    return f"{STAR} {human_format.plural(count, 'achievement')}: {names}{rest}"


def _named(unlock: Mapping[str, Any]) -> str:
    return f"{one_line(unlock['name'])} ({unlock['tier'].capitalize()})"
