"""The values of columns that an import fills: those of a message, and sums of usage."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

import orjson

from hermes_core.known_models import PricedTokens, find_vendor_model, price
from hermes_state.messages.rows import encode_content, to_utf8_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from hermes_core.json_values import JsonData
    from hermes_state.engine.values import SqlValue
    from hermes_state.imports.rows import ImportedMessage, ImportedUsage

    AnswerUsageRow: TypeAlias = tuple[SqlValue, ...]


def json_text(value: JsonData) -> str:
    """A value as JSON text, with characters as they are; lone surrogates are escaped."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, default=str)


MAX_REQUEST_TOKENS: Final = 10**12
COLUMNS: Final = (
    "session_id", "role", "content", "tool_calls", "tool_call_id", "tool_name", "reasoning",
    "finish_reason", "timestamp", "observed",
)  # fmt: skip


def calls_text(message: ImportedMessage) -> str | None:
    """The tool calls of a message as JSON text."""
    return json_text(message.tool_calls) if message.tool_calls else None  # type: ignore[arg-type]


def row_values(session_id: str, message: ImportedMessage) -> tuple[SqlValue, ...]:
    """The values of a row, in the order of COLUMNS."""
    call_id, name = message.tool_call_id, message.tool_name
    reasoning, reason = message.reasoning, message.finish_reason
    return (
        session_id,
        message.role,
        encode_content(message.content),
        calls_text(message),
        call_id and to_utf8_text(call_id),
        name and to_utf8_text(name),
        reasoning and to_utf8_text(reasoning),
        reason and to_utf8_text(reason),
        message.at,
        (message.columns.get("observed") or 0) if message.columns else 0,
    )


def _total(tokens: Sequence[int]) -> int:
    """A sum without numbers that cannot be those of one request."""
    if min(tokens) < 0 or max(tokens) > MAX_REQUEST_TOKENS:
        return sum(each for each in tokens if 0 <= each <= MAX_REQUEST_TOKENS)
    return sum(tokens)


def answer_usage_values(answers: Iterable[tuple[int, ImportedUsage]]) -> list[AnswerUsageRow]:
    """Rows of `hermes_answer_usage`; agents do not state how long an answer took."""
    rows: list[AnswerUsageRow] = []
    for row_id, usage in answers:
        tokens: tuple[int, ...] = usage[1:6]
        if not any(tokens):
            continue
        if min(tokens) < 0 or max(tokens) > MAX_REQUEST_TOKENS:
            tokens = tuple(each if 0 <= each <= MAX_REQUEST_TOKENS else 0 for each in tokens)
        cost = usage.cost_usd
        if cost is not None and not (math.isfinite(cost) and cost >= 0):
            cost = None
        status = "actual"
        if cost is None:
            cost = _estimated_cost(
                usage.model, PricedTokens(tokens[0], tokens[2], tokens[3], tokens[1])
            )
            status = "unknown" if cost is None else "estimated"
        rows.append((row_id, to_utf8_text(usage.model) or "", *tokens, cost, status, 0.0))
    return rows


def usage_by_model(spent: Iterable[ImportedUsage]) -> list[dict[str, SqlValue]]:
    """The sums of token usage of each model, as columns of a session."""
    models: dict[str, list[ImportedUsage]] = {}
    for each in spent:
        models.setdefault(each.model, []).append(each)
    return [_usage_columns(model, uses) for model, uses in models.items()]


def _usage_columns(model: str, uses: list[ImportedUsage]) -> dict[str, SqlValue]:
    columns: dict[str, SqlValue] = {
        "model": to_utf8_text(model),
        "input_tokens": _total([use.input_tokens for use in uses]),
        "output_tokens": _total([use.output_tokens for use in uses]),
        "cache_read_tokens": _total([use.cache_read_tokens for use in uses]),
        "cache_write_tokens": _total([use.cache_write_tokens for use in uses]),
        "reasoning_tokens": _total([use.reasoning_tokens for use in uses]),
        "api_call_count": sum(use.is_call for use in uses),
    }
    costs = [use.cost_usd for use in uses if use.cost_usd is not None]
    if costs:
        columns |= {
            "actual_cost_usd": sum(costs), "cost_status": "reported", "cost_source": "agent",
        }  # fmt: skip
        return columns
    tokens = PricedTokens(
        _total([use.input_tokens for use in uses]),
        _total([use.cache_read_tokens for use in uses]),
        _total([use.cache_write_tokens for use in uses]),
        _total([use.output_tokens for use in uses]),
    )
    estimate = _estimated_cost(model, tokens)
    if estimate is not None:
        known = find_vendor_model(model)
        columns |= {
            "estimated_cost_usd": estimate,
            "cost_status": "estimated",
            "cost_source": "price table",
            "pricing_version": known.version if known else None,
        }  # fmt: skip
    return columns


def _estimated_cost(model: str, tokens: PricedTokens) -> float | None:
    """The cost by the price table, where the agent does not state one."""
    known = find_vendor_model(model)
    return None if known is None or not any(tokens) else price(tokens, known)
