"""Bests that are not sums: each function gives candidates, and the largest counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.metrics.facts import CALLS, LENGTH, TIME_FIELD
from hermes_achievements.metrics.session_view import DAY_SECONDS

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionFacts


def longest_message(s: SessionFacts) -> Events:
    """The longest message a person wrote, in characters."""
    return [(fact, fact[LENGTH]) for fact in s.said if fact[LENGTH]]


def calls_at_once(s: SessionFacts) -> Events:
    """The most tools called in one message."""
    return [(fact, len(fact[CALLS])) for fact in s.facts if fact[2] == "a" and fact[CALLS]]


def clean_run(s: SessionFacts) -> Events:
    """The longest run of tool calls without a failure, in one session."""
    run = 0
    events: Events = []
    for r in s.results:
        run = 0 if r.has_failed else run + 1
        if run:
            events.append((r.fact, run))
    return events


def failures_overcome(s: SessionFacts) -> Events:
    """The longest run of failures in one session that ended in a success."""
    run = 0
    events: Events = []
    for r in s.results:
        if r.has_failed:
            run += 1
        elif run:
            events.append((r.fact, run))
            run = 0
    return events


def days_of_silence(s: SessionFacts) -> Events:
    """The longest pause after which a person took up a conversation again, in days."""
    long = [(fact, int(gap // DAY_SECONDS)) for fact, gap in s.pauses]
    return [(fact, days) for fact, days in long if any(fact is item for item in s.said)]


def hours_open(s: SessionFacts) -> Events:
    """The longest a conversation has lasted, in hours from its first message."""
    if not s.is_spoken_to or not s.facts:
        return []
    first = s.facts[0][TIME_FIELD]
    return [
        (fact, hours) for fact in s.said if (hours := int((fact[TIME_FIELD] - first) // 3600)) > 0
    ]
