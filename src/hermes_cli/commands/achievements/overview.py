"""`hermes achievements`: the overview."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.evaluation import views
from hermes_cli import history
from hermes_cli.commands.achievements import display, report
from hermes_cli.commands.achievements.display import (
    EARNED_SIGN,
    Tiers,
    amount_text,
    bar,
    bar_cells,
    cell,
    name_cells,
    print_line,
    print_packed,
)
from hermes_conversation import achievements
from hermes_core import human_format

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.evaluation.snapshot import AchievementView, TimelineStep
    from hermes_achievements.metrics.tally import Days
    from hermes_achievements.service import HistorySource
    from hermes_cli.commands.achievements.report import AchievementReport
    from hermes_cli.output import CommandOutput


SHOWN_ENTRIES: Final = 5
STEP_FIELDS: Final = (
    "id", "name", "icon", "category", "tier", "value", "at", "session_id", "message_id", "title",
    "is_first",
)  # fmt: skip


class CategoryProgress(NamedTuple):
    """The progress in a category."""

    id: str
    name: str
    unlocked_count: int
    total_count: int


class Streaks(NamedTuple):
    """Consecutive active days; one missed day in any seven is forgiven."""

    current_days: int | None  # None while another process scans the history
    longest_days: int
    active_days: int


def overview(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the overview, or that achievements are disabled."""
    if not achievements.is_enabled():
        if arguments.json:
            out.json({"enabled": False})
        else:
            out.hint(report.DISABLED)
        return 0
    with report.open_report(out) as look:
        if arguments.json:
            out.json(_as_dict(look))
        elif not look.has_history:
            out.text(history.no_history_text())
            waiting = human_format.plural(look.snapshot["total_count"], "achievement")
            out.text(f"{waiting} available; the first one takes a single message.")
        else:
            _print(look, out)
    return 0


def step_as_dict(step: TimelineStep) -> dict[str, object]:
    """A step of the timeline as a dict."""
    return {key: step.get(key) for key in STEP_FIELDS}


def _as_dict(look: AchievementReport) -> dict[str, object]:
    snapshot = look.snapshot
    names = ("unlocked_count", "discovered_count", "secret_count", "total_count", "generated_at")
    return {
        "enabled": True,
        **{name: snapshot.get(name) for name in names},
        "tiers": views.count_by_tier(snapshot, look.catalogue),
        "categories": [item._asdict() for item in _category_progress(look)],
        "streaks": _streaks(look)._asdict(),
        "recent": [step_as_dict(step) for step in views.recent_unlocks(snapshot, SHOWN_ENTRIES)],
        "within_reach": [
            report.public_fields(o) for o in views.closest_achievements(snapshot, SHOWN_ENTRIES)
        ],
    }


def _print(look: AchievementReport, out: CommandOutput) -> None:
    tiers = Tiers(look.catalogue)
    if look.news["count"] and report.wants_notices():
        print_line(out, (display.notice_text(look.news), "yellow"))
        out.text()
    _print_head(look, tiers, out)
    _print_categories(_category_progress(look), out)
    _print_latest(views.recent_unlocks(look.snapshot, SHOWN_ENTRIES), tiers, out)
    _print_nearest(views.closest_achievements(look.snapshot, SHOWN_ENTRIES), tiers, out)
    out.text()
    out.hint("See `hermes achievements list` and `hermes achievements show ID`.", "dim")


def _print_head(look: AchievementReport, tiers: Tiers, out: CommandOutput) -> None:
    unlocked, total = look.snapshot["unlocked_count"], look.snapshot["total_count"]
    secrets = look.snapshot["secret_count"]
    percent = 100 * unlocked / total if total else 0
    left = f"  {human_format.plural(secrets, 'secret')} left" if secrets else ""
    print_line(
        out, ("Achievements", "bold"), (f"  {unlocked} of {total} earned", ""), (left, "dim")
    )
    print_line(out, *bar(percent, bar_cells(out, 7, 48), "green"), (f"  {int(percent)} %", ""))
    held = views.count_by_tier(look.snapshot, look.catalogue)
    medals = [
        (f"{EARNED_SIGN} {held[tier]} {tiers.name(tier)}", tiers.style(tier)) for tier in tiers.ids
    ]
    print_packed(out, medals, "   ")
    streaks = _streaks(look)
    if streaks.active_days:
        longest = human_format.plural(streaks.longest_days, "day")
        active = human_format.plural(streaks.active_days, "active day")
        print_line(out, ("Streak ", "bold"), (f" {_current_text(streaks)}longest {longest}", ""),
             (f"  {active} in total", "dim"))  # fmt: skip


def _current_text(streaks: Streaks) -> str:
    current = streaks.current_days
    if current is None:
        return ""
    return f"{human_format.plural(current, 'day')} now, " if current else "none now, "


def _print_categories(chapters: list[CategoryProgress], out: CommandOutput) -> None:
    out.text()
    names = name_cells(out, (chapter.name for chapter in chapters))
    cells = bar_cells(out, names + 16)
    for item in chapters:
        percent = 100 * item.unlocked_count / item.total_count
        style = "yellow" if item.unlocked_count == item.total_count else "cyan"
        counted = f"  {item.unlocked_count:3} of {item.total_count}"
        print_line(
            out, (f"  {cell(item.name, names)}  ", ""), *bar(percent, cells, style), (counted, "")
        )


def _print_latest(steps: list[TimelineStep], tiers: Tiers, out: CommandOutput) -> None:
    if not steps:
        return
    out.text()
    out.text("Latest", "bold")
    now = time.time()
    names = name_cells(out, (step["name"] for step in steps))
    ages = [human_format.ago(step["at"], now) for step in steps]
    for step, age in zip(steps, ages, strict=True):
        when = cell(age, max(map(len, ages)))
        where = report.conversation_name(step)
        name = f"  {cell(step['name'], names)}  "
        medal = tiers.cell(step["tier"])
        print_line(out, ("  ", ""), medal, (name, ""), (when, "dim"), (f"  {where}", ""))


def _print_nearest(nearest: list[AchievementView], tiers: Tiers, out: CommandOutput) -> None:
    if not nearest:
        return
    out.text()
    out.text("Within reach", "bold")
    names = name_cells(out, (item["name"] for item in nearest))
    amounts = [amount_text(item) for item in nearest]
    cells = bar_cells(out, tiers.widest + names + max(map(len, amounts)) + 16)
    for item, reached in zip(nearest, amounts, strict=True):
        tier, percent = item["next_tier"], item["progress_pct"]
        print_line(out, ("  ", ""), tiers.cell(tier, is_held=False),
             (f"  {cell(item['name'], names)}  ", ""), *bar(percent, cells, tiers.style(tier)),
             (f" {percent:3} %  {reached}", ""))  # fmt: skip


def _category_progress(look: AchievementReport) -> list[CategoryProgress]:
    """The progress of every category with achievements."""
    results = []
    for category in look.catalogue.categories:
        states = [
            achievement["unlocked"]
            for achievement in look.snapshot["achievements"]
            if achievement["category"] == category.id
        ]
        if states:
            results.append(CategoryProgress(category.id, category.name, sum(states), len(states)))
    return results


def _streaks(look: AchievementReport) -> Streaks:
    values = look.snapshot["aggregate"]
    current = _current_streak(look.source) if look.source is not None else 0
    return Streaks(current, values.get("longest_streak", 0), values.get("active_days", 0))


def _current_streak(source: HistorySource) -> int | None:
    """The current streak; None while it is unknown."""
    from hermes_achievements.calendar import Calendar  # noqa: PLC0415 - `--help` does without
    from hermes_cli.commands.achievements.scan_progress import known_tally  # noqa: PLC0415 - as above
    from hermes_core.time_zones import find_zone  # noqa: PLC0415 - as above

    with contextlib.closing(source.open_ledger()) as ledger:
        tally = known_tally(source, ledger)
    today = Calendar(find_zone(source.zone)).day(time.time())
    return None if tally is None else streak_on(tally.days, today)


def streak_on(days: Days, today: str) -> int:
    """The length of the streak up to *today*."""
    from hermes_achievements.evaluation.standings import MESSAGES_SENT, streaks  # noqa: PLC0415 - as above

    if days.get(today, {}).get(MESSAGES_SENT):
        return dict(streaks(days))[today]
    # Assume a message today to find out whether a missed day is forgiven.
    return dict(streaks({**days, today: {MESSAGES_SENT: 1}}))[today] - 1
