"""Metrics of messages and conversations, and of their times."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hermes_achievements.metrics.facts import (
    ASSISTANT_ROLE,
    CALLS_FIELD,
    LENGTH_FIELD,
    ROLE_FIELD,
    TIME_FIELD,
    USER_ROLE,
)
from hermes_achievements.metrics.session_view import DAY_SECONDS
from hermes_achievements.scan.history import SessionKind

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionView


LONG_MESSAGE_CHARACTERS: Final = 2000
SHORT_MESSAGE_CHARACTERS: Final = 12
MAX_ACTIVE_GAP_SECONDS: Final = 300
PURE_TALK_MESSAGES: Final = 10
MIN_ONE_SHOT_CALLS: Final = 10
CLEAN_END_REASONS: Final = frozenset(
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


def messages_sent(session: SessionView) -> Events:
    """Messages that a person wrote."""
    return [(fact, 1) for fact in session.user_messages]


def characters_typed(session: SessionView) -> Events:
    """Characters in the messages that a person wrote."""
    return [(fact, fact[LENGTH_FIELD]) for fact in session.user_messages if fact[LENGTH_FIELD]]


def long_messages(session: SessionView) -> Events:
    """Messages of 2,000 characters or more that a person wrote."""
    return [
        (fact, 1) for fact in session.user_messages if fact[LENGTH_FIELD] >= LONG_MESSAGE_CHARACTERS
    ]


def short_messages(session: SessionView) -> Events:
    """Messages of 12 characters or fewer that a person wrote."""
    return [
        (fact, 1)
        for fact in session.user_messages
        if 0 < fact[LENGTH_FIELD] <= SHORT_MESSAGE_CHARACTERS
    ]


def replies(session: SessionView) -> Events:
    """Answers of the agent that end a turn: messages without tool calls."""
    return [(fact, 1) for fact in session.replies] if session.has_human_user else []


def conversations(session: SessionView) -> Events:
    """Conversations in which a person wrote something; continuations are not new ones."""
    return session.single_event(session.first_user_message)


def branches(session: SessionView) -> Events:
    """Conversations that branched off another one and continued."""
    return (
        session.single_event(session.first_user_message)
        if session.row.kind == SessionKind.BRANCH
        else []
    )


def continuations(session: SessionView) -> Events:
    """Conversations that became too long for the model and were continued after compaction."""
    return (
        session.single_event(session.facts[0] if session.facts else None)
        if session.row.kind == SessionKind.CONTINUATION
        else []
    )


def subagent_runs(session: SessionView) -> Events:
    """Pieces of work done by a sub-agent."""
    return (
        session.single_event(session.last_fact) if session.row.kind == SessionKind.SUBAGENT else []
    )


def scheduled_runs(session: SessionView) -> Events:
    """Runs that a schedule started."""
    return (
        session.single_event(session.last_fact) if session.row.kind == SessionKind.SCHEDULED else []
    )


def titled(session: SessionView) -> Events:
    """Conversations that have a title."""
    return session.single_event(session.first_user_message) if session.row.is_titled else []


def clean_ends(session: SessionView) -> Events:
    """Conversations that were ended, by a person or by a rule, and not cut off."""
    is_clean = session.row.ended_at is not None and session.row.end_reason in CLEAN_END_REASONS
    return (
        session.single_event(session.last_fact)
        if is_clean and session.is_conversation and session.user_messages
        else []
    )


def returns_after_week(session: SessionView) -> Events:
    """Messages that continued a conversation after a week or more."""
    return _returns(session, 7)


def returns_after_month(session: SessionView) -> Events:
    """Messages that continued a conversation after thirty days or more."""
    return _returns(session, 30)


def _returns(session: SessionView, days: int) -> Events:
    long = [fact for fact, gap in session.pauses if gap >= days * DAY_SECONDS]
    return [(fact, 1) for fact in long if any(fact is item for item in session.user_messages)]


def weekend_conversations(session: SessionView) -> Events:
    """Conversations that began on a Saturday or Sunday."""
    first = session.first_user_message
    return (
        session.single_event(first)
        if first and session.calendar.at(first[TIME_FIELD]).weekday >= 5
        else []
    )


def night_conversations(session: SessionView) -> Events:
    """Conversations that began between midnight and five."""
    return _began_between(session, 0, 5)


def dawn_conversations(session: SessionView) -> Events:
    """Conversations that began between five and seven in the morning."""
    return _began_between(session, 5, 7)


def lunch_conversations(session: SessionView) -> Events:
    """Conversations that began between noon and one."""
    return _began_between(session, 12, 13)


def evening_conversations(session: SessionView) -> Events:
    """Conversations that began between eight and midnight."""
    return _began_between(session, 20, 24)


def _began_between(session: SessionView, first_hour: int, end_hour: int) -> Events:
    first = session.first_user_message
    if first is None:
        return []
    return (
        session.single_event(first)
        if first_hour <= session.calendar.at(first[TIME_FIELD]).hour < end_hour
        else []
    )


def active_seconds(session: SessionView) -> Events:
    """Seconds of active time: between messages at most five minutes apart."""
    if not session.has_human_user:
        return []
    return [
        (later, int(gap))
        for earlier, later in pairwise(session.facts)
        if 1 <= (gap := later[TIME_FIELD] - earlier[TIME_FIELD]) <= MAX_ACTIVE_GAP_SECONDS
    ]


def pure_talks(session: SessionView) -> Events:
    """Conversations with ten messages in a row that set off no tool call at all."""
    if not session.is_conversation or len(session.user_messages) < PURE_TALK_MESSAGES:
        return []
    run = 0
    for fact in session.facts:
        if fact[ROLE_FIELD] == ASSISTANT_ROLE and fact[CALLS_FIELD]:
            run = 0
        elif fact[ROLE_FIELD] == USER_ROLE:
            run += 1
            if run == PURE_TALK_MESSAGES:
                return [(fact, 1)]
    return []


def one_shots(session: SessionView) -> Events:
    """Messages that led to ten or more tool calls and an answer."""
    if len(session.calls) < MIN_ONE_SHOT_CALLS or not session.user_messages:
        return []
    calls = 0
    is_pending = False
    events: Events = []
    for fact in session.facts:
        if fact[ROLE_FIELD] == USER_ROLE:
            calls, is_pending = 0, True
        elif fact[ROLE_FIELD] == ASSISTANT_ROLE and fact[CALLS_FIELD]:
            calls += len(fact[CALLS_FIELD])
        elif fact[ROLE_FIELD] == ASSISTANT_ROLE and is_pending and calls >= MIN_ONE_SHOT_CALLS:
            events.append((fact, 1))
            is_pending = False
    return events


MIN_CACHED_SESSION_TOKENS: Final = 50_000
MIN_CACHED_SHARE: Final = 0.8


def input_tokens(session: SessionView) -> Events:
    """Tokens read by models, without those that came from a cache."""
    return _at_last_message(session, session.row.input_tokens)


def output_tokens(session: SessionView) -> Events:
    """Tokens written by models."""
    return _at_last_message(session, session.row.output_tokens)


def cached_tokens(session: SessionView) -> Events:
    """Tokens that came from a prompt cache."""
    return _at_last_message(session, session.row.cached_tokens)


def reasoning_tokens(session: SessionView) -> Events:
    """Tokens that models spent on reasoning."""
    return _at_last_message(session, session.row.reasoning_tokens)


def cost_cents(session: SessionView) -> Events:
    """What sessions cost, in whole US cents each."""
    return _at_last_message(session, round(session.row.cost_usd * 100))


def well_cached(session: SessionView) -> Events:
    """Ended sessions that read 50,000 tokens or more, at least 80 % of them from a cache."""
    if session.row.ended_at is None:
        return []
    tokens = session.row.input_tokens + session.row.cached_tokens
    if tokens < MIN_CACHED_SESSION_TOKENS or session.row.cached_tokens < MIN_CACHED_SHARE * tokens:
        return []
    return session.single_event(session.last_fact)


def _at_last_message(session: SessionView, amount: int) -> Events:
    return [(session.last_fact, amount)] if session.last_fact is not None and amount > 0 else []
