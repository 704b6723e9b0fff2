"""`hermes achievements watch`: every new unlock as it happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn

from hermes_achievements.evaluation.views import Names, named
from hermes_cli import history
from hermes_cli.commands.achievements import display, report
from hermes_cli.commands.achievements.report import held_in, looking, news
from hermes_conversation import achievements
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_achievements.service import Service
    from hermes_cli.commands.achievements.report import Look
    from hermes_cli.output import Output


def watch(arguments: argparse.Namespace, out: Output) -> NoReturn:
    """Look again and again, and print what is new, until Ctrl-C."""
    if not achievements.is_enabled():
        raise UsageError(report.OFF)
    _wait_for_a_history(arguments.interval, out)
    try:
        with looking(out) as look:
            _print(look.news, arguments, out)
            _follow(look, arguments, out)
    finally:
        out.progress("")


def _follow(look: Look, arguments: argparse.Namespace, out: Output) -> NoReturn:
    snapshot, problem = look.snapshot, ""
    while True:
        _say_state(snapshot, out)
        out.flush()
        time.sleep(arguments.interval)
        now = _refreshed(look.service) or snapshot
        _print(news(held_in(snapshot), now), arguments, out)
        snapshot = now
        problem = _say_problem(look.service, problem, out)


def _wait_for_a_history(interval: float, out: Output) -> None:
    if history.exists():
        return
    out.note(f"{history.no_history()} Waiting for the first one. Press Ctrl+C to stop.")
    while not history.exists():
        time.sleep(interval)


def _refreshed(service: Service) -> dict[str, Any] | None:
    """What is known after a look; when another process is scanning, what that one found."""
    source = achievements.source()
    found = service.run(source, service.compute, publish=False) or service.current()
    return None if found is None else named(found, Names(source.open_history))


def _say_problem(service: Service, before: str, out: Output) -> str:
    """A scan that fails is reported once, and tried again."""
    problem = service.status.facts()["last_error"] or ""
    if problem and problem != before:
        out.progress("")
        out.note(f"Scanning the history failed: {problem}")
    return problem


def _say_state(snapshot: dict[str, Any], out: Output) -> None:
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    out.progress(f"Watching: {unlocked} of {total} earned (Ctrl+C stops)")


def _print(found: dict[str, Any], arguments: argparse.Namespace, out: Output) -> None:
    if found["count"]:
        out.progress("")
    unlocks = sorted(found["unlocks"], key=lambda unlock: float(unlock["at"]))
    if arguments.json:
        for unlock in unlocks:
            out.json_line(report.unlock_as_dict(unlock))
        return
    if found["is_first_scan"] and found["count"]:
        out.text(display.notice_of(found), "yellow")
        return
    for unlock in unlocks:
        one = {**found, "unlocks": [unlock], "count": 1}
        where = report.conversation(unlock)
        out.styled(
            (f"{human_format.local(unlock['at'])}  ", "dim"),
            (display.notice_of(one), "yellow"),
            (f"  {where}" if where else "", ""),
        )
