"""Codex CLI: one JSON-lines file per conversation ("rollout").

Events repeat most response items; prompts are taken from events, the rest from items. Token
counts are repeated without a new response, so usage is counted by response. A fork holds only
what is new and points into the file of its origin.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import FAILED, INTERRUPTED, joined, seconds_of, tool_call, tool_result
from hermes_import.line_files import LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_core.messages import ToolCallDict
    from hermes_import.sources import Unit

UUID_CHARACTERS: Final = 36
NAME_TIME: Final = re.compile(r"rollout-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)")
# Texts in user items that the program wrote, not the user.
NOT_PROMPTS: Final = (
    "<environment_context>", "<user_instructions>", "<turn_aborted>", "<subagent_notification>",
    "# AGENTS.md instructions",
)  # fmt: skip
IGNORED: Final = frozenset({"world_state", "turn_started", "ghost_snapshot", "file_snapshot"})
CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
KNOWN_ITEMS: Final = frozenset({"web_search_call", "ghost_snapshot", "compaction", "other"})


class CodexReading(LineReading):
    """One pass over a file."""

    def __init__(self, unit: Unit, start: rows.UnitState) -> None:
        super().__init__(unit, start)
        self._answer: Response | None = None
        self._prompt: tuple[str, str, float] | None = None  # an item whose event is to come
        self._calls: dict[str, str] = {}
        self._exit_codes: dict[str, int] = {}
        self._counted: list[rows.ImportedUsage] = []  # by token counts, for files without records

    def finish(self) -> None:
        self._flush_prompt()
        self._flush()
        if not self.about.get("has_records"):
            self.usage += self._counted

    def conversation(self) -> rows.ImportedConversation | None:
        about = self.about
        if not about.get("id"):
            return None
        return rows.ImportedConversation(
            text_in(about, "id"),
            seconds_of(about.get("started_at")),
            rows.ConversationKind(text_in(about, "kind")),
            text_in(about, "parent") or None,
            cwd=text_in(about, "cwd") or None,
            git_branch=text_in(about, "branch") or None,
            model=text_in(about, "model") or None,
            is_archived="archived_sessions" in self.unit.path.parts,
        )

    def inherited(self) -> rows.InheritedHistory | None:
        base = text_in(self.about, "base_thread")
        return rows.InheritedHistory(base, number_in(self.about, "base_end")) if base else None

    def read_record(self, record: JsonObject) -> None:
        kind, payload = record.get("type"), object_in(record, "payload")
        at, key = seconds_of(record.get("timestamp")), self._key(record)
        if "ordinal" in record:
            self.about[rows.END_KEY] = number_in(record, "ordinal") + 1
        if kind == "session_meta":
            self._read_meta(payload, at)
        elif kind == "turn_context":
            self.about.setdefault("model", text_in(payload, "model"))
            self.about["current_model"] = text_in(payload, "model")
        elif kind == "response_item":
            self._read_item(payload, at, key)
        elif kind == "event_msg":
            self._read_event(payload, at, key)
        elif kind == "token_usage_record":
            self._flush()
            self._read_usage(payload)
        elif kind == "compacted":
            self._flush()
            text = text_in(payload, "message")
            summary = rows.ImportedMessage(key, "user", text, at, is_summary=True, is_copy=True)
            self.messages.append(summary)
        elif kind not in IGNORED:
            self.unknown[str(kind)] += 1

    def _key(self, record: JsonObject) -> str:
        """The identity of a record; older versions do not number them."""
        if self.own_key:
            return self.own_key
        place = record.get("ordinal", f"@{self.line_position}")
        return f"{text_in(self.about, 'id')}:{place}"

    def _read_meta(self, payload: JsonObject, at: float) -> None:
        about = self.about
        if about.get("id"):
            return  # a fork of an older version repeats that of its origin
        base = object_in(payload, "history_base")
        forked = text_in(payload, "forked_from_id")
        spawn = object_in(object_in(object_in(payload, "source"), "subagent"), "thread_spawn")
        parent = text_in(payload, "parent_thread_id") or text_in(spawn, "parent_thread_id")
        kind = rows.ConversationKind.MAIN
        if parent:
            kind = rows.ConversationKind.SUBAGENT
        elif forked:
            kind, parent = rows.ConversationKind.FORK, forked
        about |= {
            "id": text_in(payload, "id") or self.stem[-UUID_CHARACTERS:],
            "started_at": seconds_of(payload.get("timestamp"), at),
            "cwd": text_in(payload, "cwd"),
            "branch": text_in(object_in(payload, "git"), "branch"),
            "kind": kind.value,
            "parent": parent,
            "base_thread": text_in(base, "thread_id"),
            "base_end": number_in(base, "end_ordinal_exclusive"),
        }

    def _read_item(self, item: JsonObject, at: float, key: str) -> None:
        kind = item.get("type")
        if kind == "message":
            self._read_message(item, at, key)
        elif kind == "reasoning":
            self._response(key, at).thoughts += _texts(item, "summary") or _texts(item, "content")
        elif kind in CALLS:
            call_id = text_in(item, "call_id") or text_in(item, "id")
            name = text_in(item, "name") or "shell"
            arguments = item.get("arguments") or item.get("input") or item.get("action")
            self._calls[call_id] = name
            self._response(key, at).calls.append(tool_call(call_id, name, arguments))
        elif kind in RESULTS:
            self._flush()
            self.messages.append(self._result(item, at, key))
        elif kind not in KNOWN_ITEMS:
            self.unknown[f"response_item/{kind}"] += 1

    def _read_message(self, item: JsonObject, at: float, key: str) -> None:
        text = joined(_texts(item, "content"))
        if item.get("role") == "assistant":
            response = self._response(key, at)
            if response.texts:  # another message of the same response
                self._flush()
                response = self._response(key, at)
            response.texts.append(text)
        elif item.get("role") == "user" and (self.own_key or not text.startswith(NOT_PROMPTS)):
            self._flush()
            self._prompt = (key, text, at)

    def _response(self, key: str, at: float) -> Response:
        self._flush_prompt()
        if self._answer is not None and self.own_key not in ("", self._answer.key):
            self._flush()  # of another message of Hermes
        if self._answer is None:
            self._answer = Response(key, at)
        return self._answer

    def _result(self, item: JsonObject, at: float, key: str) -> rows.ImportedMessage:
        call_id, output = text_in(item, "call_id"), item.get("output")
        if isinstance(output, dict):
            output = output.get("content") or output.get("output")
        text = output if isinstance(output, str) else joined(_texts(item, "output"))
        code = self._exit_codes.pop(call_id, 0)
        return rows.ImportedMessage(
            key,
            "tool",
            tool_result(text, exit_code=code),
            at,
            tool_call_id=call_id,
            tool_name=self._calls.get(call_id),
            finish_reason=FAILED if code else None,
        )

    def _read_event(self, event: JsonObject, at: float, key: str) -> None:
        kind, item = event.get("type"), object_in(event, "item")
        if kind == "task_started":
            self._flush()
            self.begin_turn()
        elif kind == "user_message" or item.get("type") == "UserMessage":
            self._flush()
            text = text_in(event, "message") or joined(_texts(item, "content"))
            if self._prompt is not None:  # its item, which may be stored already
                key = self._prompt[0]
            self._prompt = None
            self.messages.append(rows.ImportedMessage(key, "user", text, at, may_change=True))
        elif item.get("type") == "CommandExecution":
            self._exit_codes[text_in(item, "id")] = number_in(item, "exit_code")
        elif kind == "exec_command_end":
            self._exit_codes[text_in(event, "call_id")] = number_in(event, "exit_code")
        elif kind == "turn_aborted":
            self._flush()
            self.finish_last(INTERRUPTED)
        elif kind in ("error", "stream_error"):
            self._flush()
            self.finish_last(FAILED)
        elif kind == "token_count":
            self._count(object_in(event, "info"))

    def _read_usage(self, payload: JsonObject) -> None:
        self.about["has_records"] = True
        key = text_in(payload, "response_id") or text_in(payload, "turn_id")
        self.usage.append(self._tokens(object_in(payload, "usage"), key))
        self.about["answer"] = ""  # the next record belongs to another answer

    def _count(self, info: JsonObject) -> None:
        """Count the usage of a response from its token count, unless it repeats the last one."""
        total = number_in(object_in(info, "total_token_usage"), "total_tokens")
        if total > number_in(self.about, "total"):
            self.about["total"] = total
            key = f"{text_in(self.about, 'id')}:{total}"
            self._counted.append(self._tokens(object_in(info, "last_token_usage"), key))
            if not self.about.get("has_records"):
                self.about["answer"] = ""

    def _tokens(self, usage: JsonObject, key: str) -> rows.ImportedUsage:
        cached = number_in(usage, "cached_input_tokens")
        written = number_in(usage, "cache_write_input_tokens")
        return rows.ImportedUsage(
            text_in(self.about, "current_model"),
            max(0, number_in(usage, "input_tokens") - cached - written),
            number_in(usage, "output_tokens"),
            cached,
            written,
            number_in(usage, "reasoning_output_tokens"),
            key=key,
            answer=text_in(self.about, "answer"),
        )

    def _flush_prompt(self) -> None:
        if self._prompt is not None:
            key, text, at = self._prompt
            self.messages.append(rows.ImportedMessage(key, "user", text, at, may_change=True))
            self._prompt = None

    def _flush(self) -> None:
        """Add the current response to the messages."""
        if self._answer is not None:
            message = self._answer.message()
            self.messages.append(message)
            self.about["answer"] = message.key
            self._answer = None


class Response:
    """A response of the model, made from its items."""

    def __init__(self, key: str, at: float) -> None:
        self.key = key
        self._at = at
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCallDict] = []

    def message(self) -> rows.ImportedMessage:
        """The complete message."""
        return rows.ImportedMessage(
            self.key,
            "assistant",
            joined(self.texts),
            self._at,
            self.calls,
            reasoning=joined(self.thoughts) or None,
            finish_reason="tool_calls" if self.calls else "stop",
            may_change=True,
            only_grows=True,
        )


def _texts(item: JsonObject, name: str) -> list[str]:
    return [text for part in objects_in(item, name) if (text := text_in(part, "text"))]


class Codex(LineFiles):
    """The history of Codex CLI."""

    name = "codex"
    label = "Codex CLI"
    home_folder = ".codex"
    variable = "CODEX_HOME"
    reading = CodexReading
    folders = ("sessions", "archived_sessions")

    def created_at(self, name: str) -> float:
        """The time in the name of a file."""
        found = NAME_TIME.match(name)
        return seconds_of(f"{found[1]}T{found[2]}:{found[3]}:{found[4]}") if found else 0.0
