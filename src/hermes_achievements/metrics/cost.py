"""Metrics of tokens and cost, from the totals in the session row.

They are dated by the last message of the session, because the row has no other date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionView


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
