"""Streaks, months and other values derived from days."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_achievements.evaluation import standings
from hermes_achievements.metrics.tally import Contribution, Tally

Days = dict[str, dict[str, int]]


def days(*numbers: int, **counts: int) -> Days:
    """Active days, counted from Monday 2026-01-05."""
    start = date(2026, 1, 5)
    counts.setdefault("messages_sent", 1)
    return {(start + timedelta(days=number)).isoformat(): dict(counts) for number in numbers}


def last(series: list[tuple[str, int]]) -> int:
    return series[-1][1] if series else 0


@pytest.mark.parametrize(
    ("active", "longest"),
    [
        ([], 0),
        ([0], 1),
        ([0, 1, 2], 3),
        ([0, 1, 3, 4], 4),  # one missed day is allowed
        ([0, 2, 4], 2),  # but not two in one week
        ([0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14], 13),  # one per week is allowed
        ([0, 1, 4, 5, 6], 3),  # two consecutive missed days end a streak
        ([0, 1, 2, 10, 11], 3),
    ],
)
def test_a_streak_allows_one_missed_day_per_week(active: list[int], longest: int) -> None:
    assert last(standings.longest_streak(days(*active))) == longest


def test_a_streak_is_dated_at_each_length() -> None:
    assert standings.longest_streak(days(0, 1, 2, 10)) == [
        ("2026-01-05", 1),
        ("2026-01-06", 2),
        ("2026-01-07", 3),
    ]


def test_weeks_and_months() -> None:
    assert last(standings.longest_week_streak(days(0, 8, 20, 35))) == 3
    assert last(standings.perfect_weeks(days(*range(7), *range(8, 21)))) == 2
    assert last(standings.active_months(days(0, 1, 40, 100))) == 3
    assert last(standings.longest_month_streak(days(0, 30, 60, 130))) == 3


def test_days_together_and_apart() -> None:
    assert last(standings.days_together(days(0, 5, 100))) == 100
    assert last(standings.longest_absence(days(0, 5, 100, 103))) == 94


def month(number: int, **counts: int) -> Days:
    return {f"2026-{number:02}-15": {"messages_sent": 1, **counts}}


def test_a_month_with_a_smaller_share_of_failures_is_an_improvement() -> None:
    history = {
        **month(1, successful_calls=90, failed_calls=10),
        **month(2, successful_calls=95, failed_calls=5),
        **month(3, successful_calls=50, failed_calls=0),  # too few results
        **month(4, successful_calls=99, failed_calls=1),
        **month(5, successful_calls=99, failed_calls=9),
        **month(6, successful_calls=100, failed_calls=0),  # not over yet
    }
    assert standings.improved_months(history) == [("2026-02-15", 1), ("2026-04-15", 2)]
    assert last(standings.longest_improvement(history)) == 2


def test_spotless_days() -> None:
    history = {
        "2026-01-01": {"successful_calls": 25},
        "2026-01-02": {"successful_calls": 24},
        "2026-01-03": {"successful_calls": 99, "failed_calls": 1},
        "2026-01-04": {"successful_calls": 99},  # not over yet
    }
    assert standings.spotless_days(history) == [("2026-01-01", 1)]


def test_tidy_clean_and_tested_months() -> None:
    history = {
        **month(1, conversations=10, titled=8, clean_ends=9, commits=10, passed_tests=10),
        **month(2, conversations=10, titled=7, clean_ends=8, commits=10, passed_tests=9),
        **month(3, conversations=9, titled=9, clean_ends=9, commits=9, passed_tests=9),
        **month(4),
    }
    assert standings.tidy_months(history) == [("2026-01-15", 1)]
    assert standings.clean_months(history) == [("2026-01-15", 1)]
    assert standings.tested_months(history) == [("2026-01-15", 1)]


def contribution(day: str, **counts: int) -> Contribution:
    return Contribution({day: counts}, {"clean_run": max(counts.values())}, {})


def test_a_tally_is_the_same_in_any_order() -> None:
    parts = [(f"s{n}", contribution(f"2026-01-{n:02}", tool_calls=n)) for n in range(1, 9)]
    forwards, backwards = Tally.of(parts), Tally.of(parts[::-1])
    assert forwards.pack() != b""
    assert standings.compute_values(forwards) == standings.compute_values(backwards)
    split = Tally.of(parts[:3])
    split.merge(Tally.of(parts[3:]))
    assert standings.compute_values(split) == standings.compute_values(forwards)


def test_removing_the_best_session_requires_a_recount() -> None:
    tally = Tally.of([("a", contribution("2026-01-01", tool_calls=5))])
    tally.add("b", contribution("2026-01-01", tool_calls=9))
    assert tally.replace(
        "a", contribution("2026-01-01", tool_calls=5), contribution("2026-01-01", tool_calls=6)
    )
    assert not tally.replace(
        "b", contribution("2026-01-01", tool_calls=9), contribution("2026-01-01", tool_calls=2)
    )
    assert standings.compute_values(tally)["total_tool_calls"] == 8


COUNTED_DAYS = st.dictionaries(
    st.integers(0, 100).map(lambda n: (date(2026, 1, 5) + timedelta(days=n)).isoformat()),
    st.fixed_dictionaries(
        {name: st.integers(0, 60) for name in ("messages_sent", *standings.MONTHLY_METRICS)}
    ),
    max_size=25,
)


@given(fewer=COUNTED_DAYS, more=COUNTED_DAYS)
def test_values_that_are_shown_during_a_scan_never_fall(fewer: Days, more: Days) -> None:
    """A partial snapshot never shows what the final one may not have."""
    everything = {
        day: {
            name: fewer.get(day, {}).get(name, 0) + more.get(day, {}).get(name, 0)
            for name in ("messages_sent", *standings.MONTHLY_METRICS)
        }
        for day in {*fewer, *more}
    }
    for name in standings.DERIVED_SERIES.keys() - standings.FALLING_VALUES:
        series = standings.DERIVED_SERIES[name]
        assert last(series(fewer)) <= last(series(everything)), name


def test_a_badge_of_a_partial_scan_is_not_taken_back() -> None:
    """Half of a month can be tidier than all of it."""
    month = {"conversations": 10, "titled": 10, "messages_sent": 1}
    half = {"2026-01-05": month, "2026-02-01": {"messages_sent": 1}}
    whole = {**half, "2026-01-06": {"conversations": 10, "titled": 0, "messages_sent": 1}}
    assert (last(standings.tidy_months(half)), last(standings.tidy_months(whole))) == (1, 0)
    assert "tidy_months" in standings.FALLING_VALUES
