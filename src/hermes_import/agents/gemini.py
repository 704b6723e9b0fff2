"""Gemini CLI: one JSON-lines file per conversation, in which later lines replace earlier ones.

Each answer is written twice, the second time with its tool calls. A `$set` of messages repeats
the conversation on every resume, without tokens and partly under new IDs: it is not read. The
program deletes conversations by mistake, so a missing file means nothing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import FAILED, joined, seconds_of, title_of, tool_call, tool_result
from hermes_import.line_files import ENDINGS, LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit

CHATS: Final = "chats"
REPLAY: Final = re.compile(rb'\{"\$set":\{"messages"')
CONTEXT: Final = "<session_context>"
IGNORED: Final = frozenset({"info", "warning", "error"})  # notices of the program


class GeminiReading(LineReading):
    """One pass over a file, always from its beginning."""

    skipped = REPLAY

    def parts(self) -> Iterator[rows.ImportedPart]:
        self._records: dict[str, JsonObject] = {}
        if self.unit.path.suffix != ".json":
            yield from super().parts()
            return
        self._read_object(self.unit.path)  # an older version: the file is one object
        yield from self.last_part()

    def _read_object(self, path: Path) -> None:
        whole = json.loads(path.read_bytes())
        self.read_record(whole)
        for record in objects_in(whole, "messages"):
            self.read_record(record)

    def read_record(self, record: JsonObject) -> None:
        if "sessionId" in record:
            self.about.setdefault("id", text_in(record, "sessionId"))
            self.about.setdefault("started_at", seconds_of(record.get("startTime")))
            self.about.setdefault("kind", text_in(record, "kind"))
        elif "$set" in record:
            title = title_of(text_in(object_in(record, "$set"), "summary"))
            self.about["title"] = title or self.about.get("title")
        elif record.get("type") in {"user", "gemini"}:
            self._records[text_in(record, "id")] = record
        elif record.get("type") not in IGNORED:
            self.unknown[str(record.get("type") or ",".join(record))] += 1

    def finish(self) -> None:
        for key, record in self._records.items():
            at = seconds_of(record.get("timestamp"))
            if record.get("type") == "gemini":
                self._add_answer(key, record, at)
            elif text := _prompt(record):
                self.messages.append(rows.ImportedMessage(key, "user", text, at))

    def _add_answer(self, key: str, record: JsonObject, at: float) -> None:
        model, calls = text_in(record, "model"), objects_in(record, "toolCalls")
        self.about.setdefault("model", model)
        thoughts = [
            joined([text_in(thought, "subject"), text_in(thought, "description")])
            for thought in objects_in(record, "thoughts")
        ]
        self.messages.append(
            rows.ImportedMessage(
                key,
                "assistant",
                _content(record),
                at,
                [tool_call(text_in(c, "id"), text_in(c, "name"), c.get("args")) for c in calls],
                reasoning=joined(thoughts) or None,
                finish_reason="tool_calls" if calls else "stop",
                usage=_tokens(model, object_in(record, "tokens")),
                may_change=True,
            )
        )
        self.messages += [_result(key, call, at) for call in calls if call.get("result")]

    def conversation(self) -> rows.ImportedConversation | None:
        about = self.about
        if not about.get("id"):
            return None
        is_subagent = about.get("kind") == "subagent"
        return rows.ImportedConversation(
            text_in(about, "id"),
            seconds_of(about.get("started_at")),
            rows.ConversationKind.SUBAGENT if is_subagent else rows.ConversationKind.MAIN,
            self.unit.path.parent.name if is_subagent else None,
            text_in(about, "title") or None,
            self._project(),
            model=text_in(about, "model") or None,
        )

    def _project(self) -> str | None:
        """The folder that the conversation worked in, from the file that names it."""
        folder = next((each for each in self.unit.path.parents if each.name == CHATS), None)
        if folder is None:
            return None
        try:
            return (folder.parent / ".project_root").read_text(encoding="utf-8").strip() or None
        except OSError:
            return None


def _content(record: JsonObject) -> str:
    content = record.get("content")
    if isinstance(content, str):
        return content
    return joined([text_in(part, "text") for part in objects_in(record, "content")])


def _prompt(record: JsonObject) -> str:
    """The text of a prompt; empty for tool results and what the program wrote."""
    text = _content(record)
    return "" if text.startswith(CONTEXT) else text


def _result(key: str, call: JsonObject, at: float) -> rows.ImportedMessage:
    responses = [object_in(part, "functionResponse") for part in objects_in(call, "result")]
    answers = [object_in(response, "response") for response in responses]
    is_error = call.get("status") == "error"
    text = joined([text_in(each, "output") or text_in(each, "error") for each in answers])
    return rows.ImportedMessage(
        f"{key}:{text_in(call, 'id')}",
        "tool",
        tool_result(text, is_error=is_error),
        seconds_of(call.get("timestamp"), at),
        tool_call_id=text_in(call, "id"),
        tool_name=text_in(call, "name") or None,
        finish_reason=FAILED if is_error else None,
    )


def _tokens(model: str, tokens: JsonObject) -> rows.ImportedUsage | None:
    if not tokens:
        return None
    cached, thoughts = number_in(tokens, "cached"), number_in(tokens, "thoughts")
    return rows.ImportedUsage(
        model,
        max(0, number_in(tokens, "input") - cached),
        number_in(tokens, "output") + thoughts,
        cached,
        0,
        thoughts,
    )


class Gemini(LineFiles):
    """The history of Gemini CLI."""

    name = "gemini"
    label = "Gemini CLI"
    home_folder = ".gemini"
    reading = GeminiReading
    folders = ("tmp",)
    endings = (*ENDINGS, ".json")

    def has_conversation(self, path: Path) -> bool:
        """Whether a file is in a folder of conversations."""
        return CHATS in path.parts

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """Sub-agents after the conversations that they belong to."""
        return sorted(units, key=lambda unit: (len(unit.path.parts), unit.unit_id))
