"""Rules of schedules: occurrences through clock changes, compared with a plain search."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.errors import UsageError
from hermes_core.schedules.rules import (
    CronRule,
    IntervalRule,
    OnceRule,
    cron_rule,
    interval_rule,
    read_rule,
    upcoming,
)

BERLIN = ZoneInfo("Europe/Berlin")
# Days on which clocks change: an hour, half an hour, at midnight, a whole day.
CHANGES = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Asia/Beirut", "2022-03-27"),
    ("America/Havana", "2026-11-01"),
    ("Pacific/Apia", "2011-12-30"),
    ("Asia/Kolkata", "2026-06-01"),
)
SPAN_MINUTES = 4 * 24 * 60


def at(text: str, zone: ZoneInfo = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def local(moment: float, zone: ZoneInfo = BERLIN) -> str:
    return datetime.fromtimestamp(moment, zone).strftime("%m-%d %H:%M%z")


def plain_occurrences(
    minutes: set[int], hours: set[int], start: float, zone: ZoneInfo
) -> list[float]:
    """Each local time of day at its first moment, or at the first moment after it is skipped.

    Found by looking at every minute, without arithmetic on local times.
    """
    moments = [start + 60 * number for number in range(SPAN_MINUTES)]
    seen: set[datetime] = set()
    latest = datetime.fromtimestamp(start - 60, zone).replace(tzinfo=None)
    found = []
    for moment in moments:
        now = datetime.fromtimestamp(moment, zone).replace(tzinfo=None)
        passed = []
        while latest < now:
            latest += timedelta(minutes=1)
            passed.append(latest)
        matching = [each for each in passed if each.minute in minutes and each.hour in hours]
        if any(each not in seen for each in matching):
            found.append(moment)
        seen.update(matching)
    return found


@given(
    st.sampled_from(CHANGES),
    st.sets(st.integers(0, 59), min_size=1, max_size=3),
    st.sets(st.integers(0, 23), min_size=1, max_size=4),
)
def test_every_local_time_of_day_occurs_once_whatever_the_clock_does(
    change: tuple[str, str], minutes: set[int], hours: set[int]
) -> None:
    zone = ZoneInfo(change[0])
    start = at(change[1], zone) - 2 * 86400
    start -= start % 60
    fields = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"
    expected = plain_occurrences(minutes, hours, start, zone)
    rule, found, moment = cron_rule(fields), [], start - 1
    while (following := rule.next_after(moment, zone)) is not None and following <= expected[-1]:
        found.append(following)
        moment = following
    assert found == expected


@given(
    st.sampled_from(CHANGES),
    st.sampled_from(
        ["30 2 * * *", "*/30 2 * * *", "0 */2 * * *", "*/15 * * * *", "5 * * * *", "59 23 * * *"]
    ),
    st.integers(-86400, 86400),
)
def test_the_last_occurrence_before_a_moment_is_the_one_that_leads_past_it(
    change: tuple[str, str], fields: str, shift: int
) -> None:
    zone, rule = ZoneInfo(change[0]), cron_rule(fields)
    now = at(f"{change[1]}T12:00", zone) + shift
    last = rule.last_until(now, zone)
    assert last is not None
    assert last <= now
    following = rule.next_after(last, zone)
    assert following is not None
    assert following > now
    assert rule.next_after(now, zone) == following


@pytest.mark.parametrize(
    ("fields", "start", "expected"),
    [
        ("30 2 * * *", "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        ("0,30 2,3 * * *", "2026-03-29T00:00", ["03-29 03:00+0200", "03-29 03:30+0200"]),
        ("30 2 * * *", "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("*/30 2 * * *", "2026-10-25T00:00", ["10-25 02:00+0200", "10-25 02:30+0200"]),
        ("0 */2 * * *", "2026-10-25T01:00", ["10-25 02:00+0200", "10-25 04:00+0100"]),
        ("30 * * * *", "2026-10-25T02:00", ["10-25 02:30+0200", "10-25 02:30+0100"]),
    ],
)
def test_what_a_changed_clock_means(fields: str, start: str, expected: list[str]) -> None:
    moments = upcoming(CronRule(fields), BERLIN, at(start), len(expected))
    assert [local(moment) for moment in moments] == expected


def test_a_time_that_was_repeated_does_not_occur_again_in_the_second_hour() -> None:
    second = at("2026-10-25T02:10", fold=1)
    following = CronRule("30 2 * * *").next_after(second, BERLIN)
    assert following is not None
    assert local(following) == "10-26 02:30+0100"


def test_an_interval_ignores_the_clock() -> None:
    rule = interval_rule(7200, at("2026-03-29T00:30"))
    assert [local(each) for each in upcoming(rule, BERLIN, at("2026-03-29T00:30"), 2)] == [
        "03-29 03:30+0200",
        "03-29 05:30+0200",
    ]
    assert rule.last_until(at("2026-03-29T00:40"), BERLIN) is None


@given(st.integers(60, 10**7), st.floats(0, 4e9), st.floats(0, 5e9))
def test_intervals_are_reached_from_both_sides(seconds: int, start: float, now: float) -> None:
    rule = IntervalRule(seconds, start)
    following = rule.next_after(now, BERLIN)
    assert following is not None
    assert following > now
    last = rule.last_until(now, BERLIN)
    if last is not None:
        assert last <= now < last + seconds * (1 + 1e-9)


@pytest.mark.parametrize(
    "rule", [CronRule("0 8 * * 1-5"), IntervalRule(60, 1794906312.25), OnceRule(1794906312.0)]
)
def test_a_stored_rule_is_read_as_it_was(rule: CronRule | IntervalRule | OnceRule) -> None:
    assert read_rule(str(rule)) == rule


@pytest.mark.parametrize("fields", ["61 * * * *", "* * *", "0 0 30 2 *", "a b c d e"])
def test_an_invalid_cron_expression_is_refused(fields: str) -> None:
    with pytest.raises(UsageError):
        cron_rule(fields)


def test_an_interval_of_seconds_is_refused() -> None:
    with pytest.raises(UsageError, match="one minute"):
        interval_rule(30, 0.0)
