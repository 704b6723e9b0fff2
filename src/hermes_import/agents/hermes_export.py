"""Exports of hermes-agent: `hermes sessions export` writes one session per line, as columns."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import title_of
from hermes_import.export_files import ExportFiles
from hermes_import.json_lines import JsonLines
from hermes_import.times import seconds_of
from hermes_state.imports.rows import (
    ConversationKind,
    ImportedConversation,
    ImportedMessage,
    ImportedPart,
    ImportedUsage,
    UnitState,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_core.messages import Content, ToolCallDict
    from hermes_import.sources import Unit

FIELDS: Final = ("id", "source", "started_at", "messages")


class HermesExport(ExportFiles):
    """A file of exported sessions."""

    name = "hermes-export"
    label = "export of hermes-agent"

    def root_at(self, path: Path) -> Path | None:
        """*path*, if its first line is a session of hermes-agent."""
        if not path.is_file() or path.suffix not in {".jsonl", ".json"}:
            return None
        first = next(iter(JsonLines(path, Counter(), UnitState(""))), {})
        return path if all(name in first for name in FIELDS) else None

    def read(self, unit: Unit, before: UnitState | None) -> HermesExportReading:
        """Read the file."""
        del before
        return HermesExportReading(unit)


class HermesExportReading:
    """One pass over a file."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[ImportedPart]:
        """The sessions in the order of the file."""
        for record in JsonLines(self._unit.path, self.unknown, UnitState("")):
            if not text_in(record, "id"):
                self.unknown["line without a session"] += 1
                continue
            ended = record.get("ended_at")
            yield ImportedPart(
                _conversation(record),
                [_message(record, row) for row in objects_in(record, "messages")],
                [_usage(record)],
                seconds_of(ended) if ended else None,
                is_last=True,
            )

    def state(self) -> UnitState:
        """The file is read completely."""
        return UnitState(self._unit.revision, unknown=self.unknown)


def _conversation(record: JsonObject) -> ImportedConversation:
    config = _parsed(record.get("model_config"))
    markers = config if isinstance(config, dict) else {}
    parent = text_in(record, "parent_session_id") or None
    kind = ConversationKind.MAIN
    if text_in(record, "source") == "subagent" or "_delegate_from" in markers:
        kind = ConversationKind.SUBAGENT
    elif "_branched_from" in markers:
        kind = ConversationKind.FORK
    return ImportedConversation(
        text_in(record, "id"),
        seconds_of(record.get("started_at")),
        kind,
        parent,
        title_of(text_in(record, "title")),
        text_in(record, "cwd") or None,
        text_in(record, "git_branch") or None,
        text_in(record, "model") or None,
        bool(record.get("archived")),
        text_in(record, "source"),
        keeps_id=True,
    )


def _message(record: JsonObject, row: JsonObject) -> ImportedMessage:
    calls = _parsed(row.get("tool_calls"))
    content = row.get("content")
    return ImportedMessage(
        f"{text_in(record, 'id')}:{row.get('id', row.get('timestamp'))}",
        text_in(row, "role"),
        cast("Content", content if isinstance(content, (str, list, dict)) else None),
        seconds_of(row.get("timestamp")),
        _calls(calls),
        text_in(row, "tool_call_id") or None,
        text_in(row, "tool_name") or None,
        text_in(row, "reasoning") or text_in(row, "reasoning_content") or None,
        text_in(row, "finish_reason") or None,
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


def _usage(record: JsonObject) -> ImportedUsage:
    costs = record.get("actual_cost_usd") or record.get("estimated_cost_usd")
    return ImportedUsage(
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
