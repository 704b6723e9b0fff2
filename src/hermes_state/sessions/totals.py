"""Numbers of every session, for totals over the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.engine.values import amount_sql, number_sql
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Columns

STARTED_AT = amount_sql("s.started_at")
COSTS = f"{number_sql('s.actual_cost_usd')}, {number_sql('s.estimated_cost_usd')}"
# A fork shows the messages of its origin, too; a total counts them once.
OWN_MESSAGES = f"""
    CASE WHEN s.parent_session_id IS NULL OR i.lifetime_messages IS NULL
        THEN {amount_sql("s.message_count")} ELSE i.lifetime_messages END
"""
OWN_CALLS = f"""
    CASE WHEN s.parent_session_id IS NULL OR i.lifetime_tool_calls IS NULL
        THEN {amount_sql("s.tool_call_count")} ELSE i.lifetime_tool_calls END
"""
NUMBERS = f"""
    SELECT s.id, coalesce(i.root_id, s.id), coalesce(i.kind, 'root'), coalesce(i.shown, 1),
           CAST(s.source AS TEXT), CAST(s.model AS TEXT), {STARTED_AT},
           coalesce({number_sql("i.last_activity")}, {STARTED_AT}),
           {OWN_MESSAGES}, {OWN_CALLS},
           {amount_sql("s.input_tokens")}, {amount_sql("s.output_tokens")},
           {amount_sql("s.cache_read_tokens")}, coalesce({COSTS}, 0.0),
           CAST({{folder}} AS TEXT), coalesce(s.parent_session_id, ''),
           CAST(coalesce(s.user_id, '') AS TEXT), {amount_sql("s.cache_write_tokens")},
           coalesce({COSTS}) IS NOT NULL
    FROM sessions s LEFT JOIN hermes_session_index i ON i.session_id = s.id
"""  # noqa: S608 - own names
WITH_INDEX = "LEFT JOIN hermes_session_index i ON i.session_id = s.id"
WITHOUT_INDEX = """LEFT JOIN (SELECT NULL AS root_id, NULL AS kind, NULL AS shown,
    NULL AS last_activity, NULL AS lifetime_messages, NULL AS lifetime_tool_calls) i"""


def without_index(sql: str, columns: Columns) -> str:
    """The statement, also for a file without an index."""
    return sql if columns.has_own_tables else sql.replace(WITH_INDEX, WITHOUT_INDEX)


def _sum(expression: str) -> str:
    return f"sum({amount_sql(expression)})"


# Most sessions have only the model of their own row.
SEVERAL_MODELS = f"""
    SELECT session_id, CAST(model AS TEXT), {_sum("input_tokens")}, {_sum("output_tokens")},
           {_sum("cache_read_tokens")},
           sum(coalesce(nullif({amount_sql("actual_cost_usd")}, 0),
                        {amount_sql("estimated_cost_usd")})),
           {_sum("cache_write_tokens")}
    FROM session_model_usage
    WHERE session_id IN (SELECT session_id FROM session_model_usage
                         GROUP BY session_id HAVING min(model) <> max(model))
    GROUP BY session_id, model
"""  # noqa: S608 - own names


class ModelNumbers(NamedTuple):
    """Usage of one model in a session with several models."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float
    cache_write_tokens: int = 0
    is_priced: bool = True


class SessionNumbers(NamedTuple):
    """Numbers of a session; trashed sessions count too."""

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
    folder: str  # of the repository, else the working folder; may be empty
    parent_id: str = ""
    person: str = ""  # of a chat app, as the app names the user
    cache_write_tokens: int = 0
    is_priced: bool = True  # the cost is known, or an estimate


def numbers_sql(columns: Columns) -> str:
    """The SELECT statement, also for a file without an index."""
    root = "nullif(s.git_repo_root, ''), " if columns.session_has("git_repo_root") else ""
    sql = NUMBERS.format(folder=f"coalesce({root}s.cwd, '')")
    return without_index(sql, columns)


class TotalsRepository(Repository):
    """Numbers of all sessions."""

    def per_session(self) -> list[SessionNumbers]:
        """Numbers of every session: tokens, cost, messages; no text except names."""
        rows = self.engine.read(lambda reader: reader.rows(reader.prepared(numbers_sql)))
        return [SessionNumbers(*row) for row in rows]

    def per_model(self) -> dict[str, list[ModelNumbers]]:
        """Sessions with answers of more than one model, with the numbers of each model."""
        if "session_model_usage" not in self.engine.columns.tables:
            return {}
        by_session: dict[str, list[ModelNumbers]] = {}
        for session_id, *numbers in self.engine.read(lambda reader: reader.rows(SEVERAL_MODELS)):
            by_session.setdefault(session_id, []).append(ModelNumbers(*numbers))
        return by_session
