"""Analytics and the overview over HTTP, of a history that goes on meanwhile."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from hermes_cli.commands.dashboard.demo_data import generator
from hermes_core.backoff import Backoff
from hermes_core.clock import ManualClock
from hermes_dashboard.analytics import analysis
from hermes_dashboard.resources import analytics, overview, sessions
from hermes_state import SessionDB
from support.data_resources import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

pytestmark = pytest.mark.clock

DAY = 86400.0
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()  # a Wednesday
MARCH = {"since": "2026-03-01", "until": "2026-03-31"}


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    (hermes_home / "config.yaml").write_text("display:\n  timezone: UTC\n")
    with SessionDB() as db:
        yield db


@pytest.fixture
def client(
    db: SessionDB, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[httpx.Client]:
    monkeypatch.setattr(analysis, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "MAX_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "PATIENCE_SECONDS", 30.0)
    with serving(db, hermes_home, analytics, overview, sessions) as client:
        yield client


def work(db: SessionDB, name: str, at: float, *, is_fine: bool = True, **facts: Any) -> None:
    """A question, a command and an answer."""
    if db.get_session(name) is None:
        facts = {"source": "cli", "model": "gpt-5", **facts}
        db.create_session(name, started_at=at, is_owned=False, **facts)
    call = {"id": f"c{at}", "function": {"name": "terminal", "arguments": '{"command": "make"}'}}
    db.append_message(name, "user", "please", timestamp=at)
    db.append_message(name, "assistant", None, tool_calls=[call], timestamp=at + 10)
    code = f'{{"exit_code": {0 if is_fine else 2}}}'
    db.append_message(
        name, "tool", code, tool_name="terminal", tool_call_id=f"c{at}", timestamp=at + 20
    )
    db.append_message(name, "assistant", "done", timestamp=at + 30)


def settled(client: httpx.Client, **asked: Any) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        answer = client.get("/api/analytics", params={**MARCH, **asked})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        if found["is_complete"]:
            return found
        assert time.monotonic() < deadline


def test_days_hours_tools_and_models_are_summed(db: SessionDB, client: httpx.Client) -> None:
    work(db, "one", NOON)
    work(db, "one", NOON + DAY, is_fine=False)
    work(db, "two", NOON + 3600, source="telegram", model="claude")
    work(db, "old", NOON - 20 * DAY)
    db.update_token_counts("one", input_tokens=100, output_tokens=50, estimated_cost_usd=1.0)
    found = settled(client)
    totals = found["totals"]
    assert (totals["sessions"], totals["messages"]) == (2, 9)
    assert (totals["tool_calls"], totals["tool_failures"]) == (3, 1)
    assert (totals["input_tokens"], totals["cost_usd"]) == (100, 1.0)
    assert (totals["active_days"], totals["active_seconds"]) == (2, 90)
    assert found["before"]["sessions"] == 1
    assert len(found["days"]) == 31
    days = {one["day"]: one for one in found["days"]}
    assert (days["2026-03-04"]["sessions"], days["2026-03-04"]["input_tokens"]) == (2, 50)
    assert (days["2026-03-05"]["sessions"], days["2026-03-05"]["tool_failures"]) == (1, 1)
    assert (found["hours"][2][12], found["hours"][2][13], found["hours"][3][12]) == (3, 3, 3)
    assert found["tools"] == [{"tool": "terminal", "calls": 3, "failures": 1, "sessions": 2}]
    assert [one["model"] for one in found["models"]] == ["gpt-5", "claude"]
    assert found["models"][0]["days"]["2026-03-05"] == {"tokens": 75, "cost_usd": 0.5}
    assert {one["source"] for one in found["sources"]} == {"cli", "telegram"}
    assert [one["sessions"] for one in found["lengths"]] == [1, 1, 0, 0, 0, 0, 0]
    assert [one["sessions"] for one in found["durations"]] == [1, 0, 0, 0, 0, 1]


def test_charts_lead_to_the_sessions_behind_them(db: SessionDB, client: httpx.Client) -> None:
    work(db, "one", NOON)
    work(db, "two", NOON + DAY + 3600, is_fine=False)
    settled(client)

    def names(**asked: Any) -> list[str]:
        items = client.get("/api/sessions", params=asked).json()["items"]
        return [one["id"] for one in items]

    assert names(day="2026-03-04") == ["one"]
    assert names(tool="terminal") == ["two", "one"]
    assert names(failed_tool="terminal") == ["two"]
    assert names(hour=13, weekday=3) == ["two"]
    assert names(hour=13, weekday=2) == []
    assert names(day="2026-03-04", ids="two") == []


def test_a_conversation_is_found_by_a_day_of_a_row_it_went_on_from(
    db: SessionDB, client: httpx.Client
) -> None:
    work(db, "one", NOON)
    db.end_session("one", "compression")
    work(db, "two", NOON + 5 * DAY, parent_session_id="one")
    found = settled(client)
    assert found["totals"]["sessions"] == 1
    items = client.get("/api/sessions", params={"day": "2026-03-04"}).json()["items"]
    assert [one["id"] for one in items] == ["two"]


def test_what_is_written_meanwhile_appears_and_what_is_purged_stays(
    db: SessionDB, client: httpx.Client
) -> None:
    work(db, "one", NOON)
    assert settled(client)["totals"]["messages"] == 3
    work(db, "two", NOON + DAY)
    deadline = time.monotonic() + 30
    while settled(client)["totals"]["messages"] != 6:
        assert time.monotonic() < deadline
    db.update_token_counts("two", input_tokens=10)
    while settled(client)["totals"]["input_tokens"] != 10:
        assert time.monotonic() < deadline
    db.delete_session("two")
    db.purge_session("two")
    found = settled(client)
    while found["totals"]["messages"] != 6:
        assert time.monotonic() < deadline
        found = settled(client)
    assert found["totals"]["tool_calls"] == 2


def test_filters_and_wrong_spans(db: SessionDB, client: httpx.Client) -> None:
    work(db, "one", NOON)
    work(db, "two", NOON, source="telegram", model="claude-sonnet")
    assert settled(client, source="telegram")["totals"]["sessions"] == 1
    assert settled(client, model="SONNET")["totals"]["messages"] == 3
    backwards = client.get("/api/analytics", params={"since": "2026-03-02", "until": "2026-03-01"})
    assert backwards.status_code == 400
    assert "`since` (2026-03-02) comes after `until` (2026-03-01)" in backwards.json()["detail"]
    long_ago = {"since": "0001-01-01", "until": "0001-01-09"}
    assert client.get("/api/analytics", params=long_ago).status_code == 400
    assert client.get("/api/analytics", params={"until": "0001-01-09"}).status_code == 400
    assert client.get("/api/analytics", params={"since": "march"}).status_code == 422


def test_the_calendar_shows_days_with_something_on_them(
    db: SessionDB, client: httpx.Client
) -> None:
    work(db, "one", NOON)
    settled(client)
    shown = client.get("/api/analytics/calendar", params={"year": 2026}).json()
    assert (shown["first"], shown["last"]) == ("2026-01-01", "2026-12-31")
    assert shown["days"] == [{"day": "2026-03-04", "messages": 3, "tool_calls": 1, "sessions": 1}]


def test_the_overview_tells_of_today(db: SessionDB, client: httpx.Client) -> None:
    now = time.time()
    for days in (2, 1, 0):
        work(db, f"s{days}", now - days * DAY - 60)
    lease = db.acquire_turn("s0")
    settled(client)
    shown = client.get("/api/overview").json()
    db.release_turn(lease)
    assert shown["today"]["messages"] in (0, 3)  # the minute may have been yesterday
    assert shown["streak"]["longest"] == 3
    assert shown["streak"]["days"] == 3
    assert [one["id"] for one in shown["recent"]] == ["s0", "s1", "s2"]
    assert [one["id"] for one in shown["running"]] == ["s0"]
    assert len(shown["week"]) == 14
    assert shown["history"]["sessions"] == 3
    assert shown["is_demo"] is False


def test_a_streak_is_over_after_two_missed_days() -> None:
    days = {f"2026-03-{day:02}": {"messages_sent": 1} for day in range(1, 6)}
    assert overview.streak_of(days, "2026-03-05")["is_today_done"]
    assert overview.streak_of(days, "2026-03-07")["days"] == 5
    assert overview.streak_of(days, "2026-03-08") == {
        "days": 0,
        "longest": 5,
        "last_day": "2026-03-05",
        "is_today_done": False,
    }
    assert overview.streak_of({}, "2026-03-08")["last_day"] is None


def test_a_large_history_is_read_in_another_process(
    db: SessionDB, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "FEW_SESSIONS", 5)
    for number in range(20):
        work(db, f"s{number:02}", NOON + number * 60)
    assert settled(client)["totals"]["sessions"] == 20


def test_analytics_work_without_achievements(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text(
        "display:\n  timezone: UTC\nachievements:\n  enabled: false\n"
    )
    work(db, "one", NOON)
    assert settled(client)["totals"]["messages"] == 3


def test_while_another_process_scans_the_rest_follows(
    db: SessionDB, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "BUSY_SECONDS", 0.01)
    work(db, "one", NOON)
    ledger = db.ledger()
    with ledger.try_lock() as is_locked:
        assert is_locked
        deadline = time.monotonic() + 30
        while (found := client.get("/api/analytics", params=MARCH).json())["progress"] is None:
            assert time.monotonic() < deadline
        assert (found["is_complete"], found["progress"]) == (False, {"done": 0, "total": 1})
    ledger.close()
    assert settled(client)["totals"]["messages"] == 3


def test_a_session_with_several_models_is_told_by_what_each_did(
    db: SessionDB, client: httpx.Client
) -> None:
    work(db, "one", NOON, model="gpt-5")
    db.update_token_counts("one", model="gpt-5", input_tokens=10, estimated_cost_usd=0.1)
    db.update_token_counts("one", model="claude", input_tokens=30, estimated_cost_usd=0.3)
    models = {one["model"]: one for one in settled(client)["models"]}
    assert {name: one["input_tokens"] for name, one in models.items()} == {
        "gpt-5": 10,
        "claude": 30,
    }
    assert {name: one["sessions"] for name, one in models.items()} == {"gpt-5": 1, "claude": 1}
    assert models["claude"]["cost_usd"] == 0.3


def test_a_span_that_begins_before_everything_begins_with_the_first_day(
    db: SessionDB, client: httpx.Client
) -> None:
    for since in ("2000-01-01", "0001-01-01"):  # nothing is there yet
        empty = client.get("/api/analytics", params={"since": since})
        assert empty.status_code == 200
        assert len(empty.json()["days"]) == 90
    work(db, "one", NOON)
    for since in ("2026-03-01", "2000-01-01", "0001-01-01"):
        found = settled(client, since=since)
        assert (found["since"], len(found["days"])) == ("2026-03-04", 28)
        assert found["totals"]["sessions"] == 1
    before = settled(client, since="2000-01-01", until="2025-12-31")
    assert len(before["days"]) == analytics.MAX_DAYS
    assert settled(client, since="2026-03-05")["since"] == "2026-03-05"
    far = client.get("/api/analytics", params={"until": "9999-12-31"})
    assert far.status_code == 200


def test_a_conversation_that_was_purged_still_counts_once(
    db: SessionDB, client: httpx.Client
) -> None:
    work(db, "one", NOON)
    db.end_session("one", "compression")
    work(db, "two", NOON + 3600, parent_session_id="one")
    before = settled(client)["totals"]
    assert before["sessions"] == 1
    db.delete_session("two")
    db.purge_session("two")
    assert db.stats()["sessions"] == 0
    found = settled(client)
    assert found["lengths"][0]["sessions"] == 0  # it has seen that they are gone
    assert found["totals"] == before
    assert [one["sessions"] for one in found["days"] if one["sessions"]] == [1]


def agree(client: httpx.Client, found: dict[str, Any], **asked: Any) -> int:
    """Every bar has as many sessions as the list it leads to; how many that are in all."""
    first, last = (datetime.fromisoformat(found[one]).replace(tzinfo=UTC) for one in SPAN)
    asked |= {"since": first.timestamp(), "until": last.timestamp() + DAY, "state": "kept"}
    names = {
        "lengths": (("min", "min_messages"), ("max", "max_messages")),
        "durations": (("min_seconds", "min_seconds"), ("max_seconds", "max_seconds")),
    }
    for chart, bounds in names.items():
        for bar in found[chart]:
            wanted = {there: bar[here] for here, there in bounds if bar[here] is not None}
            listed = client.get("/api/sessions", params={**asked, **wanted, "limit": 1})
            assert listed.json()["total"] == bar["sessions"], (chart, bar)
    return sum(bar["sessions"] for bar in found["durations"])


SPAN = ("since", "until")


def test_bars_have_as_many_sessions_as_the_lists_they_lead_to(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    work(db, "one", NOON)
    db.end_session("one", "compression")
    work(db, "two", NOON + 5 * DAY, parent_session_id="one")
    work(db, "three", NOON - 3 * DAY)
    work(db, "put-away", NOON)
    work(db, "gone", NOON + 60)
    work(db, "helper", NOON, source="subagent", parent_session_id="one")
    db.set_session_archived("put-away")
    db.delete_session("gone")
    found = settled(client)
    assert agree(client, found) == 3
    assert [one["sessions"] for one in found["durations"]] == [2, 0, 0, 0, 0, 1]
    part = settled(client, until="2026-03-05")
    assert agree(client, part) == 2  # the continued one was last active later
    assert agree(client, settled(client, model="GPT", source="cli"), model="GPT", source="cli") == 3


def test_bars_of_a_whole_year_agree_with_the_lists(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display:\n  timezone: UTC\n")
    clock = ManualClock()
    with SessionDB(hermes_home / "state.db", clock=clock) as db:
        generator.write(db, clock, datetime(2026, 3, 30, 20, tzinfo=UTC))
        with serving(db, hermes_home, analytics, sessions) as client:
            for asked in ({"since": "2000-01-01"}, {"since": "2026-03-01", "source": "cli"}):
                found = settled(client, **asked)
                filters = {name: one for name, one in asked.items() if name != "since"}
                assert agree(client, found, **filters) > 10


def test_statistics_that_cannot_be_used_are_told_and_used_again(
    db: SessionDB,
    client: httpx.Client,
    hermes_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    work(db, "one", NOON)
    monkeypatch.setattr(analysis, "RETRY", Backoff(0.001, 60.0))
    blocked = hermes_home / "statistics.db"
    blocked.mkdir()
    deadline = time.monotonic() + 30
    for _ in range(5):
        while not (found := client.get("/api/analytics", params=MARCH).json())["error"]:
            assert time.monotonic() < deadline
    assert found["error"].startswith("The statistics cannot be used: ")
    assert found["is_complete"] is False
    assert client.get("/api/analytics/calendar").json()["error"] == found["error"]
    notes = client.get("/api/overview").json()["health"]["notes"]
    assert f"analytics: {found['error']}" in notes
    assert sum("cannot be used" in one.message for one in caplog.records) == 1
    blocked.rmdir()
    assert settled(client)["error"] is None


def test_after_a_failure_the_statistics_are_left_alone_for_longer_and_longer(
    db: SessionDB, hermes_home: Path
) -> None:
    (hermes_home / "statistics.db").mkdir()
    engine = analysis.Analysis(db)
    try:
        engine.known()
        deadline = time.monotonic() + 30
        while engine.error is None:
            assert time.monotonic() < deadline
        pauses = []
        for _ in range(8):
            pauses.append(engine._pause())
            engine._fail(OSError("again"))
    finally:
        engine.close()
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == analysis.RETRY.max_seconds
