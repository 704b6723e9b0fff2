"""Recaps contain the events of their period."""

from __future__ import annotations

import contextlib
import functools
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from hermes_achievements.calendar import Calendar
from hermes_achievements.recap import periods, sentences
from hermes_achievements.recap.recap import build_recap
from hermes_achievements.scan.scanner import Scanner
from hermes_core.errors import UsageError
from hermes_state import SessionDB
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_achievements.recap.recap import Recap

pytestmark = pytest.mark.clock


def at(day: str, hour: int = 12, second: int = 0) -> float:
    """A timestamp on *day* in UTC."""
    moment = datetime.fromisoformat(day).replace(hour=hour, tzinfo=UTC)
    return moment.timestamp() + second


def add_user_message(db: SessionDB, session: str, moment: float, text: str = "do it") -> None:
    db.append_message(session, "user", content=text, timestamp=moment)


def add_shell_call(db: SessionDB, session: str, moment: float, command: str, code: int = 0) -> None:
    """Add a terminal call, and its result a second later."""
    name = f"call_{moment}_{command}"
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    tool_call = {"id": name, "type": "function", "function": function}
    db.append_message(session, "assistant", content="", tool_calls=[tool_call], timestamp=moment)
    db.append_message(
        session,
        "tool",
        content=json.dumps({"output": "", "exit_code": code, "error": None}),
        tool_name="terminal",
        tool_call_id=name,
        timestamp=moment + 1,
    )


def scan_recap(home: Path, first: str, last: str, **more: Any) -> Recap:
    """Scan the history of *home* and compute a recap."""
    database = home / "state.db"
    opened = functools.partial(open_history, str(database))
    with contextlib.closing(LedgerFile(database)) as ledger:
        tally = Scanner(opened, ledger, "UTC", processes=0).refresh().tally
        with contextlib.closing(opened()) as history:
            calendar = Calendar(UTC)
            return build_recap(ledger, tally, calendar, first, last, titles=history.titles, **more)


@pytest.fixture
def september(hermes_home: Path) -> Path:
    """A conversation from August to September, and two in September."""
    with SessionDB() as db:
        db.create_session("over-the-edge", "cli", model="anthropic/claude-sonnet-4-20250514")
        add_user_message(db, "over-the-edge", at("2026-08-31", 23, 3500))
        add_shell_call(db, "over-the-edge", at("2026-08-31", 23, 3510), "git status", code=1)
        add_shell_call(db, "over-the-edge", at("2026-09-01", 0, 5), "git commit -m x")
        add_user_message(db, "over-the-edge", at("2026-09-01", 0, 20))
        db.create_session("busy", "cli", model="gpt-5")
        db.set_session_title("busy", "A busy <script>")
        for number in range(5):
            add_user_message(db, "busy", at("2026-09-02", 9, number * 100))
            add_shell_call(
                db, "busy", at("2026-09-02", 9, number * 100 + 10), "pytest -q && ls", code=0
            )
        db.create_session("long", "cli", model="gpt-5")
        for number in range(8):
            add_user_message(db, "long", at("2026-09-03", 14, number * 200))
    return hermes_home


def test_only_events_in_the_period_count(september: Path) -> None:
    result = scan_recap(september, "2026-09-01", "2026-09-30")
    assert result.totals.messages == 1 + 5 + 8
    assert result.totals.tool_calls == 1 + 5
    assert result.totals.commits == 1
    assert result.totals.test_runs == 5
    assert result.totals.conversations == 2  # the third began in August
    assert {day.day: day.messages for day in result.days if day.messages} == {
        "2026-09-01": 1,
        "2026-09-02": 5,
        "2026-09-03": 8,
    }
    assert len(result.days) == 30
    assert {hour: n for hour, n in enumerate(result.hours) if n} == {0: 1, 9: 5, 14: 8}
    assert sum(result.weekdays) == 14
    assert result.weekdays[periods.weekday("2026-09-03")] == 8


def test_favourites_are_ranked(september: Path) -> None:
    result = scan_recap(september, "2026-09-01", "2026-09-30")
    assert result.tools == (("terminal", 6),)
    assert result.programs == (("ls", 5), ("pytest", 5), ("git", 1))
    assert result.models == (("gpt-5", 13), ("claude-sonnet-4", 1))


def test_the_longest_sessions_are_named(september: Path) -> None:
    result = scan_recap(september, "2026-09-01", "2026-09-30")
    assert result.longest_by_time is not None
    assert (result.longest_by_time.session_id, result.longest_by_time.amount) == ("long", 1400)
    assert result.longest_by_calls is not None
    assert result.longest_by_calls == ("busy", "A busy <script>", 5)


def test_best_day_streak_and_failures(september: Path) -> None:
    result = scan_recap(september, "2026-09-01", "2026-09-30")
    assert result.best_day == ("2026-09-03", 8, 0)
    assert result.streak == (3, "2026-09-03")
    assert result.failures.share == 0
    assert result.failures.share_before == 1.0
    assert result.active_days == 3


def test_tier_ups_are_those_of_the_period(september: Path) -> None:
    steps = [
        {"id": name, "name": name, "icon": "award", "tier": "clay", "at": at(day)}
        for name, day in (("early", "2026-08-31"), ("timely", "2026-09-30"), ("late", "2026-10-01"))
    ]
    result = scan_recap(september, "2026-09-01", "2026-09-30", timeline=steps)
    assert [tier_up["id"] for tier_up in result.tier_ups] == ["timely"]
    assert "2026-09-01" <= result.tier_ups[0]["day"] <= "2026-09-30"


def test_a_recap_without_activity_is_empty(september: Path) -> None:
    result = scan_recap(september, "2020-01-01", "2020-01-31")
    assert result.is_empty
    assert result.best_day is None
    assert result.streak is None
    assert sentences.highlights(result) == []


def test_progress_is_reported(september: Path) -> None:
    seen: list[tuple[int, int]] = []
    scan_recap(
        september,
        "2026-09-01",
        "2026-09-30",
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(3, 3)]


def test_a_recap_becomes_json(september: Path) -> None:
    plain = scan_recap(september, "2026-09-01", "2026-09-30").as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["tools"] == [{"name": "terminal", "times": 6}]
    assert plain["failures"]["share_before"] == 1.0


def test_highlights_are_sentences_about_notable_facts(september: Path) -> None:
    result = scan_recap(september, "2026-09-01", "2026-09-30")
    text = " ".join(sentences.highlights(result))
    assert "Your best day was Thursday, 3 September: 8 messages." in text
    assert "0.0 % of tool calls failed, down from 100.0 % in the 30 days before." in text
    assert "“A busy <script>”" in text
    assert "busy" not in " ".join(sentences.highlights(result, is_public=True)).split()


def test_comebacks_are_counted(hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("stubborn", "cli")
        for number in range(10):
            add_shell_call(db, "stubborn", at("2026-09-01", 9, number * 10), "pytest", code=2)
        add_shell_call(db, "stubborn", at("2026-09-01", 10), "pytest")
        add_user_message(db, "stubborn", at("2026-09-09"))
    result = scan_recap(hermes_home, "2026-09-01", "2026-09-30")
    assert result.comebacks == (1, 1, 1)
    assert "Once the tests passed after five or more failing runs." in sentences.highlights(result)


@pytest.mark.parametrize(
    ("kind", "text", "first", "last", "name"),
    [
        ("year", "2024", "2024-01-01", "2024-12-31", "2024"),
        ("month", "2024-02", "2024-02-01", "2024-02-29", "February 2024"),
        ("month", "2024-2", "2024-02-01", "2024-02-29", "February 2024"),
        ("week", "2026-W01", "2025-12-29", "2026-01-04", "Week 1 of 2026"),
        ("week", "2026-w53", "2026-12-28", "2027-01-03", "Week 53 of 2026"),
    ],
)
def test_periods_have_names(kind: str, text: str, first: str, last: str, name: str) -> None:
    period = periods.parse(kind, text)
    assert (period.first, period.last, period.name) == (first, last, name)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("year", "26"), ("month", "2026-13"), ("month", "2026"), ("week", "2025-W53"), ("week", "x")],
)
def test_an_invalid_period_is_rejected_with_an_example(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"invalid {kind} .*: use 2026"):
        periods.parse(kind, text)


def test_the_latest_period_is_the_current_or_the_last_active_one() -> None:
    days = ["2026-03-05", "2026-07-30"]
    assert periods.latest_period("month", days, "2026-07-31").id == "2026-07"
    assert periods.latest_period("month", days, "2026-11-15").id == "2026-07"
    assert periods.latest_period("month", days, "2026-05-15").id == "2026-03"
    assert periods.latest_period("week", days, "2026-11-15").id == "2026-W31"


@pytest.mark.parametrize(
    ("count", "text"),
    [(9_999, "9,999"), (61_000, "61.0 k"), (4_600_000, "4.6 M"), (5_029_318_539, "5.0 B")],
)
def test_large_amounts_stay_short(count: int, text: str) -> None:
    assert sentences.format_count(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59, "59 s"), (60, "1 min"), (3_700, "1 h 1 min"), (5_022_065, "1,395 h")],
)
def test_durations_stay_short(seconds: int, text: str) -> None:
    assert sentences.format_duration(seconds) == text
