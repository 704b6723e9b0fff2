"""`hermes achievements watch`: print new unlocks as they happen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

from hermes_achievements.evaluation.views import SessionTitles, with_titles
from hermes_cli import history
from hermes_cli.commands.achievements import display, report
from hermes_cli.commands.achievements.report import new_unlocks, open_report, tiers_by_id
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.evaluation.snapshot import Announcement, Snapshot
    from hermes_achievements.service import AchievementService
    from hermes_cli.commands.achievements.report import AchievementReport
    from hermes_cli.output import CommandOutput


def watch(arguments: argparse.Namespace, out: CommandOutput) -> NoReturn:
    """Scan repeatedly and print new unlocks until Ctrl+C."""
    if not achievements.is_enabled():
        raise UsageError(report.DISABLED)
    _wait_for_history(arguments.interval, out)
    try:
        with open_report(out) as look:
            _print(look.news, arguments, out)
            _follow(look, arguments, out)
    finally:
        out.progress("")


def _follow(look: AchievementReport, arguments: argparse.Namespace, out: CommandOutput) -> NoReturn:
    snapshot, problem = look.snapshot, ""
    while True:
        _show_state(snapshot, out)
        out.flush()
        time.sleep(arguments.interval)
        now = _scan_again(look.service) or snapshot
        _print(new_unlocks(tiers_by_id(snapshot), now), arguments, out)
        snapshot = now
        problem = _report_problem(look.service, problem, out)


def _wait_for_history(interval: float, out: CommandOutput) -> None:
    if history.exists():
        return
    out.note(f"{history.no_history_text()} Waiting for the first one. Press Ctrl+C to stop.")
    while not history.exists():
        time.sleep(interval)


def _scan_again(service: AchievementService) -> Snapshot | None:
    """Scan; return the snapshot, or the current one if another process is scanning."""
    source = achievements.source()
    result = service.run(source, service.compute, publish=False) or service.current()
    return None if result is None else with_titles(result, SessionTitles(source.open_history))


def _report_problem(service: AchievementService, before: str, out: CommandOutput) -> str:
    """Report a new scan failure once; return it."""
    problem = service.status.facts().last_error or ""
    if problem and problem != before:
        out.progress("")
        out.note(f"Scanning the history failed: {problem}")
    return problem


def _show_state(snapshot: Snapshot, out: CommandOutput) -> None:
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    out.progress(f"Watching: {unlocked} of {total} earned (Ctrl+C stops)")


def _print(found: Announcement, arguments: argparse.Namespace, out: CommandOutput) -> None:
    if found["count"]:
        out.progress("")
    unlocks = sorted(found["unlocks"], key=lambda unlock: float(unlock["at"]))
    if arguments.json:
        for unlock in unlocks:
            out.json_line(report.unlock_as_dict(unlock))
        return
    if found["is_first_scan"] and found["count"]:
        out.text(display.notice_text(found), "yellow")
        return
    for unlock in unlocks:
        result: Announcement = {**found, "unlocks": [unlock], "count": 1}
        where = report.conversation_name(unlock)
        out.styled(
            (f"{human_format.local(unlock['at'])}  ", "dim"),
            (display.notice_text(result), "yellow"),
            (f"  {where}" if where else "", ""),
        )
