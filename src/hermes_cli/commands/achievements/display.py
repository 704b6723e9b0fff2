"""Terminal formatting of tiers, bars and lines of the achievement commands."""

from __future__ import annotations

import os
import shlex
import textwrap
from typing import TYPE_CHECKING, Final

from hermes_achievements.evaluation.standings import SECRET
from hermes_cli.commands.achievements import report
from hermes_core import human_format
from hermes_core.command_name import command_name, with_command_name
from hermes_core.errors import UsageError
from hermes_core.terminal_text import clean, fit, one_line, pad, width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation import snapshot
    from hermes_cli.commands.achievements.report import AchievementReport
    from hermes_cli.output import CommandOutput

    Piece = tuple[str, str]  # text and style


STAR_SIGN: Final = "★"
MAX_NAMED: Final = 5
NAMED_OF_MANY: Final = 3  # if there are more; the others are only counted
TIER_ORDER: Final = ("aether", "gold", "silver", "bronze", "clay")


def notice_text(announcement: snapshot.Announcement) -> str:
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


def _rank(unlock: snapshot.AnnouncedUnlock) -> int:
    """The place of an unlock: the highest tiers are named first."""
    tier = unlock["tier"]
    return TIER_ORDER.index(tier) if tier in TIER_ORDER else len(TIER_ORDER)


def _unlock_text(unlock: snapshot.AnnouncedUnlock) -> str:
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


def amount_text(one: snapshot.AchievementView) -> str:
    """The progress in the unit of the achievement: '1,234 / 5,000 tool calls'."""
    reached = human_format.number(one["progress"])
    if one["next_threshold"] is None:
        return f"{reached} {one['unit']}"
    return f"{reached} / {human_format.number(one['next_threshold'])} {one['unit']}"


MAX_PROSE_COLUMNS: Final = 100
MAX_SUGGESTIONS: Final = 3


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print one achievement."""
    with report.open_report(out) as look:
        achievement = find_achievement(look, arguments.id)
        if arguments.json:
            out.json(report.public_fields(achievement))
        elif achievement["state"] == SECRET:
            _print_secret(achievement, out)
        else:
            _print(achievement, look, out)
    return 0


def find_achievement(look: AchievementReport, wanted: str) -> snapshot.AchievementView:
    """Find an achievement by ID or name; a secret one only by its ID."""
    shown = look.snapshot["achievements"]
    for item in shown:
        if wanted == item["id"] or (item["state"] != SECRET and _is_name(item, wanted)):
            return item
    from hermes_conversation import achievements  # noqa: PLC0415 - only for what is not there

    if wanted in achievements.hidden_ids():
        raise UsageError(
            f"'{wanted}' is hidden. "
            f"Show it with `hermes achievements unhide {shlex.quote(wanted)}`."
        )
    proposals = suggestions(wanted, [item["id"] for item in shown])
    raise UsageError(f"Unknown achievement '{wanted}'.{proposals} See `hermes achievements list`.")


def _is_name(one: snapshot.AchievementView, wanted: str) -> bool:
    return wanted.strip().casefold() == str(one["name"]).casefold()


def suggestions(wanted: str, known: list[str]) -> str:
    """A sentence with similar IDs, or ''."""
    import difflib  # noqa: PLC0415 - only a misspelt id needs it

    near = difflib.get_close_matches(wanted.lower().replace(" ", "-"), known, MAX_SUGGESTIONS)
    return f" Did you mean {', '.join(map(repr, near))}?" if near else ""


def _print_secret(one: snapshot.AchievementView, out: CommandOutput) -> None:
    out.styled(("Secret", "bold"), (f"  {one['id']}", "dim"))
    _prose(one.get("hint", ""), out)
    out.text("The description appears once you make progress towards it.", "dim")


def _print(one: snapshot.AchievementView, look: AchievementReport, out: CommandOutput) -> None:
    tiers = Tiers(look.catalogue)
    style = tiers.style(one["tier"])
    medal = tiers.cell(one["tier"]) if one["tier"] else ("", "")
    print_line(out, *bold(one["name"]), ("  ", ""), medal, (f"  {one['id']}", "dim"))
    _prose(one["description"], out)
    out.text()
    _prose(one["criteria"], out)
    chapters = {category.id: category.name for category in look.catalogue.categories}
    origin = "" if one.get("origin") == "hermes" else f", from the plugin {one.get('origin')}"
    print_line(out, (f"{chapters[one['category']]}: {_kind(one)}{origin}", "dim"))
    out.text()
    percent = one["progress_pct"]
    towards = f" to {tiers.name(one['next_tier'])}" if one["next_tier"] else ", complete"
    said = f"  {percent} %  {amount_text(one)}{towards}"
    print_line(out, *bar(percent, bar_cells(out, len(said)), style), (said, ""))
    out.text()
    steps = {step["tier"]: step for step in one.get("tier_history") or ()}
    for tier in one["tiers"]:
        _print_tier(one, tier, steps.get(tier["name"]), tiers, out)


def bold(text: str) -> tuple[tuple[str, str]]:
    """A bold piece of a line."""
    return ((one_line(text), "bold"),)


def _kind(one: snapshot.AchievementView) -> str:
    from hermes_achievements.catalogue import ACHIEVEMENT_KINDS  # noqa: PLC0415 - `--help` does without

    return ACHIEVEMENT_KINDS.get(one["kind"], str(one["kind"]))


def _print_tier(
    one: snapshot.AchievementView,
    tier: snapshot.TierGoal,
    step: snapshot.TierStep | None,
    tiers: Tiers,
    out: CommandOutput,
) -> None:
    """Print a tier: its threshold, and when and where it was reached."""
    needed = f"  {human_format.number(tier['threshold'])} {one['unit']}"
    medal = tiers.cell(tier["name"], is_held=step is not None)
    if step is None:
        print_line(out, medal, (needed, "dim"))
        return
    print_line(out, medal, (needed, ""), (f"  {human_format.local(step['at'])}", "dim"))
    if step["session_id"] is None:
        return
    indent = " " * (tiers.widest + 4)
    message = "" if step.get("message_id") is None else f"  message {step['message_id']}"
    print_line(out, (f"{indent}{report.conversation_name(step)}", ""))
    if step.get("is_gone"):
        return
    command = f"{command_name()} sessions show {shlex.quote(one_line(step['session_id']))}"
    print_line(out, (indent, ""), (command, "cyan"), (message, "dim"))


def _prose(text: str, out: CommandOutput) -> None:
    """Print text wrapped to the width of the terminal."""
    if out.columns is None:
        out.text(text)
        return
    for part in textwrap.wrap(text, min(out.columns, MAX_PROSE_COLUMNS)):
        out.text(part)
