"""Terminal formatting of tiers, bars and lines of the achievement commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from hermes_core import human_format
from hermes_core.command_name import with_command_name
from hermes_core.terminal_text import clean, fit, one_line, pad, width

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation.snapshot import (
        AchievementView,
        AnnouncedUnlock,
        Announcement,
    )
    from hermes_cli.output import CommandOutput

    Piece = tuple[str, str]  # text and style

STAR_SIGN: Final = "★"
MAX_NAMED: Final = 5
NAMED_OF_MANY: Final = 3  # if there are more; the others are only counted
TIER_ORDER: Final = ("aether", "gold", "silver", "bronze", "clay")


def notice_text(announcement: Announcement) -> str:
    """The text of an announcement; empty if nothing is new.

    The first scan of a long history finds many at once; then only the number is shown.
    """
    unlocks = announcement["unlocks"]
    count = int(announcement["count"])
    if not count:
        return ""
    if announcement["is_first_scan"] and count > MAX_NAMED:
        earned = human_format.plural(count, "achievement")
        return with_command_name(
            f"{STAR_SIGN} {earned} in your history. See `hermes achievements`."
        )
    best = sorted(unlocks, key=_rank)[: MAX_NAMED if count <= MAX_NAMED else NAMED_OF_MANY]
    names = ", ".join(map(_unlock_text, best))
    if count == 1:
        return f"{STAR_SIGN} Achievement: {names}"
    rest = f" and {human_format.number(count - len(best))} more" if count > len(best) else ""
    return f"{STAR_SIGN} {human_format.plural(count, 'achievement')}: {names}{rest}"


def _rank(unlock: AnnouncedUnlock) -> int:
    """The place of an unlock: the highest tiers are named first."""
    tier = unlock["tier"]
    return TIER_ORDER.index(tier) if tier in TIER_ORDER else len(TIER_ORDER)


def _unlock_text(unlock: AnnouncedUnlock) -> str:
    return f"{one_line(unlock['name'])} ({unlock['tier'].capitalize()})"


EARNED_SIGN: Final = "◆"
OPEN_SIGN: Final = "◇"
DEFAULT_COLUMNS: Final = 80
MAX_BAR_CELLS: Final = 24
MIN_BAR_CELLS: Final = 6
MAX_NAME_CELLS: Final = 28
MIN_NAME_CELLS: Final = 12
LIGHT_BACKGROUNDS: Final = ("7", "15")


class Tiers:
    """The names and colours of tiers."""

    def __init__(self, catalogue: Catalogue) -> None:
        is_light = os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT_BACKGROUNDS
        self.ids = [tier.id for tier in catalogue.tiers]
        self._names = {tier.id: tier.name for tier in catalogue.tiers}
        self._styles = {tier.id: tier.colour if is_light else tier.glow for tier in catalogue.tiers}
        self.widest = max(width(name) for name in self._names.values())

    def name(self, tier: str | None) -> str:
        """The name of a tier; '' without one."""
        return self._names.get(tier or "", "")

    def style(self, tier: str | None) -> str:
        """The colour of a tier; dim without one."""
        return self._styles.get(tier or "", "dim")

    def cell(self, tier: str | None, *, is_held: bool = True) -> Piece:
        """Medal and name, padded to the widest."""
        medal = EARNED_SIGN if is_held else OPEN_SIGN
        return pad(f"{medal} {self.name(tier)}", self.widest + 2), self.style(tier)


def print_line(out: CommandOutput, *pieces: Piece) -> None:
    """Print one line, cut to the width of the terminal."""
    left = out.columns
    shown: list[Piece] = []
    for text, style in pieces:
        harmless = clean(text).replace("\n", " ")
        if left is not None:
            harmless = fit(harmless, left)
            left -= width(harmless)
        shown.append((harmless, style))
    out.styled(*shown)


def bar(percent: float, cells: int, style: str = "") -> tuple[Piece, Piece]:
    """A progress bar; empty only at 0 and full only at 100 percent."""
    full = int(cells * percent // 100)
    if percent > 0:
        full = max(1, full)
    return ("━" * full, style), ("─" * (cells - full), "dim")


def bar_cells(out: CommandOutput, others: int, most: int = MAX_BAR_CELLS) -> int:
    """The length of a bar beside *others* cells of text."""
    left = (out.columns or DEFAULT_COLUMNS) - others
    return max(MIN_BAR_CELLS, min(most, left))


def name_cells(out: CommandOutput, names: Iterable[str]) -> int:
    """The width of a column of names."""
    most = max(MIN_NAME_CELLS, min(MAX_NAME_CELLS, (out.columns or DEFAULT_COLUMNS) - 52))
    return min(most, max((width(one_line(name)) for name in names), default=0))


def print_packed(out: CommandOutput, pieces: Iterable[Piece], gap: str) -> None:
    """Print pieces side by side, wrapped into lines."""
    row: list[Piece] = []
    used = 0
    for piece in pieces:
        if row and out.columns is not None and used + width(gap + piece[0]) > out.columns:
            print_line(out, *row)
            row, used = [], 0
        row += [(gap, ""), piece] if row else [piece]
        used = sum(width(text) for text, _ in row)
    print_line(out, *row)


def cell(text: str, cells: int, *, right: bool = False) -> str:
    """*text* padded or cut to exactly so many cells."""
    return pad(fit(one_line(text), cells), cells, right=right)


def amount_text(one: AchievementView) -> str:
    """The progress in the unit of the achievement: '1,234 / 5,000 tool calls'."""
    reached = human_format.number(one["progress"])
    if one["next_threshold"] is None:
        return f"{reached} {one['unit']}"
    return f"{reached} / {human_format.number(one['next_threshold'])} {one['unit']}"
