"""The activity of a session per day."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from hermes_achievements.activity import Activity, ToolActivity, summarize_activity
from hermes_achievements.calendar import Calendar
from hermes_achievements.scan.history import ScannedMessage, ScannedSession, SessionKind
from hermes_achievements.scan.ledger_entries import read_facts

NOON = 1_780_000_000.0 - 1_780_000_000.0 % 86400 + 43200
DAY = 86400.0
CALENDAR = Calendar(ZoneInfo("UTC"))
CALL = (
    b'[{"id": "c1", "function": {"name": "terminal", "arguments": "{\\"command\\": \\"make\\"}"}}]'
)


def sample_activity(kind: str = SessionKind.CONVERSATION) -> Activity:
    rows = [
        ScannedMessage(1, "user", NOON, b"do it", 5),
        ScannedMessage(2, "assistant", NOON + 60, None, 0, CALL),
        ScannedMessage(3, "tool", NOON + 90, b'{"exit_code": 2}', 0, None, "terminal", "c1"),
        ScannedMessage(4, "assistant", NOON + 100, b"no luck"),
        ScannedMessage(5, "user", NOON + DAY, b"again", 5),
    ]
    session = ScannedSession("one", kind, "cli", "m", NOON)
    return summarize_activity(read_facts(session, rows, ()), CALENDAR)


def test_messages_tools_and_hours_are_grouped_by_day() -> None:
    first, second = sample_activity().days
    assert (first.messages, first.sent, first.active_seconds) == (3, 1, 100)
    assert first.hours == ((12, 3),)
    assert first.tools == (ToolActivity("terminal", 1, 1),)
    assert (second.messages, second.sent, second.active_seconds, second.tools) == (1, 1, 0, ())


def test_subagent_prompts_are_not_user_messages() -> None:
    activity = sample_activity(SessionKind.SUBAGENT)
    assert [day.sent for day in activity.days] == [0, 0]
    assert not activity.is_conversation


def test_activity_round_trips_through_serialization() -> None:
    activity = sample_activity()
    assert Activity.unpack(activity.pack()) == activity


def test_a_session_without_messages_has_no_days() -> None:
    session = ScannedSession("one", SessionKind.CONVERSATION, "cli", "m", NOON)
    assert summarize_activity(read_facts(session, [], ()), CALENDAR).days == ()
