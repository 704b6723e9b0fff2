"""What it took: tokens and money, as the session's row sums them up.

They are dated by the session's last message, because the row keeps no other date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_achievements.metrics.session_view import Events, SessionFacts


MUCH_INPUT: Final = 50_000
WELL_CACHED: Final = 0.8


def input_tokens(s: SessionFacts) -> Events:
    """Tokens read by models, without those that came from a cache."""
    return _amount(s, s.row.input_tokens)


def output_tokens(s: SessionFacts) -> Events:
    """Tokens written by models."""
    return _amount(s, s.row.output_tokens)


def cached_tokens(s: SessionFacts) -> Events:
    """Tokens that came from a prompt cache."""
    return _amount(s, s.row.cached_tokens)


def reasoning_tokens(s: SessionFacts) -> Events:
    """Tokens that models spent on thinking."""
    return _amount(s, s.row.reasoning_tokens)


def cost_cents(s: SessionFacts) -> Events:
    """What sessions cost, in whole US cents each."""
    return _amount(s, round(s.row.cost_usd * 100))


def well_cached(s: SessionFacts) -> Events:
    """Ended sessions that read 50,000 tokens or more, at least 80 % of them from a cache."""
    if s.row.ended_at is None:
        return []
    everything = s.row.input_tokens + s.row.cached_tokens
    if everything < MUCH_INPUT or s.row.cached_tokens < WELL_CACHED * everything:
        return []
    return s.once(s.last)


def _amount(s: SessionFacts, amount: int) -> Events:
    return [(s.last, amount)] if s.last is not None and amount > 0 else []
