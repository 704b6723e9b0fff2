"""Codex CLI: one JSON-lines file per conversation ("rollout").

Events repeat most response items; prompts are taken from events, the rest from items. Token
counts are repeated without a new response, so usage is counted by response. A fork holds only
what is new and points into the file of its origin.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import FAILED, INTERRUPTED, joined, tool_call, tool_result
from hermes_import.files import existing, file_unit, start_of, walk
from hermes_import.json_lines import HEAD_KEY, JsonLines
from hermes_import.sources import by_creation
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
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_core.messages import ToolCallDict
    from hermes_import.sources import Unit

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
FOLDERS: Final = ("sessions", "archived_sessions")
MESSAGES_PER_PART: Final = 500
MAX_INHERITED_KEYS: Final = 2000  # records between a fork and the last message before it
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


class Codex:
    """The history of Codex CLI."""

    name = "codex"
    label = "Codex CLI"

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        folder = Path(environ.get("CODEX_HOME") or home / ".codex")
        return [folder] if existing([folder / name for name in FOLDERS]) else []

    def root_at(self, path: Path) -> Path | None:
        return path if existing([path / name for name in FOLDERS]) else None

    def units(self, root: Path) -> Iterator[Unit]:
        for folder in FOLDERS:
            for entry in walk(root / folder, SUFFIXES):
                unit = file_unit(Path(entry.path), _created_at(entry.name))
                if unit is not None:
                    yield unit

    def in_order(self, units: list[Unit]) -> list[Unit]:
        return by_creation(units)

    def read(self, unit: Unit, before: UnitState | None) -> CodexReading:
        return CodexReading(unit, start_of(unit, before))

    def watched(self, root: Path) -> list[Path]:
        return existing([root / name for name in FOLDERS])


def _created_at(name: str) -> float:
    found = NAME_TIME.match(name)
    return seconds_of(f"{found[1]}T{found[2]}:{found[3]}:{found[4]}") if found else 0.0


class CodexReading:
    """One pass over a file, from the start of the last turn that was read before."""

    def __init__(self, unit: Unit, start: UnitState) -> None:
        self._unit = unit
        self.unknown: Counter[str] = Counter(start.unknown)
        self._lines = JsonLines(unit.path, self.unknown, start)
        self._about = dict(start.state)
        self._index = number_in(self._about, "index")  # of lines, where records have no ordinal
        self._turn = (self._lines.position, self._index)
        self._messages: list[ImportedMessage] = []
        self._usage: list[ImportedUsage] = []
        self._answer: Response | None = None
        self._prompt: tuple[str, str, float] | None = None  # an item whose event is to come
        self._calls: dict[str, str] = {}
        self._exit_codes: dict[str, int] = {}
        self._total = number_in(self._about, "total")
        self._has_records = bool(self._about.get("has_records"))
        self._counted: list[ImportedUsage] = []  # by token counts, for files without records

    def parts(self) -> Iterator[ImportedPart]:
        for line in self._lines.raw():
            record = self._lines.parse(line)
            if record is not None:
                self._read_record(record, len(line))
            self._index += 1
            if len(self._messages) >= MESSAGES_PER_PART:
                yield self._part(is_last=False)
        self._flush()
        if self._about.get("id"):
            yield self._part(is_last=True)

    def state(self) -> UnitState:
        position, index = self._turn
        state = {
            **self._about,
            HEAD_KEY: self._lines.head,
            "index": index,
            "total": self._total,
            "has_records": self._has_records,
        }
        return UnitState(self._unit.revision, position, state, self.unknown)

    def _part(self, *, is_last: bool) -> ImportedPart:
        messages, self._messages = self._messages, []
        usage, self._usage = self._usage, []
        if is_last and not self._has_records:
            usage, self._counted = self._counted, []
        about = self._about
        conversation = ImportedConversation(
            text_in(about, "id"),
            seconds_of(about.get("started_at")),
            ConversationKind(text_in(about, "kind")),
            text_in(about, "parent") or None,
            cwd=text_in(about, "cwd") or None,
            git_branch=text_in(about, "branch") or None,
            model=text_in(about, "model") or None,
            is_archived="archived_sessions" in self._unit.path.parts,
        )
        base = text_in(about, "base_thread")
        end = number_in(about, "base_end")
        keys = [f"{base}:{n}" for n in range(end - 1, max(-1, end - MAX_INHERITED_KEYS), -1)]
        inherits = (base, keys) if base else None
        return ImportedPart(conversation, messages, usage, is_last=is_last, inherits=inherits)

    def _read_record(self, record: JsonObject, size: int) -> None:
        kind, payload = record.get("type"), object_in(record, "payload")
        at = seconds_of(record.get("timestamp"))
        ordinal = record.get("ordinal")
        key = f"{text_in(self._about, 'id')}:{self._index if ordinal is None else ordinal}"
        if kind == "session_meta":
            self._read_meta(payload, at)
        elif kind == "turn_context":
            self._about.setdefault("model", text_in(payload, "model"))
            self._about["current_model"] = text_in(payload, "model")
        elif kind == "response_item":
            self._read_item(payload, at, key)
        elif kind == "event_msg":
            self._read_event(payload, at, key, size)
        elif kind == "token_usage_record":
            self._flush()
            self._read_usage(payload)
        elif kind == "compacted":
            self._flush()
            text = text_in(payload, "message")
            summary = ImportedMessage(key, "user", text, at, is_summary=True, is_copy=True)
            self._messages.append(summary)
        elif kind not in IGNORED:
            self.unknown[str(kind)] += 1

    def _read_meta(self, payload: JsonObject, at: float) -> None:
        about = self._about
        if about.get("id"):
            return  # a fork of an older version repeats that of its origin
        base = object_in(payload, "history_base")
        forked = text_in(payload, "forked_from_id")
        spawn = object_in(object_in(object_in(payload, "source"), "subagent"), "thread_spawn")
        parent = text_in(payload, "parent_thread_id") or text_in(spawn, "parent_thread_id")
        kind = ConversationKind.MAIN
        if parent:
            kind = ConversationKind.SUBAGENT
        elif forked:
            kind, parent = ConversationKind.FORK, forked
        about |= {
            "id": text_in(payload, "id") or self._unit.path.name.split(".", 1)[0][-36:],
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
            self._messages.append(self._result(item, at, key))
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
        elif item.get("role") == "user" and not text.startswith(NOT_PROMPTS):
            self._flush()
            self._prompt = (key, text, at)

    def _response(self, key: str, at: float) -> Response:
        self._flush_prompt()
        if self._answer is None:
            self._answer = Response(key, at)
        return self._answer

    def _result(self, item: JsonObject, at: float, key: str) -> ImportedMessage:
        call_id, output = text_in(item, "call_id"), item.get("output")
        if isinstance(output, dict):
            output = output.get("content") or output.get("output")
        text = output if isinstance(output, str) else joined(_texts(item, "output"))
        code = self._exit_codes.pop(call_id, 0)
        return ImportedMessage(
            key,
            "tool",
            tool_result(text, exit_code=code),
            at,
            tool_call_id=call_id,
            tool_name=self._calls.get(call_id),
            finish_reason=FAILED if code else None,
        )

    def _read_event(self, event: JsonObject, at: float, key: str, size: int) -> None:
        kind, item = event.get("type"), object_in(event, "item")
        if kind == "task_started":
            self._flush()
            self._turn = (self._lines.position - size - 1, self._index)
        elif kind == "user_message" or item.get("type") == "UserMessage":
            self._flush()
            text = text_in(event, "message") or joined(_texts(item, "content"))
            self._prompt = None
            self._messages.append(ImportedMessage(key, "user", text, at))
        elif item.get("type") == "CommandExecution":
            self._exit_codes[text_in(item, "id")] = number_in(item, "exit_code")
        elif kind == "exec_command_end":
            self._exit_codes[text_in(event, "call_id")] = number_in(event, "exit_code")
        elif kind == "turn_aborted":
            self._flush()
            self._finish(INTERRUPTED)
        elif kind in ("error", "stream_error"):
            self._flush()
            self._finish(FAILED)
        elif kind == "token_count":
            self._count(object_in(event, "info"))

    def _finish(self, reason: str) -> None:
        for position in range(len(self._messages) - 1, -1, -1):
            if self._messages[position].role == "assistant":
                changed = self._messages[position]._replace(finish_reason=reason)
                self._messages[position] = changed
                return

    def _read_usage(self, payload: JsonObject) -> None:
        self._has_records = True
        key = text_in(payload, "response_id") or text_in(payload, "turn_id")
        self._usage.append(self._tokens(object_in(payload, "usage"), key))

    def _count(self, info: JsonObject) -> None:
        """Count the usage of a response from its token count, unless it repeats the last one."""
        total = number_in(object_in(info, "total_token_usage"), "total_tokens")
        if total > self._total:
            self._total = total
            key = f"{text_in(self._about, 'id')}:{total}"
            self._counted.append(self._tokens(object_in(info, "last_token_usage"), key))

    def _tokens(self, usage: JsonObject, key: str) -> ImportedUsage:
        cached = number_in(usage, "cached_input_tokens")
        written = number_in(usage, "cache_write_input_tokens")
        return ImportedUsage(
            text_in(self._about, "current_model"),
            max(0, number_in(usage, "input_tokens") - cached - written),
            number_in(usage, "output_tokens"),
            cached,
            written,
            number_in(usage, "reasoning_output_tokens"),
            key=key,
        )

    def _flush_prompt(self) -> None:
        if self._prompt is not None:
            key, text, at = self._prompt
            self._messages.append(ImportedMessage(key, "user", text, at))
            self._prompt = None

    def _flush(self) -> None:
        """Add the current response to the messages."""
        if self._answer is not None:
            self._messages.append(self._answer.message())
            self._answer = None


class Response:
    """A response of the model, made from its items."""

    def __init__(self, key: str, at: float) -> None:
        self._key = key
        self._at = at
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCallDict] = []

    def message(self) -> ImportedMessage:
        """The complete message."""
        return ImportedMessage(
            self._key,
            "assistant",
            joined(self.texts),
            self._at,
            self.calls,
            reasoning=joined(self.thoughts) or None,
            finish_reason="tool_calls" if self.calls else "stop",
        )


def _texts(item: JsonObject, name: str) -> list[str]:
    return [text for part in objects_in(item, name) if (text := text_in(part, "text"))]
