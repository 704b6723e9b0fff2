"""What was said: messages, conversations, and when they took place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.metrics.facts import ASSISTANT, CALLS, LENGTH, ROLE, TIME_FIELD, USER
from hermes_achievements.metrics.session_view import DAY_SECONDS
from hermes_achievements.scan.history import Kind

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionFacts

LONG_MESSAGE: Final = 2000
SHORT_MESSAGE: Final = 12
PAUSE_SECONDS: Final = 300
MANY_MESSAGES: Final = 10
MANY_CALLS: Final = 10
CLEAN_REASONS: Final = frozenset(
    [
        "cli_close",
        "new_session",
        "session_reset",
        "tui_close",
        "agent_close",
        "branched",
        "compression",
        "cron_complete",
        "resumed_other",
        "session_switch",
        "user_exit",
        "idle",
        "daily",
    ]
)


def messages_sent(s: SessionFacts) -> Events:
    """Messages that a person wrote."""
    return [(fact, 1) for fact in s.said]


def characters_typed(s: SessionFacts) -> Events:
    """Characters in the messages that a person wrote."""
    return [(fact, fact[LENGTH]) for fact in s.said if fact[LENGTH]]


def long_messages(s: SessionFacts) -> Events:
    """Messages of 2,000 characters or more that a person wrote."""
    return [(fact, 1) for fact in s.said if fact[LENGTH] >= LONG_MESSAGE]


def short_messages(s: SessionFacts) -> Events:
    """Messages of 12 characters or fewer that a person wrote."""
    return [(fact, 1) for fact in s.said if 0 < fact[LENGTH] <= SHORT_MESSAGE]


def replies(s: SessionFacts) -> Events:
    """Answers of the agent that end a turn: messages without tool calls."""
    return [(fact, 1) for fact in s.replies] if s.is_spoken_to else []


def conversations(s: SessionFacts) -> Events:
    """Conversations in which a person said something; continuations are not new ones."""
    return s.once(s.first_said)


def branches(s: SessionFacts) -> Events:
    """Conversations that branched off another one and continued."""
    return s.once(s.first_said) if s.row.kind == Kind.BRANCH else []


def continuations(s: SessionFacts) -> Events:
    """Conversations that grew too long for the model and were carried on."""
    return s.once(s.facts[0] if s.facts else None) if s.row.kind == Kind.CONTINUATION else []


def subagent_runs(s: SessionFacts) -> Events:
    """Pieces of work done by a sub-agent."""
    return s.once(s.last) if s.row.kind == Kind.SUBAGENT else []


def scheduled_runs(s: SessionFacts) -> Events:
    """Runs that a schedule started."""
    return s.once(s.last) if s.row.kind == Kind.SCHEDULED else []


def titled(s: SessionFacts) -> Events:
    """Conversations that have a title."""
    return s.once(s.first_said) if s.row.is_titled else []


def clean_ends(s: SessionFacts) -> Events:
    """Conversations that were ended, by a person or by a rule, and not cut off."""
    is_clean = s.row.ended_at is not None and s.row.end_reason in CLEAN_REASONS
    return s.once(s.last) if is_clean and s.is_conversation and s.said else []


def returns_after_week(s: SessionFacts) -> Events:
    """Messages that took up a conversation again after a week or more."""
    return _returns(s, 7)


def returns_after_month(s: SessionFacts) -> Events:
    """Messages that took up a conversation again after thirty days or more."""
    return _returns(s, 30)


def _returns(s: SessionFacts, days: int) -> Events:
    long = [fact for fact, gap in s.pauses if gap >= days * DAY_SECONDS]
    return [(fact, 1) for fact in long if any(fact is item for item in s.said)]


def weekend_conversations(s: SessionFacts) -> Events:
    """Conversations that began on a Saturday or Sunday."""
    first = s.first_said
    return s.once(first) if first and s.calendar.at(first[TIME_FIELD]).weekday >= 5 else []


def night_conversations(s: SessionFacts) -> Events:
    """Conversations that began between midnight and five."""
    return _began_between(s, 0, 5)


def dawn_conversations(s: SessionFacts) -> Events:
    """Conversations that began between five and seven in the morning."""
    return _began_between(s, 5, 7)


def lunch_conversations(s: SessionFacts) -> Events:
    """Conversations that began between noon and one."""
    return _began_between(s, 12, 13)


def evening_conversations(s: SessionFacts) -> Events:
    """Conversations that began between eight and midnight."""
    return _began_between(s, 20, 24)


def _began_between(s: SessionFacts, first_hour: int, end_hour: int) -> Events:
    first = s.first_said
    if first is None:
        return []
    return s.once(first) if first_hour <= s.calendar.at(first[TIME_FIELD]).hour < end_hour else []


def active_seconds(s: SessionFacts) -> Events:
    """Seconds of being at it: between messages at most five minutes apart."""
    if not s.is_spoken_to:
        return []
    return [(fact, int(gap)) for fact, gap in s.gaps if 1 <= gap <= PAUSE_SECONDS]


def pure_talks(s: SessionFacts) -> Events:
    """Conversations with ten messages in a row that set off no tool call at all."""
    if not s.is_conversation:
        return []
    run = 0
    for fact in s.facts:
        if fact[ROLE] == ASSISTANT and fact[CALLS]:
            run = 0
        elif fact[ROLE] == USER:
            run += 1
            if run == MANY_MESSAGES:
                return [(fact, 1)]
    return []


def one_shots(s: SessionFacts) -> Events:
    """Messages that set off ten tool calls or more, and got an answer."""
    calls = 0
    is_asked = False
    events: Events = []
    for fact in s.facts if s.said else ():
        if fact[ROLE] == USER:
            calls, is_asked = 0, True
        elif fact[ROLE] == ASSISTANT and fact[CALLS]:
            calls += len(fact[CALLS])
        elif fact[ROLE] == ASSISTANT and is_asked and calls >= MANY_CALLS:
            events.append((fact, 1))
            is_asked = False
    return events
