"""Schedule expressions as people write them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.errors import UsageError
from hermes_core.schedules.expressions import parse_schedule, split_reminder
from hermes_core.schedules.rules import read_rule

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 27, 12, 0, tzinfo=ZONE).timestamp()  # a Friday


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("every weekday 8:00", "0 8 * * 1-5"),
        ("weekdays at 8", "0 8 * * 1-5"),
        ("daily 7:30", "30 7 * * *"),
        ("every day at 8pm", "0 20 * * *"),
        ("every day 12 am", "0 0 * * *"),
        ("every monday 9:00", "0 9 * * 1"),
        ("Every Mon, Fri 9:05", "5 9 * * 1,5"),
        ("every sunday and wednesday at 9", "0 9 * * 0,3"),
        ("every weekend at noon", "0 12 * * 6,0"),
        ("every month on the 3rd 9:00", "0 9 3 * *"),
        ("hourly", "0 * * * *"),
        ("0 8 * * MON-FRI", "0 8 * * MON-FRI"),
        ("*/5 * * * *", "*/5 * * * *"),
    ],
)
def test_repeating_days_become_cron_fields(text: str, fields: str) -> None:
    assert str(parse_schedule(text, NOW, ZONE)) == f"cron {fields}"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("every 2 hours", 7200), ("every 45 minutes", 2700), ("every 1h 30m", 5400)],
)
def test_intervals_count_from_now(text: str, seconds: int) -> None:
    assert parse_schedule(text, NOW, ZONE) == (seconds, NOW)


@given(
    st.floats(1e9, 4e9),
    st.sampled_from(
        ["every 10 minutes", "in 20 minutes", "daily 7:30", "2100-01-01T00:00:00.123Z"]
    ),
)
def test_a_schedule_means_the_same_after_it_was_stored(now: float, text: str) -> None:
    rule = parse_schedule(text, now, ZONE)
    assert read_rule(str(rule)) == rule
    first = rule.next_after(now, ZONE)
    assert first is not None
    second = read_rule(str(rule)).next_after(first, ZONE)
    assert second is None or second - first >= 600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 20 minutes", "2026-03-27 12:20"),
        ("20m", "2026-03-27 12:20"),
        ("in 2 days", "2026-03-29 13:00"),  # 48 hours, over a change of the clock
        ("tomorrow 9:00", "2026-03-28 09:00"),
        ("today at 6pm", "2026-03-27 18:00"),
        ("18:30", "2026-03-27 18:30"),
        ("at 8", "2026-03-28 08:00"),
        ("friday 9:00", "2026-04-03 09:00"),
        ("next friday 13:00", "2026-03-27 13:00"),
        ("sunday 2:30", "2026-03-29 03:00"),  # does not exist
        ("2026-12-24 18:00", "2026-12-24 18:00"),
        ("2026-12-24T18:00:00+00:00", "2026-12-24 19:00"),
    ],
)
def test_single_occurrences(text: str, expected: str) -> None:
    moment = float(str(parse_schedule(text, NOW, ZONE)).removeprefix("at "))
    assert datetime.fromtimestamp(moment, ZONE).strftime("%Y-%m-%d %H:%M") == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "every", "every blue moon", "8", "25:00", "2026-12-24", "daily 8:61", "13 pm"],
)
def test_what_is_not_a_schedule_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="every weekday 8:00"):
        parse_schedule(text, NOW, ZONE)


def test_a_time_that_has_passed_is_refused() -> None:
    with pytest.raises(UsageError, match="has passed"):
        parse_schedule("today 8:00", NOW, ZONE)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59+00:00", "2200-01-01 9:00"])
def test_a_time_that_is_too_far_away_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than 100 years away"):
        parse_schedule(text, NOW, ZONE)
    with pytest.raises(UsageError, match="more than 100 years away"):
        split_reminder(f"{text} call Ada", NOW, ZONE)


@pytest.mark.parametrize("text", ["{}m", "every {} minutes", "0 {} * * *", "{}:00"])
def test_a_number_with_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_schedule(text.format("9" * 5000), NOW, ZONE)


@given(st.text(max_size=40))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        rule = parse_schedule(text, NOW, ZONE)
    except UsageError:
        return
    following = rule.next_after(NOW, ZONE)
    assert following is None or following > NOW


@pytest.mark.parametrize(
    ("words", "schedule", "text"),
    [
        ("20m tea", "20m", "tea"),
        ("tomorrow 9:00 call Ada at 5", "tomorrow 9:00", "call Ada at 5"),
        ("every monday 9:00 stand-up", "every monday 9:00", "stand-up"),
        ("in 2 hours 30 people come", "in 2 hours", "30 people come"),
        ("0 8 * * 1-5 go", "0 8 * * 1-5", "go"),
    ],
)
def test_a_reminder_starts_with_its_schedule(words: str, schedule: str, text: str) -> None:
    assert split_reminder(words, NOW, ZONE)[1:] == (schedule, text)


@pytest.mark.parametrize("words", ["tea", "20m", "tea 20m"])
def test_a_reminder_without_a_time_or_a_text_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="Start with the time"):
        split_reminder(words, NOW, ZONE)
