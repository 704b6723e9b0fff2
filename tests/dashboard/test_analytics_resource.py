"""Analytics and the overview over HTTP, while the history changes."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from hermes_achievements.scan.survey import SurveyReport
from hermes_cli.commands.dashboard.demo_data import generator
from hermes_core.backoff import Backoff
from hermes_core.clock import ManualClock
from hermes_dashboard.analytics import analysis
from hermes_dashboard.resources import analytics, overview, sessions
from hermes_state import SessionDB
from support.data_resources import serve_resources
from support.waiting import PATIENCE_SECONDS, wait_until

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
    monkeypatch.setattr(analysis, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "MAX_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "MAX_WAIT_SECONDS", 30.0)
    with serve_resources(db, hermes_home, analytics, overview, sessions) as client:
        yield client


def add_exchange(
    db: SessionDB, name: str, at: float, *, succeeds: bool = True, **fields: Any
) -> None:
    """A question, a command and an answer."""
    if db.get_session(name) is None:
        fields = {"source": "cli", "model": "gpt-5", **fields}
        db.create_session(name, started_at=at, is_owned=False, **fields)
    call = {"id": f"c{at}", "function": {"name": "terminal", "arguments": '{"command": "make"}'}}
    db.append_message(name, "user", "please", timestamp=at)
    db.append_message(name, "assistant", None, tool_calls=[call], timestamp=at + 10)
    code = f'{{"exit_code": {0 if succeeds else 2}}}'
    db.append_message(
        name, "tool", code, tool_name="terminal", tool_call_id=f"c{at}", timestamp=at + 20
    )
    db.append_message(name, "assistant", "done", timestamp=at + 30)


def complete_analytics(client: httpx.Client, **query: Any) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        response = client.get("/api/analytics", params={**MARCH, **query})
        assert response.status_code == 200, response.text
        result: dict[str, Any] = response.json()
        if result["is_complete"]:
            return result
        assert time.monotonic() < deadline


def test_days_hours_tools_and_models_are_summed(db: SessionDB, client: httpx.Client) -> None:
    add_exchange(db, "one", NOON)
    add_exchange(db, "one", NOON + DAY, succeeds=False)
    add_exchange(db, "two", NOON + 3600, source="telegram", model="claude")
    add_exchange(db, "old", NOON - 20 * DAY)
    db.update_token_counts("one", input_tokens=100, output_tokens=50, estimated_cost_usd=1.0)
    result = complete_analytics(client)
    totals = result["totals"]
    assert (totals["sessions"], totals["messages"]) == (2, 9)
    assert (totals["tool_calls"], totals["tool_failures"]) == (3, 1)
    assert (totals["input_tokens"], totals["cost_usd"]) == (100, 1.0)
    assert (totals["active_days"], totals["active_seconds"]) == (2, 90)
    assert result["before"]["sessions"] == 1
    assert len(result["days"]) == 31
    days = {day["day"]: day for day in result["days"]}
    assert (days["2026-03-04"]["sessions"], days["2026-03-04"]["input_tokens"]) == (2, 50)
    assert (days["2026-03-05"]["sessions"], days["2026-03-05"]["tool_failures"]) == (1, 1)
    assert (result["hours"][2][12], result["hours"][2][13], result["hours"][3][12]) == (3, 3, 3)
    assert result["tools"] == [{"tool": "terminal", "calls": 3, "failures": 1, "sessions": 2}]
    assert [model["model"] for model in result["models"]] == ["gpt-5", "claude"]
    assert result["models"][0]["days"]["2026-03-05"] == {"tokens": 75, "cost_usd": 0.5}
    assert {source["source"] for source in result["sources"]} == {"cli", "telegram"}
    assert [length["sessions"] for length in result["lengths"]] == [1, 1, 0, 0, 0, 0, 0]
    assert [duration["sessions"] for duration in result["durations"]] == [1, 0, 0, 0, 0, 1]


def test_chart_values_match_filtered_session_lists(db: SessionDB, client: httpx.Client) -> None:
    add_exchange(db, "one", NOON)
    add_exchange(db, "two", NOON + DAY + 3600, succeeds=False)
    complete_analytics(client)

    def names(**query: Any) -> list[str]:
        items = client.get("/api/sessions", params=query).json()["items"]
        return [item["id"] for item in items]

    assert names(day="2026-03-04") == ["one"]
    assert names(tool="terminal") == ["two", "one"]
    assert names(failed_tool="terminal") == ["two"]
    assert names(hour=13, weekday=3) == ["two"]
    assert names(hour=13, weekday=2) == []
    assert names(day="2026-03-04", ids="two") == []


def test_a_conversation_matches_a_day_of_an_earlier_row(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "one", NOON)
    db.end_session("one", "compression")
    add_exchange(db, "two", NOON + 5 * DAY, parent_session_id="one")
    result = complete_analytics(client)
    assert result["totals"]["sessions"] == 1
    items = client.get("/api/sessions", params={"day": "2026-03-04"}).json()["items"]
    assert [item["id"] for item in items] == ["two"]


def test_new_messages_appear_and_purged_sessions_still_count(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "one", NOON)
    assert complete_analytics(client)["totals"]["messages"] == 3
    add_exchange(db, "two", NOON + DAY)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while complete_analytics(client)["totals"]["messages"] != 6:
        assert time.monotonic() < deadline
    db.update_token_counts("two", input_tokens=10)
    while complete_analytics(client)["totals"]["input_tokens"] != 10:
        assert time.monotonic() < deadline
    db.delete_session("two")
    db.trash.purge("two")
    result = complete_analytics(client)
    while result["totals"]["messages"] != 6:
        assert time.monotonic() < deadline
        result = complete_analytics(client)
    assert result["totals"]["tool_calls"] == 2


def test_filters_apply_and_invalid_periods_are_rejected(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "one", NOON)
    add_exchange(db, "two", NOON, source="telegram", model="claude-sonnet")
    assert complete_analytics(client, source="telegram")["totals"]["sessions"] == 1
    assert complete_analytics(client, model="SONNET")["totals"]["messages"] == 3
    backwards = client.get("/api/analytics", params={"since": "2026-03-02", "until": "2026-03-01"})
    assert backwards.status_code == 400
    assert "`since` (2026-03-02) is after `until` (2026-03-01)" in backwards.json()["detail"]
    long_ago = {"since": "0001-01-01", "until": "0001-01-09"}
    assert client.get("/api/analytics", params=long_ago).status_code == 400
    assert client.get("/api/analytics", params={"until": "0001-01-09"}).status_code == 400
    assert client.get("/api/analytics", params={"since": "march"}).status_code == 422


def test_the_calendar_shows_active_days(db: SessionDB, client: httpx.Client) -> None:
    add_exchange(db, "one", NOON)
    complete_analytics(client)
    shown = client.get("/api/analytics/calendar", params={"year": 2026}).json()
    assert (shown["first"], shown["last"]) == ("2026-01-01", "2026-12-31")
    assert shown["days"] == [{"day": "2026-03-04", "messages": 3, "tool_calls": 1, "sessions": 1}]


def test_the_overview_shows_today(db: SessionDB, client: httpx.Client) -> None:
    now = time.time()
    for days in (2, 1, 0):
        add_exchange(db, f"s{days}", now - days * DAY - 60)
    lease = db.leases.acquire("s0")
    complete_analytics(client)
    shown = client.get("/api/overview").json()
    db.leases.release(lease)
    assert shown["today"]["messages"] in (0, 3)  # the minute may have been yesterday
    assert shown["streak"]["longest"] == 3
    assert shown["streak"]["days"] == 3
    assert [item["id"] for item in shown["recent"]] == ["s0", "s1", "s2"]
    assert [item["id"] for item in shown["running"]] == ["s0"]
    assert len(shown["week"]) == 14
    assert shown["history"]["sessions"] == 3
    assert shown["is_demo"] is False


def test_a_large_history_is_read_in_another_process(
    db: SessionDB, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "MAX_INLINE_SESSIONS", 5)
    for number in range(20):
        add_exchange(db, f"s{number:02}", NOON + number * 60)
    assert complete_analytics(client)["totals"]["sessions"] == 20


def test_analytics_work_without_achievements(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    (hermes_home / "config.yaml").write_text(
        "display:\n  timezone: UTC\nachievements:\n  enabled: false\n"
    )
    add_exchange(db, "one", NOON)
    assert complete_analytics(client)["totals"]["messages"] == 3


def test_progress_is_shown_while_another_process_scans(
    db: SessionDB, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "MAX_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "BUSY_RETRY_SECONDS", 0.01)
    add_exchange(db, "one", NOON)
    ledger = db.ledger.open()
    with ledger.try_lock() as is_locked:
        assert is_locked
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (result := client.get("/api/analytics", params=MARCH).json())["progress"] is None:
            assert time.monotonic() < deadline
        assert (result["is_complete"], result["progress"]) == (False, {"done": 0, "total": 1})
    ledger.close()
    assert complete_analytics(client)["totals"]["messages"] == 3


def test_a_session_with_several_models_is_split_by_model(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "one", NOON, model="gpt-5")
    db.update_token_counts("one", model="gpt-5", input_tokens=10, estimated_cost_usd=0.1)
    db.update_token_counts("one", model="claude", input_tokens=30, estimated_cost_usd=0.3)
    models = {model["model"]: model for model in complete_analytics(client)["models"]}
    assert {name: item["input_tokens"] for name, item in models.items()} == {
        "gpt-5": 10,
        "claude": 30,
    }
    assert {name: item["sessions"] for name, item in models.items()} == {"gpt-5": 1, "claude": 1}
    assert models["claude"]["cost_usd"] == 0.3


def test_a_period_before_the_history_starts_with_the_first_active_day(
    db: SessionDB, client: httpx.Client
) -> None:
    for since in ("2000-01-01", "0001-01-01"):  # the history is empty
        empty = client.get("/api/analytics", params={"since": since})
        assert empty.status_code == 200
        assert len(empty.json()["days"]) == 90
    add_exchange(db, "one", NOON)
    for since in ("2026-03-01", "2000-01-01", "0001-01-01"):
        result = complete_analytics(client, since=since)
        assert (result["since"], len(result["days"])) == ("2026-03-04", 28)
        assert result["totals"]["sessions"] == 1
    before = complete_analytics(client, since="2000-01-01", until="2025-12-31")
    assert len(before["days"]) == analytics.MAX_DAYS
    assert complete_analytics(client, since="2026-03-05")["since"] == "2026-03-05"
    far = client.get("/api/analytics", params={"until": "9999-12-31"})
    assert far.status_code == 200


def test_a_conversation_that_was_purged_still_counts_once(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "one", NOON)
    db.end_session("one", "compression")
    add_exchange(db, "two", NOON + 3600, parent_session_id="one")
    before = complete_analytics(client)["totals"]
    assert before["sessions"] == 1
    db.delete_session("two")
    db.trash.purge("two")
    assert db.statistics.stats().sessions == 0
    result = complete_analytics(client)
    assert result["lengths"][0]["sessions"] == 0  # the purge has been read
    assert result["totals"] == before
    assert [day["sessions"] for day in result["days"] if day["sessions"]] == [1]


def check_bars(client: httpx.Client, result: dict[str, Any], **query: Any) -> int:
    """Check that every bar counts the sessions of its list; returns the total."""
    first, last = (datetime.fromisoformat(result[item]).replace(tzinfo=UTC) for item in SPAN)
    query |= {"since": first.timestamp(), "until": last.timestamp() + DAY, "state": "kept"}
    names = {
        "lengths": (("min", "min_messages"), ("max", "max_messages")),
        "durations": (("min_seconds", "min_seconds"), ("max_seconds", "max_seconds")),
    }
    for chart, bounds in names.items():
        for bar in result[chart]:
            wanted = {there: bar[here] for here, there in bounds if bar[here] is not None}
            listed = client.get("/api/sessions", params={**query, **wanted, "limit": 1})
            assert listed.json()["total"] == bar["sessions"], (chart, bar)
    return sum(bar["sessions"] for bar in result["durations"])


SPAN = ("since", "until")


def test_bars_count_the_sessions_of_their_lists(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    add_exchange(db, "one", NOON)
    db.end_session("one", "compression")
    add_exchange(db, "two", NOON + 5 * DAY, parent_session_id="one")
    add_exchange(db, "three", NOON - 3 * DAY)
    add_exchange(db, "put-away", NOON)
    add_exchange(db, "gone", NOON + 60)
    add_exchange(db, "helper", NOON, source="subagent", parent_session_id="one")
    db.set_session_archived("put-away")
    db.delete_session("gone")
    result = complete_analytics(client)
    assert check_bars(client, result) == 3
    assert [duration["sessions"] for duration in result["durations"]] == [2, 0, 0, 0, 0, 1]
    part = complete_analytics(client, until="2026-03-05")
    assert check_bars(client, part) == 2  # the continued one was last active later
    assert (
        check_bars(
            client, complete_analytics(client, model="GPT", source="cli"), model="GPT", source="cli"
        )
        == 3
    )


def test_bars_of_a_full_year_agree_with_the_lists(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display:\n  timezone: UTC\n")
    clock = ManualClock()
    with SessionDB(hermes_home / "state.db", clock=clock) as db:
        generator.write(db, clock, datetime(2026, 3, 30, 20, tzinfo=UTC))
        with serve_resources(db, hermes_home, analytics, sessions) as client:
            for query in ({"since": "2000-01-01"}, {"since": "2026-03-01", "source": "cli"}):
                result = complete_analytics(client, **query)
                filters = {name: item for name, item in query.items() if name != "since"}
                assert check_bars(client, result, **filters) > 10


def test_unavailable_statistics_are_reported_and_recover(
    db: SessionDB,
    client: httpx.Client,
    hermes_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_exchange(db, "one", NOON)
    monkeypatch.setattr(analysis, "RETRY", Backoff(0.001, 60.0))
    blocked = hermes_home / "statistics.db"
    blocked.mkdir()
    deadline = time.monotonic() + PATIENCE_SECONDS
    for _ in range(5):
        while not (result := client.get("/api/analytics", params=MARCH).json())["error"]:
            assert time.monotonic() < deadline
    assert result["error"].startswith("Statistics are unavailable: ")
    assert result["is_complete"] is False
    assert client.get("/api/analytics/calendar").json()["error"] == result["error"]
    notes = client.get("/api/overview").json()["health"]["notes"]
    assert f"analytics: {result['error']}" in notes
    assert sum("unavailable" in record.message for record in caplog.records) == 1
    blocked.rmdir()
    assert complete_analytics(client)["error"] is None


def test_an_error_that_names_an_odd_file_is_shown(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete_analytics(client)
    original = analysis.Analysis.data

    def failed(self: analysis.Analysis) -> analysis.AnalyticsData:
        return original(self)._replace(error="cannot read \udc80.db")

    monkeypatch.setattr(analysis.Analysis, "data", failed)
    answer = client.get("/api/analytics", params=MARCH)
    assert (answer.status_code, answer.json()["error"]) == (200, "cannot read \\udc80.db")


def test_failures_increase_the_interval_between_refreshes(db: SessionDB, hermes_home: Path) -> None:
    (hermes_home / "statistics.db").mkdir()
    engine = analysis.Analysis(db)
    try:
        engine.data()
        deadline = time.monotonic() + PATIENCE_SECONDS
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


# What counts where


def test_usage_of_sub_agents_is_counted_where_their_conversation_is(
    db: SessionDB, client: httpx.Client
) -> None:
    owner = {"source": "telegram", "cwd": "/work/tea", "user_id": "42", "model": "big"}
    add_exchange(db, "talk", NOON, **owner)
    marks = {"_delegate_from": "talk"}
    add_exchange(
        db, "helper", NOON + DAY, source="subagent", parent_session_id="talk", model="small",
        model_config=marks,
    )  # fmt: skip
    add_exchange(
        db, "deeper", NOON + DAY, source="subagent", parent_session_id="helper", model="small",
        model_config={"_delegate_from": "helper"},
    )  # fmt: skip
    for name in ("helper", "deeper"):
        db.update_token_counts(name, input_tokens=100, estimated_cost_usd=1.0)
    result = complete_analytics(client)
    assert [(one["source"], one["sessions"], one["cost_usd"]) for one in result["sources"]] == [
        ("telegram", 1, 2.0)
    ]
    assert [(one["folder"], one["cost_usd"]) for one in result["projects"]] == [("/work/tea", 2.0)]
    for query in ({"source": "telegram"}, {"project": "/work"}, {"person": "42"}):
        assert complete_analytics(client, **query)["totals"]["cost_usd"] == 2.0, query
    assert complete_analytics(client, source="cli")["totals"]["cost_usd"] == 0
    assert complete_analytics(client, only_model="small")["totals"]["cost_usd"] == 2.0
    assert complete_analytics(client, only_model="sm")["totals"]["cost_usd"] == 0
    assert client.get("/api/analytics/choices").json() == {
        "sources": ["telegram"], "models": ["small", "big"], "projects": ["/work/tea"],
        "people": ["42"],
    }  # fmt: skip


def test_active_days_are_days_on_which_a_person_wrote(db: SessionDB, client: httpx.Client) -> None:
    add_exchange(db, "talk", NOON)
    add_exchange(db, "job", NOON + DAY, source="cron")
    totals = complete_analytics(client)["totals"]
    assert (totals["sessions"], totals["messages"], totals["active_days"]) == (2, 6, 1)


def test_the_number_of_days_ends_with_the_day_of_the_server(
    db: SessionDB, client: httpx.Client
) -> None:
    add_exchange(db, "old", NOON - 100 * DAY)
    today = datetime.now(UTC).date()
    complete_analytics(client)
    result = client.get("/api/analytics", params={"days": 90}).json()
    assert len(result["days"]) == len(result["before_days"]) == 90
    assert result["until"] == result["today"] == today.isoformat()
    refused = client.get("/api/analytics", params={"days": 7, "since": "2026-03-01"})
    assert refused.status_code == 400


def test_the_overview_says_that_the_history_is_being_counted(
    db: SessionDB, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_exchange(db, "one", NOON)
    monkeypatch.setattr(analysis, "MAX_WAIT_SECONDS", 0.0)
    entered, released = threading.Event(), threading.Event()
    survey = analysis.survey

    def slow_survey(order: Any, report: Any) -> Any:
        report(SurveyReport(1, 3, {}, None))
        entered.set()
        assert released.wait(60)
        return survey(order, report)

    monkeypatch.setattr(analysis, "survey", slow_survey)
    client.get("/api/overview")
    assert entered.wait(60)
    shown = client.get("/api/overview").json()
    assert (shown["is_complete"], shown["progress"]) == (False, {"done": 1, "total": 3})
    released.set()
    wait_until(lambda: client.get("/api/overview").json()["is_complete"])
    shown = client.get("/api/overview").json()
    assert shown["progress"] is None
    assert shown["history"]["conversations"] == 1
    assert shown["history"]["stored_messages"] == 4


def test_a_budget_is_compared_with_the_month(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    now = time.time()
    add_exchange(db, "now", now)
    db.update_token_counts("now", input_tokens=10, estimated_cost_usd=3.0)
    assert complete_analytics(client)["budget"] is None
    (hermes_home / "config.yaml").write_text(
        "display:\n  timezone: UTC\n  dollars_per_month: 2.5\n"
    )
    budget = complete_analytics(client)["budget"]
    assert (budget["limit_usd"], budget["spent_usd"], budget["is_exceeded"]) == (2.5, 3.0, True)
    assert client.get("/api/overview").json()["budget"] == budget
