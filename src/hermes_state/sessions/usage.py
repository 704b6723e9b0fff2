"""Tokens and costs of sessions and of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.ledger.repository import record_change
from hermes_state.messages import history
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue


TABLE = "hermes_answer_usage"


class AnswerUsage(NamedTuple):
    """What an answer took; the cost is None if no price is known.

    `cost_status` is actual, estimated, included or unknown, as for sessions.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    cost_status: str
    seconds: float


NAMES = ", ".join(AnswerUsage._fields)
INSERT = (
    f"INSERT INTO {TABLE} (message_id, {NAMES})"  # noqa: S608 - our names
    f" VALUES ({', '.join('?' * (len(AnswerUsage._fields) + 1))}) ON CONFLICT DO NOTHING"
)
QUALIFIED = ", ".join(f"u.{name}" for name in AnswerUsage._fields)
OF_SESSION = (
    f"SELECT m.id, {QUALIFIED} FROM messages m JOIN {TABLE} u ON u.message_id = m.id"  # noqa: S608
    " WHERE m.session_id = ?"
)
COPIES_OF_SESSION = (
    f"SELECT m.id, {QUALIFIED} FROM messages m"  # noqa: S608 - our names
    f" JOIN hermes_copy c ON c.message_id = m.id JOIN {TABLE} u ON u.message_id = c.origin_id"
    " WHERE m.session_id = ?"
)


def record(tx: Tx, row_id: int, usage: AnswerUsage) -> None:
    """Store the usage of an answer."""
    tx.execute(INSERT, (row_id, *usage))


def record_by_uid(tx: Tx, uid: str, usage: AnswerUsage) -> None:
    """Store the usage of the answer with this identity, if it is stored."""
    row_id = history.row_with(tx, uid)
    if row_id is not None:
        record(tx, row_id, usage)


def delete(tx: Tx, row_ids: Sequence[int]) -> None:
    """Delete the usage of answers that are purged."""
    places = ", ".join("?" * len(row_ids))
    tx.execute(f"DELETE FROM {TABLE} WHERE message_id IN ({places})", row_ids)  # noqa: S608


def of_session(
    reader: Reader, session_id: str, *, with_copies: bool = True
) -> dict[int, AnswerUsage]:
    """The usage of the answers of a session, by message ID."""
    if not _has_table(reader):
        return {}
    found = _by_message(reader.rows(OF_SESSION, (session_id,)))
    if with_copies:
        found |= _by_message(reader.rows(COPIES_OF_SESSION, (session_id,)))
    return found


def of_messages(reader: Reader, row_ids: Sequence[int]) -> dict[int, AnswerUsage]:
    """The usage of these answers, by message ID."""
    if not row_ids or not _has_table(reader):
        return {}
    places = ", ".join("?" * len(row_ids))
    own = f"SELECT u.message_id, {QUALIFIED} FROM {TABLE} u WHERE u.message_id IN ({places})"  # noqa: S608
    copies = (
        f"SELECT c.message_id, {QUALIFIED} FROM hermes_copy c"  # noqa: S608 - our names
        f" JOIN {TABLE} u ON u.message_id = c.origin_id WHERE c.message_id IN ({places})"
    )
    return _by_message(reader.rows(own, row_ids)) | _by_message(reader.rows(copies, row_ids))


def _has_table(reader: Reader) -> bool:
    """Whether the file has the table; one that another program wrote may have no own tables."""
    return TABLE in reader.columns.tables


def _by_message(rows: Iterable[tuple[SqlValue, ...]]) -> dict[int, AnswerUsage]:
    return {int(row[0] or 0): AnswerUsage._make(row[1:]) for row in rows}


COUNTERS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
COSTS: Final = ("estimated_cost_usd", "actual_cost_usd")
TEXT_COLUMNS: Final = (
    "model",
    "billing_provider",
    "billing_base_url",
    "billing_mode",
    "cost_status",
    "cost_source",
    "pricing_version",
)
_MODEL_KEY: Final = ("model", "billing_provider", "billing_base_url", "billing_mode", "task")

TOTALS = """
    SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
           coalesce(sum(cache_read_tokens), 0), coalesce(sum(cache_write_tokens), 0),
           coalesce(sum(reasoning_tokens), 0), coalesce(sum(api_call_count), 0),
           coalesce(sum(coalesce(actual_cost_usd, estimated_cost_usd)), 0.0)
    FROM sessions
"""


SUBAGENT: Final = "subagent"  # the source of delegated tasks
TOTALS_WITH_TASKS = f"{TOTALS} WHERE id = ? OR (parent_session_id = ? AND source = ?)"


class UsageTotals(NamedTuple):
    """Tokens, requests and costs of sessions."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    cost_usd: float


def update(tx: Tx, session_id: str, usage: Mapping[str, SqlValue], *, absolute: bool) -> None:
    """Add usage to a session's counters, or set them if *absolute*."""
    changes: list[str] = []
    values: list[SqlValue] = []
    for name in (*COUNTERS, *COSTS):
        if usage.get(name) is not None:
            changes.append(f"{name} = ?" if absolute else f"{name} = coalesce({name}, 0) + ?")
            values.append(usage[name])
    for name in TEXT_COLUMNS:
        if usage.get(name) is not None:
            # A side task by another model does not change the model of the conversation.
            changes.append(f"{name} = coalesce({name}, ?)" if name == "model" else f"{name} = ?")
            values.append(usage[name])
    if changes:
        sql = f"UPDATE sessions SET {', '.join(changes)} WHERE id = ?"  # noqa: S608 - our names
        tx.execute(sql, (*values, session_id))
        record_change(tx, session_id)
    if not absolute and "session_model_usage" in tx.columns.tables:
        _update_model(tx, session_id, usage)


def _update_model(tx: Tx, session_id: str, usage: Mapping[str, SqlValue]) -> None:
    model = usage.get("model") or tx.value("SELECT model FROM sessions WHERE id = ?", (session_id,))
    if not model:
        return
    now = tx.clock.now()
    key = (session_id, model, *[usage.get(name) or "" for name in _MODEL_KEY[1:]])
    counters = (*COUNTERS, *COSTS)
    amounts = [usage.get(name) or 0 for name in counters]
    added = ", ".join(f"{name} = session_model_usage.{name} + excluded.{name}" for name in counters)
    names = ", ".join(["session_id", *_MODEL_KEY, *counters, "first_seen", "last_seen"])
    placeholders = ", ".join("?" * (len(key) + len(amounts) + 2))
    tx.execute(
        f"INSERT INTO session_model_usage ({names}) VALUES ({placeholders})"  # noqa: S608 - our names
        f" ON CONFLICT ({', '.join(['session_id', *_MODEL_KEY])})"
        f" DO UPDATE SET {added}, last_seen = excluded.last_seen",
        (*key, *amounts, now, now),
    )


class UsageRepository(Repository):
    """Tokens and costs of conversations."""

    def update_token_counts(
        self,
        /,
        session_id: str,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        *,
        absolute: bool = False,
        **usage: SqlValue,
    ) -> None:
        """Add usage to a session (or set it, with `absolute`).

        Names are the columns of a session: input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, reasoning_tokens, api_call_count, estimated_cost_usd,
        actual_cost_usd, model, billing_provider, billing_base_url, billing_mode,
        cost_status, cost_source, pricing_version; and task.
        """
        usage |= {"input_tokens": input_tokens, "output_tokens": output_tokens}
        self.engine.write(lambda tx: update(tx, session_id, usage, absolute=absolute))

    def record_auxiliary_usage(self, /, session_id: str, task: str, **usage: SqlValue) -> None:
        """Add usage of a side task (a title, a summary) to a session, recorded under *task*."""
        self.engine.write(
            lambda tx: update(tx, session_id, {**usage, "task": task}, absolute=False)
        )

    def answers(self, session_id: str) -> dict[int, AnswerUsage]:
        """Tokens, cost and time of the answers of a session, by message ID."""
        return self.engine.read(lambda reader: of_session(reader, session_id))

    def totals(self) -> UsageTotals:
        """Totals over all sessions."""
        return UsageTotals._make(self.engine.read(lambda reader: reader.rows(TOTALS))[0])

    def with_tasks(self, session_id: str) -> UsageTotals:
        """Totals of a session and of the tasks that were delegated in it."""
        values = (session_id, session_id, SUBAGENT)
        return UsageTotals._make(self.engine.read(lambda r: r.rows(TOTALS_WITH_TASKS, values))[0])
