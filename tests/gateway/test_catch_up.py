"""What runs after a downtime."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from gateway.schedules import scheduler
from gateway.schedules.scheduler import GRACE_SECONDS, MAX_RUNS, CatchUp
from hermes_core.schedules.rules import IntervalRule, OnceRule, cron_rule

UTC = ZoneInfo("UTC")
HOURLY = IntervalRule(3600, 0.0)


def test_an_occurrence_on_time_runs_with_every_policy() -> None:
    for policy in CatchUp:
        due = scheduler.plan(HOURLY, UTC, 7200.0, 7201.0, policy)
        assert due == ((7200.0,), 0, None, 10800.0)


def test_once_runs_the_latest_of_the_missed_ones() -> None:
    due = scheduler.plan(HOURLY, UTC, 3600.0, 5 * 3600.0 + 1800, CatchUp.ONCE)
    assert due == ((5 * 3600.0,), 4, 4 * 3600.0, 6 * 3600.0)


def test_all_runs_each_of_them_in_order() -> None:
    due = scheduler.plan(HOURLY, UTC, 3600.0, 3 * 3600.0, CatchUp.ALL)
    assert due == ((3600.0, 7200.0, 10800.0), 0, None, 4 * 3600.0)


def test_all_continues_where_it_stopped() -> None:
    now, first, runs = 250 * 3600.0, 3600.0, []
    while first <= now:
        due = scheduler.plan(HOURLY, UTC, first, now, CatchUp.ALL)
        assert len(due.runs) <= MAX_RUNS
        runs += due.runs
        assert due.next_at is not None
        first = due.next_at
    assert runs == [3600.0 * number for number in range(1, 251)]


def test_skip_runs_none_of_them() -> None:
    due = scheduler.plan(HOURLY, UTC, 3600.0, 3 * 3600.0 + GRACE_SECONDS + 1, CatchUp.SKIP)
    assert due == ((), 3, 3 * 3600.0, 4 * 3600.0)


def test_skip_runs_the_one_that_is_on_time() -> None:
    due = scheduler.plan(HOURLY, UTC, 3600.0, 3 * 3600.0 + 5, CatchUp.SKIP)
    assert due == ((3 * 3600.0,), 2, 2 * 3600.0, 4 * 3600.0)


def test_a_missed_moment_is_over() -> None:
    due = scheduler.plan(OnceRule(100.0), UTC, 100.0, 10_000.0, CatchUp.SKIP)
    assert due == ((), 1, 100.0, None)
    due = scheduler.plan(OnceRule(100.0), UTC, 100.0, 10_000.0, CatchUp.ONCE)
    assert due == ((100.0,), 0, None, None)


@given(st.sampled_from(CatchUp), st.integers(1, 3 * 86400), st.integers(0, 86400))
def test_the_next_occurrence_lies_ahead_and_none_runs_early(
    policy: CatchUp, downtime: int, offset: int
) -> None:
    rule, zone = cron_rule("*/30 * * * *"), ZoneInfo("Europe/Berlin")
    first = rule.next_after(1774728000.0 + offset, zone)
    assert first is not None
    now = first + downtime
    due = scheduler.plan(rule, zone, first, now, policy)
    assert all(first <= run <= now for run in due.runs)
    assert due.next_at is not None
    assert due.next_at > now or len(due.runs) == MAX_RUNS
