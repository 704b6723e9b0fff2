"""Exports of hermes-agent: `hermes sessions export` writes one session per line, as columns."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.agents.hermes_agent import conversation_of
from hermes_import.contents import seconds_of
from hermes_import.files import ExportFiles
from hermes_import.json_lines import JsonLines
from hermes_state.imports import rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_core.messages import Content, ToolCallDict
    from hermes_import.sources import Unit
    from hermes_state.engine.values import SqlValue

FIELDS: Final = ("id", "source", "started_at", "messages")


class HermesExport(ExportFiles):
    """A file of exported sessions."""

    name = "hermes-export"
    label = "export of hermes-agent"

    def root_at(self, path: Path) -> Path | None:
        """*path*, if its first line is a session of hermes-agent."""
        if not path.is_file() or path.suffix not in {".jsonl", ".json"}:
            return None
        first = next(iter(JsonLines(path, Counter(), rows.UnitState(""))), {})
        return path if all(name in first for name in FIELDS) else None

    def read(self, unit: Unit, before: rows.UnitState | None) -> HermesExportReading:
        """Read the file."""
        del before
        return HermesExportReading(unit)


class HermesExportReading:
    """One pass over a file."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[rows.ImportedPart]:
        """The sessions in the order of the file."""
        for record in JsonLines(self._unit.path, self.unknown, rows.UnitState("")):
            if not text_in(record, "id"):
                self.unknown["line without a session"] += 1
                continue
            yield rows.ImportedPart(
                conversation_of(_session_columns(record)),
                [_message(record, row) for row in objects_in(record, "messages")],
                [_usage(record)],
                seconds_of(record.get("ended_at")) or None,
                is_last=True,
            )

    def state(self) -> rows.UnitState:
        """The file is read completely."""
        return rows.UnitState(self._unit.revision, unknown=self.unknown)


def _columns(record: JsonObject) -> dict[str, SqlValue]:
    """The columns of a row; those with JSON are texts again."""
    return {
        name: json.dumps(value) if isinstance(value, (list, dict)) else value
        for name, value in record.items()
        if name != "messages"
    }


def _session_columns(record: JsonObject) -> dict[str, SqlValue]:
    times = {name: seconds_of(record.get(name)) or None for name in ("started_at", "ended_at")}
    return _columns(record) | times


def _message(record: JsonObject, row: JsonObject) -> rows.ImportedMessage:
    calls = _parsed(row.get("tool_calls"))
    content = row.get("content")
    return rows.ImportedMessage(
        f"{text_in(record, 'id')}:{row.get('id', row.get('timestamp'))}",
        text_in(row, "role"),
        cast("Content", content if isinstance(content, (str, list, dict)) else None),
        seconds_of(row.get("timestamp")),
        _calls(calls),
        text_in(row, "tool_call_id") or None,
        text_in(row, "tool_name") or None,
        text_in(row, "reasoning") or text_in(row, "reasoning_content") or None,
        text_in(row, "finish_reason") or None,
        columns=_columns(row),
    )


def _calls(value: JsonValue) -> list[ToolCallDict]:
    calls: list[ToolCallDict] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            function = object_in(item, "function")
            name, arguments = text_in(function, "name"), text_in(function, "arguments")
            calls.append(
                {
                    "id": text_in(item, "id"),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
            )
    return calls


def _parsed(value: JsonValue) -> JsonValue:
    """A column that holds JSON, as text or parsed."""
    if not isinstance(value, str):
        return value
    try:
        parsed: JsonValue = json.loads(value)
    except ValueError:
        return None
    return parsed


def _usage(record: JsonObject) -> rows.ImportedUsage:
    costs = record.get("actual_cost_usd") or record.get("estimated_cost_usd")
    return rows.ImportedUsage(
        text_in(record, "model"),
        number_in(record, "input_tokens"),
        number_in(record, "output_tokens"),
        number_in(record, "cache_read_tokens"),
        number_in(record, "cache_write_tokens"),
        number_in(record, "reasoning_tokens"),
        float(costs) if isinstance(costs, (int, float)) else None,
        key=text_in(record, "id"),
        is_call=False,
    )
