"""Every session in a few numbers: what sums over the whole history are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.engine.columns import Columns

NUMBERS = """
    SELECT s.id, coalesce(i.root_id, s.id), coalesce(i.kind, 'root'), coalesce(i.shown, 1),
           s.source, s.model, s.started_at, coalesce(i.last_activity, s.started_at),
           coalesce(s.message_count, 0), coalesce(s.tool_call_count, 0),
           coalesce(s.input_tokens, 0), coalesce(s.output_tokens, 0),
           coalesce(s.cache_read_tokens, 0), coalesce(s.actual_cost_usd, s.estimated_cost_usd, 0.0)
    FROM sessions s LEFT JOIN hermes_session_index i ON i.session_id = s.id
"""
ALONE = "FROM sessions s LEFT JOIN (SELECT NULL AS root_id, NULL AS kind, NULL AS shown,"
ALONE += " NULL AS last_activity) i"


# Most sessions have one model, which their row names.
SEVERAL = """
    SELECT session_id, model, sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
           sum(CASE WHEN actual_cost_usd > 0 THEN actual_cost_usd ELSE estimated_cost_usd END)
    FROM session_model_usage
    WHERE session_id IN (SELECT session_id FROM session_model_usage
                         GROUP BY session_id HAVING min(model) <> max(model))
    GROUP BY session_id, model
"""


class ModelNumbers(NamedTuple):
    """What one model did in a session that had several."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float


class SessionNumbers(NamedTuple):
    """One session; those in the trash are among them, since they happened."""

    id: str
    root_id: str
    kind: str
    shown: int
    source: str
    model: str | None
    started_at: float
    last_active: float
    messages: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float


def statement(columns: Columns) -> str:
    """The question, also for a file that has no index."""
    return NUMBERS if columns.has_own_tables else f"{NUMBERS.partition('FROM')[0]}{ALONE}"


class NumbersPart(StorePart):
    """The history as rows of numbers."""

    def session_numbers(self) -> list[SessionNumbers]:
        """Every session in numbers: tokens, cost, messages; no text but names."""
        rows = self.engine.read(lambda reader: reader.rows(reader.prepared(statement)))
        return [SessionNumbers(*row) for row in rows]

    def several_models(self) -> dict[str, list[ModelNumbers]]:
        """The sessions in which more than one model answered, with what each of them did."""
        if "session_model_usage" not in self.engine.columns.tables:
            return {}
        found: dict[str, list[ModelNumbers]] = {}
        for session_id, *numbers in self.engine.read(lambda reader: reader.rows(SEVERAL)):
            found.setdefault(session_id, []).append(ModelNumbers(*numbers))
        return found
