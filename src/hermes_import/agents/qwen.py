"""Qwen Code: one JSON-lines file per conversation; a fork names the origin of each record."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import FAILED, joined, seconds_of, title_of, tool_call, tool_result
from hermes_import.line_files import LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit

IGNORED: Final = frozenset({"attribution_snapshot", "ui_telemetry", "slash_command", "at_command"})
TELEMETRY: Final = re.compile(rb'[^\n]{0,500}?"subtype":"ui_telemetry"')


class QwenReading(LineReading):
    """One pass over a file."""

    skipped = TELEMETRY

    def __init__(self, unit: Unit, start: rows.UnitState) -> None:
        super().__init__(unit, start)
        self._is_subagent = "subagents" in unit.path.parts
        if self._is_subagent and not self.about:
            self._read_meta()

    def _read_meta(self) -> None:
        meta = self.description()
        self.about |= {
            "title": title_of(text_in(meta, "description")),
            "parent": text_in(meta, "parentSessionId") or self.unit.path.parent.name,
            "model": text_in(meta, "model"),
        }

    def conversation(self) -> rows.ImportedConversation | None:
        about = self.about
        if "started_at" not in about:
            return None
        parent = text_in(about, "parent")
        kind = rows.ConversationKind.MAIN
        if self._is_subagent:
            kind = rows.ConversationKind.SUBAGENT
        elif parent:
            kind = rows.ConversationKind.FORK
        return rows.ImportedConversation(
            self.stem,
            seconds_of(about.get("started_at")),
            kind,
            parent or None,
            text_in(about, "title") or None,
            text_in(about, "cwd") or None,
            text_in(about, "branch") or None,
            text_in(about, "model") or None,
        )

    def read_record(self, record: JsonObject) -> None:
        kind, at = record.get("type"), seconds_of(record.get("timestamp"))
        self._note_place(record, at)
        key = text_in(record, "uuid") or self.place
        parts = objects_in(object_in(record, "message"), "parts")
        if kind == "user":
            if record.get("provenance", "real_user") == "real_user":
                self.begin_turn()
                self.messages.append(rows.ImportedMessage(key, "user", _text(parts), at))
        elif kind == "assistant":
            self._read_answer(record, parts, at, key)
        elif kind == "tool_result":
            self._read_results(record, parts, at, key)
        elif kind == "system":
            self._read_system(record, at, key)
        else:
            self.unknown[str(kind)] += 1

    def _note_place(self, record: JsonObject, at: float) -> None:
        if "started_at" in self.about:
            return
        origin = text_in(object_in(record, "forkedFrom"), "sessionId")
        self.about |= {
            "started_at": at,
            "cwd": record.get("cwd"),
            "branch": record.get("gitBranch"),
            **({"parent": origin} if origin else {}),
        }

    def _read_answer(
        self, record: JsonObject, parts: list[JsonObject], at: float, key: str
    ) -> None:
        model = text_in(record, "model") or text_in(self.about, "model")
        self.about.setdefault("model", model)
        calls = [
            tool_call(text_in(call, "id"), text_in(call, "name"), call.get("args"))
            for part in parts
            if (call := object_in(part, "functionCall"))
        ]
        thoughts = [part for part in parts if part.get("thought")]
        usage = object_in(record, "usageMetadata")
        self.messages.append(
            rows.ImportedMessage(
                key,
                "assistant",
                _text([part for part in parts if not part.get("thought")]),
                at,
                calls,
                reasoning=_text(thoughts) or None,
                finish_reason="tool_calls" if calls else "stop",
                usage=_tokens(model, usage) if usage else None,
            )
        )

    def _read_results(
        self, record: JsonObject, parts: list[JsonObject], at: float, key: str
    ) -> None:
        outcome = object_in(record, "toolCallResult")
        code = number_in(object_in(outcome, "resultDisplay"), "exitCode")
        is_error = outcome.get("status") == "error" or code != 0
        for number, part in enumerate(parts):
            response = object_in(part, "functionResponse")
            result = object_in(response, "response")
            text = text_in(result, "output") or text_in(result, "error") or json.dumps(result)
            self.messages.append(
                rows.ImportedMessage(
                    f"{key}:{number}" if number else key,
                    "tool",
                    tool_result(text, is_error=is_error, exit_code=code),
                    at,
                    tool_call_id=text_in(response, "id"),
                    tool_name=text_in(response, "name") or None,
                    finish_reason=FAILED if is_error else None,
                )
            )

    def _read_system(self, record: JsonObject, at: float, key: str) -> None:
        kind, payload = record.get("subtype"), object_in(record, "systemPayload")
        if kind == "chat_compression":
            history = objects_in(payload, "compressedHistory")
            text = joined([_text(objects_in(each, "parts")) for each in history[:1]])
            summary = rows.ImportedMessage(key, "user", text, at, is_summary=True, is_copy=True)
            self.messages.append(summary)
        elif kind == "custom_title":
            self.about["title"] = title_of(text_in(payload, "customTitle"))
        elif kind not in IGNORED:
            self.unknown[f"system/{kind}"] += 1


def _text(parts: list[JsonObject]) -> str:
    return "".join(text_in(part, "text") for part in parts)


def _tokens(model: str, usage: JsonObject) -> rows.ImportedUsage:
    cached = number_in(usage, "cachedContentTokenCount")
    return rows.ImportedUsage(
        model,
        max(0, number_in(usage, "promptTokenCount") - cached),
        number_in(usage, "candidatesTokenCount"),
        cached,
        0,
        number_in(usage, "thoughtsTokenCount"),
    )


class Qwen(LineFiles):
    """The history of Qwen Code."""

    name = "qwen"
    label = "Qwen Code"
    home_folder = ".qwen"
    reading = QwenReading
    folders = ("projects",)

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """A fork after its origin: by the time of the last change, copies of a home aside."""
        return sorted(units, key=lambda unit: (_is_fork(unit), unit.created_at, unit.unit_id))


def _is_fork(unit: Unit) -> bool:
    try:
        with unit.path.open("rb") as file:
            return b'"forkedFrom"' in file.readline()
    except OSError:
        return False
