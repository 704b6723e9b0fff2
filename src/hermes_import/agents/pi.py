"""pi: one JSON-lines file per conversation; a fork repeats the entries of its origin."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import import contents
from hermes_import.line_files import LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_core.messages import ToolCallDict

NAME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d)-(\d+)Z_(.+)")
IGNORED: Final = frozenset({"thinking_level_change", "label", "custom", "custom_message"})
STOP_REASONS: Final = {
    "toolUse": "tool_calls",
    "aborted": contents.INTERRUPTED,
    "error": contents.FAILED,
}


class PiReading(LineReading):
    """One pass over a file."""

    def conversation(self) -> rows.ImportedConversation | None:
        about = self.about
        if not about.get("id"):
            return None
        parent = text_in(about, "parent")
        return rows.ImportedConversation(
            text_in(about, "id"),
            contents.seconds_of(about.get("started_at")),
            rows.ConversationKind.FORK if parent else rows.ConversationKind.MAIN,
            parent or None,
            text_in(about, "title") or None,
            text_in(about, "cwd") or None,
            model=text_in(about, "model") or None,
        )

    def read_record(self, record: JsonObject) -> None:
        kind, at = record.get("type"), contents.seconds_of(record.get("timestamp"))
        key = self.own_key or f"{text_in(record, 'id')}:{text_in(record, 'timestamp')}"
        if kind == "session":
            self._read_header(record, at)
        elif kind == "message":
            self._read_message(object_in(record, "message"), at, key)
        elif kind in {"compaction", "branch_summary"}:
            text = text_in(record, "summary")
            is_all = kind == "compaction"
            summary = rows.ImportedMessage(key, "user", text, at, is_summary=is_all, is_copy=True)
            self.messages.append(summary)
        elif kind == "model_change":
            self.about.setdefault("model", text_in(record, "modelId"))
        elif kind == "session_info":
            self.about["title"] = contents.title_of(text_in(record, "name"))
        elif kind not in IGNORED:
            self.unknown[str(kind)] += 1

    def _read_header(self, record: JsonObject, at: float) -> None:
        origin = PurePosixPath(text_in(record, "parentSession")).name.split(".", 1)[0]
        found = NAME.match(origin)
        self.about |= {
            "id": text_in(record, "id") or self.stem,
            "started_at": at,
            "cwd": text_in(record, "cwd"),
            "parent": found[5] if found else origin,
        }

    def _read_message(self, message: JsonObject, at: float, key: str) -> None:
        role = message.get("role")
        if role == "user":
            self.begin_turn()
            self.messages.append(rows.ImportedMessage(key, "user", _text(message), at))
        elif role == "assistant":
            self.messages.append(_answer(message, at, key))
        elif role == "toolResult":
            is_error = bool(message.get("isError"))
            self.messages.append(
                rows.ImportedMessage(
                    key,
                    "tool",
                    contents.tool_result(_text(message), is_error=is_error),
                    at,
                    tool_call_id=text_in(message, "toolCallId"),
                    tool_name=text_in(message, "toolName") or None,
                    finish_reason=contents.FAILED if is_error else None,
                )
            )
        elif role == "bashExecution":  # a command that the user typed
            text = f"{text_in(message, 'command')}\n{text_in(message, 'output')}"
            self.messages.append(rows.ImportedMessage(key, "user", text, at, is_copy=True))
        elif role not in {"system", "custom", "branchSummary", "compactionSummary"}:
            self.unknown[f"message/{role}"] += 1


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return contents.joined([text_in(part, "text") for part in objects_in(message, "content")])


def _answer(message: JsonObject, at: float, key: str) -> rows.ImportedMessage:
    parts = objects_in(message, "content")
    calls: list[ToolCallDict] = [
        contents.tool_call(text_in(part, "id"), text_in(part, "name"), part.get("arguments"))
        for part in parts
        if part.get("type") == "toolCall"
    ]
    stop = text_in(message, "stopReason")
    return rows.ImportedMessage(
        key,
        "assistant",
        _text(message),
        at,
        calls,
        reasoning=contents.joined([text_in(part, "thinking") for part in parts]) or None,
        finish_reason=STOP_REASONS.get(stop, stop) or None,
        usage=_tokens(message),
    )


def _tokens(message: JsonObject) -> rows.ImportedUsage:
    usage = object_in(message, "usage")
    cost = object_in(usage, "cost").get("total")
    return rows.ImportedUsage(
        text_in(message, "model"),
        number_in(usage, "input"),
        number_in(usage, "output"),
        number_in(usage, "cacheRead"),
        number_in(usage, "cacheWrite"),
        number_in(usage, "reasoning"),
        float(cost) if isinstance(cost, (int, float)) else None,
    )


class Pi(LineFiles):
    """The history of pi."""

    name = "pi"
    label = "pi"
    home_folder = ".pi/agent"
    variable = "PI_CODING_AGENT_DIR"
    reading = PiReading
    folders = ("sessions",)

    def created_at(self, name: str) -> float:
        """The time in the name of a file."""
        found = NAME.match(name)
        return contents.seconds_of(f"{found[1]}:{found[2]}:{found[3]}") if found else 0.0
