"""Reset and retention policies are correct and stable across clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError
from hermes_core.policy import ResetPolicy, RetentionPolicy, retention_policy

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
KOLKATA = ZoneInfo("Asia/Kolkata")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
APIA = ZoneInfo("Pacific/Apia")
ZONES = [BERLIN, NEW_YORK, KOLKATA, LORD_HOWE, APIA, ZoneInfo("UTC"), ZoneInfo("America/Sao_Paulo")]


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def settings(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    return ConfigFile(tmp_path / "config.yaml", tmp_path / ".env", environ={}).settings()


def test_without_a_mode_nothing_ever_expires():
    policy = ResetPolicy()
    assert policy.expired(utc("1990-01-01T00:00"), utc("2090-01-01T00:00"), BERLIN) is None


def test_an_idle_conversation_expires_exactly_at_the_limit():
    policy = ResetPolicy("idle", idle_minutes=30)
    start = utc("2026-01-01T12:00")
    almost = start + timedelta(minutes=30) - timedelta(microseconds=1)
    assert policy.expired(start, almost, BERLIN) is None
    assert policy.expired(start, start + timedelta(minutes=30), BERLIN) == "idle"


def test_idle_time_is_elapsed_time_across_a_clock_change():
    policy = ResetPolicy("idle", idle_minutes=60)
    before = datetime(2026, 3, 29, 1, 45, tzinfo=BERLIN)
    assert policy.expired(before, datetime(2026, 3, 29, 3, 15, tzinfo=BERLIN), BERLIN) is None
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=0)
    second = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)
    assert policy.expired(first, second, BERLIN) == "idle"


@pytest.mark.parametrize(
    ("zone", "hour", "now", "reset"),
    [
        # ordinary days, before and after the hour
        (BERLIN, 4, "2026-01-10T02:59", "2026-01-09T03:00"),
        (BERLIN, 4, "2026-01-10T03:00", "2026-01-10T03:00"),
        (KOLKATA, 4, "2026-01-09T22:30", "2026-01-09T22:30"),
        (KOLKATA, 4, "2026-01-09T22:29", "2026-01-08T22:30"),
        # spring: the hour does not exist, the jump itself is the moment
        (BERLIN, 2, "2026-03-29T00:59", "2026-03-28T01:00"),
        (BERLIN, 2, "2026-03-29T01:00", "2026-03-29T01:00"),
        (NEW_YORK, 2, "2026-03-08T07:00", "2026-03-08T07:00"),
        (NEW_YORK, 2, "2026-03-08T06:59", "2026-03-07T07:00"),
        (LORD_HOWE, 2, "2026-10-03T15:30", "2026-10-03T15:30"),
        (LORD_HOWE, 2, "2026-10-03T15:29", "2026-10-02T15:30"),
        # autumn: the hour comes twice, only the first one counts
        (BERLIN, 2, "2026-10-25T00:00", "2026-10-25T00:00"),
        (BERLIN, 2, "2026-10-25T01:30", "2026-10-25T00:00"),
        (NEW_YORK, 1, "2026-11-01T05:00", "2026-11-01T05:00"),
        (NEW_YORK, 1, "2026-11-01T06:30", "2026-11-01T05:00"),
        # a change of half an hour repeats no full hour
        (LORD_HOWE, 2, "2026-04-04T15:29", "2026-04-03T15:00"),
        (LORD_HOWE, 2, "2026-04-04T15:30", "2026-04-04T15:30"),
        # a zone that skipped the whole 30th of December
        (APIA, 4, "2011-12-30T11:00", "2011-12-29T14:00"),
        (APIA, 4, "2011-12-30T14:00", "2011-12-30T14:00"),
    ],
)  # fmt: skip
def test_the_daily_reset_comes_once_a_day_at_its_hour(zone, hour, now, reset):
    assert ResetPolicy("daily", at_hour=hour).last_daily_reset(utc(now), zone) == utc(reset)


def test_a_conversation_expires_when_the_reset_hour_has_passed_since_its_last_activity():
    policy = ResetPolicy("daily", at_hour=4)
    evening = datetime(2026, 1, 9, 23, 0, tzinfo=BERLIN)
    assert policy.expired(evening, datetime(2026, 1, 10, 3, 59, tzinfo=BERLIN), BERLIN) is None
    assert policy.expired(evening, datetime(2026, 1, 10, 4, 0, tzinfo=BERLIN), BERLIN) == "daily"
    after = datetime(2026, 1, 10, 4, 0, tzinfo=BERLIN)
    assert policy.expired(after, datetime(2026, 1, 10, 23, 0, tzinfo=BERLIN), BERLIN) is None


def test_a_repeated_hour_causes_one_reset():
    policy = ResetPolicy("daily", at_hour=2)
    between = datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=0)
    assert (
        policy.expired(between, datetime(2026, 10, 25, 2, 20, tzinfo=BERLIN, fold=1), BERLIN)
        is None
    )


def test_with_both_rules_either_is_enough():
    policy = ResetPolicy("both", at_hour=4, idle_minutes=60)
    evening = datetime(2026, 1, 10, 3, 30, tzinfo=BERLIN)
    assert policy.expired(evening, evening + timedelta(minutes=40), BERLIN) == "daily"
    noon = datetime(2026, 1, 10, 12, 0, tzinfo=BERLIN)
    assert policy.expired(noon, noon + timedelta(minutes=60), BERLIN) == "idle"


def test_activity_in_the_future_is_not_expired():
    policy = ResetPolicy("both")
    assert policy.expired(utc("2026-01-02T00:00"), utc("2026-01-01T00:00"), BERLIN) is None


POLICIES = st.builds(
    ResetPolicy,
    st.sampled_from(["none", "idle", "daily", "both"]),
    st.integers(0, 23),
    st.integers(1, 5000),
)
MOMENTS = st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds must be naive
WAITS = st.timedeltas(timedelta(0), timedelta(days=4))


@given(POLICIES, st.sampled_from(ZONES), MOMENTS, WAITS, WAITS)
def test_an_expired_conversation_stays_expired(policy, zone, start, wait, longer):
    if policy.expired(start, start + wait, zone) is not None:
        assert policy.expired(start, start + wait + longer, zone) is not None


@given(POLICIES, st.sampled_from(ZONES), MOMENTS, WAITS)
def test_the_zone_of_a_datetime_does_not_matter(policy, zone, start, wait):
    now = start + wait
    elsewhere = policy.expired(start.astimezone(LORD_HOWE), now.astimezone(NEW_YORK), zone)
    assert policy.expired(start, now, zone) == elsewhere


@given(st.integers(0, 23), st.sampled_from(ZONES), MOMENTS)
def test_daily_resets_are_22_to_49_hours_apart(hour, zone, now):
    policy = ResetPolicy("daily", at_hour=hour)
    last = policy.last_daily_reset(now, zone)
    assert timedelta(0) <= now - last < timedelta(hours=49)
    previous = policy.last_daily_reset(last - timedelta(microseconds=1), zone)
    assert last - previous >= timedelta(hours=22)


@pytest.mark.parametrize("aware", [0, 1])
def test_a_datetime_without_a_zone_is_refused(aware):
    moments = [datetime(2026, 1, 1), utc("2026-01-01T00:00")]  # noqa: DTZ001 - the point
    with pytest.raises(ValueError, match="no time zone"):
        ResetPolicy("both").expired(moments[aware], moments[1 - aware], BERLIN)
    with pytest.raises(ValueError, match="no time zone"):
        RetentionPolicy(1).due(moments[aware], moments[1 - aware], pinned=False, ended=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ResetPolicy("weekly"),
        lambda: ResetPolicy(at_hour=24),
        lambda: ResetPolicy(idle_minutes=0),
        lambda: RetentionPolicy(-1),
    ],
)
def test_an_invalid_policy_is_refused(build):
    with pytest.raises(ConfigError):
        build()


@pytest.mark.parametrize(
    ("days", "age_days", "pinned", "ended", "reason"),
    [
        (0, 9999, False, True, "kept for ever"),
        (30, 31, True, True, "pinned"),
        (30, 31, False, False, "still open"),
        (30, 29, False, True, "recently active"),
        (30, 30, False, True, "due"),
        (30, -5, False, True, "recently active"),
    ],
)
def test_a_session_is_due_only_without_a_reason_to_keep_it(days, age_days, pinned, ended, reason):
    now = utc("2026-06-01T00:00")
    verdict = RetentionPolicy(days).due(
        now - timedelta(days=age_days), now, pinned=pinned, ended=ended
    )
    assert verdict == (reason == "due", reason)


def test_a_day_of_retention_has_24_hours_in_every_zone():
    last = datetime(2026, 3, 28, 12, 0, tzinfo=BERLIN)
    now = datetime(2026, 3, 29, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert not RetentionPolicy(1).due(last, now, pinned=False, ended=True).is_due


def test_the_retention_policy_comes_from_the_settings(tmp_path):
    chosen = settings(tmp_path, "sessions: {auto_prune: yes, retention_days: 5}\n")
    assert retention_policy(chosen) == RetentionPolicy(5)


def test_by_default_nothing_is_pruned(tmp_path):
    chosen = settings(tmp_path, "")
    assert retention_policy(chosen) == RetentionPolicy(0)


def test_retention_days_without_auto_prune_have_no_effect(tmp_path):
    chosen = settings(tmp_path, "sessions:\n  auto_prune: false\n  retention_days: 90\n")
    assert retention_policy(chosen) == RetentionPolicy(0)
