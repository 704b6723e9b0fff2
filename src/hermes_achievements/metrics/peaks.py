"""Peak metrics: the maximum of the returned amounts counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.metrics.facts import CALLS_FIELD, LENGTH_FIELD, TIME_FIELD
from hermes_achievements.metrics.session_view import DAY_SECONDS

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionView


def longest_message(session: SessionView) -> Events:
    """The longest message a person wrote, in characters."""
    return [(fact, fact[LENGTH_FIELD]) for fact in session.user_messages if fact[LENGTH_FIELD]]


def calls_at_once(session: SessionView) -> Events:
    """The most tools called in one message."""
    return [(fact, len(fact[CALLS_FIELD])) for fact in session.call_messages]


def clean_run(session: SessionView) -> Events:
    """The longest run of tool calls without a failure, in one session."""
    run = 0
    events: Events = []
    for result in session.results:
        run = 0 if result.has_failed else run + 1
        if run:
            events.append((result.fact, run))
    return events


def failures_overcome(session: SessionView) -> Events:
    """The longest run of failures in one session that ended in a success."""
    run = 0
    events: Events = []
    for result in session.results:
        if result.has_failed:
            run += 1
        elif run:
            events.append((result.fact, run))
            run = 0
    return events


def days_of_silence(session: SessionView) -> Events:
    """The longest pause after which a person continued a conversation, in days."""
    long = [(fact, int(gap // DAY_SECONDS)) for fact, gap in session.pauses]
    return [
        (fact, days) for fact, days in long if any(fact is item for item in session.user_messages)
    ]


def hours_open(session: SessionView) -> Events:
    """The longest a conversation has lasted, in hours from its first message."""
    if not session.has_human_user or not session.facts:
        return []
    first = session.facts[0][TIME_FIELD]
    return [
        (fact, hours)
        for fact in session.user_messages
        if (hours := int((fact[TIME_FIELD] - first) // 3600)) > 0
    ]
