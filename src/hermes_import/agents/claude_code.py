"""Claude Code: one JSON-lines file per conversation, one line per content block.

A line repeats the usage of its whole request, so blocks are joined by message and request.
A fork repeats the records of its origin under the same UUIDs. Sub-agents have files of their
own, linked by a `.meta.json` beside each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import import contents
from hermes_import.line_files import LineFiles, LineReading
from hermes_state.imports import rows

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_core.messages import ToolCallDict
    from hermes_import.sources import Unit

HEAD_BYTES: Final = 1 << 16
MAX_OUTPUT_BYTES: Final = 1 << 20
SYNTHETIC_MODEL: Final = "<synthetic>"
INTERRUPTION: Final = "[Request interrupted by user"
# Texts in user records that the program wrote, not the user.
NOT_PROMPTS: Final = ("<command-", "<local-command-", "<task-notification>", INTERRUPTION)
# Records about the program, not the conversation. Lines that begin like this are not parsed.
IGNORED: Final = frozenset(
    {"api-request", "api-request-shape", "api-request-blob", "attachment", "atis-latch", "mode",
     "tools-used", "queue-operation", "last-prompt", "agent-name", "file-history-snapshot",
     "progress", "permission-mode", "cost-state"}
)  # fmt: skip
SKIPPED: Final = re.compile(
    rb'\{"(?:type":"(?:' + "|".join(IGNORED).encode() + rb')"'
    rb'|parentUuid":(?:null|"[^"]*"),"isSidechain":(?:true|false),'
    rb'(?:"agentId":"[^"]*",)?"attachment":)'
)
FIRST_TIME: Final = re.compile(rb'"type":"queue-operation"[^\n]*?"timestamp":"([^"]+)"')
SAVED_OUTPUT: Final = re.compile(r"Full output saved to: .*?/tool-results/([\w.-]+)")


def _created_at(unit: Unit) -> float:
    if "subagents" in unit.path.parts:
        return unit.modified_at
    try:
        with unit.path.open("rb") as file:
            found = FIRST_TIME.search(file.read(HEAD_BYTES))
    except OSError:
        return unit.modified_at
    return (
        contents.seconds_of(found[1].decode("utf-8", "replace"), unit.modified_at)
        if found
        else unit.modified_at
    )


class ClaudeReading(LineReading):
    """One pass over a file."""

    skipped = SKIPPED

    def __init__(self, unit: Unit, start: rows.UnitState) -> None:
        super().__init__(unit, start)
        self._group: list[rows.ImportedMessage] = []  # an answer and the results of its calls
        self._answer: BlockAnswer | None = None
        self._answers: dict[str, BlockAnswer] = {}  # of the turn: blocks of several may alternate
        self._tool_names: dict[str, str] = {}
        if "subagents" in unit.path.parts and not self.about:
            self._read_meta()

    def _read_meta(self) -> None:
        meta = self.description()
        self.about["title"] = contents.title_of(text_in(meta, "description"))
        self.about["parent"] = self.unit.path.parent.parent.name

    def conversation(self) -> rows.ImportedConversation | None:
        about = self.about
        if "started_at" not in about:
            return None
        return rows.ImportedConversation(
            self.stem,
            contents.seconds_of(about.get("started_at")),
            rows.ConversationKind.SUBAGENT if "parent" in about else rows.ConversationKind.MAIN,
            text_in(about, "parent") or None,
            text_in(about, "title") or None,
            text_in(about, "cwd") or None,
            text_in(about, "branch") or None,
            text_in(about, "model") or None,
        )

    def read_record(self, record: JsonObject) -> None:
        kind = record.get("type")
        if kind == "assistant":
            self._read_answer(record, object_in(record, "message"))
        elif kind == "user":
            self._read_user(record, object_in(record, "message"))
        elif kind in {"custom-title", "summary"}:
            title = text_in(record, "customTitle") or text_in(record, "summary")
            self.about["title"] = contents.title_of(title) or self.about.get("title")
        elif kind == "system":
            if record.get("subtype") == "api_error":
                self._end_answer(contents.FAILED)
        elif kind not in IGNORED:
            self.unknown[str(kind)] += 1

    def _note_place(self, record: JsonObject) -> None:
        if "started_at" not in self.about:
            self.about |= {
                "started_at": contents.seconds_of(record.get("timestamp"), self.unit.modified_at),
                "cwd": record.get("cwd"),
                "branch": record.get("gitBranch"),
            }

    def _read_answer(self, record: JsonObject, message: JsonObject) -> None:
        ids = f"{text_in(message, 'id') or self.place}:{text_in(record, 'requestId')}"
        key = self.own_key or ids
        answer = self._answers.get(key)
        if answer is None:
            model = text_in(message, "model")
            if model == SYNTHETIC_MODEL and not record.get("isApiErrorMessage"):
                return
            self._note_place(record)
            self.finish()
            answer = BlockAnswer(key, contents.seconds_of(record.get("timestamp")), model)
            self._answer = self._answers[key] = answer
            if model != SYNTHETIC_MODEL:
                self.about.setdefault("model", model)
        answer.add(message, self._tool_names)
        if answer is not self._answer:
            self._replace(answer.message())

    def _replace(self, message: rows.ImportedMessage) -> None:
        """Replace an answer by one with more blocks; it may be in a part that was read before."""
        for position, earlier in enumerate(self.messages):
            if earlier.key == message.key:
                self.messages[position] = message
                return
        self.messages.append(message)

    def _read_user(self, record: JsonObject, message: JsonObject) -> None:
        self._note_place(record)
        content = message.get("content")
        blocks = objects_in(message, "content") if isinstance(content, list) else []
        at, key = (
            contents.seconds_of(record.get("timestamp")),
            self.own_key or text_in(record, "uuid") or self.place,
        )
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for number, block in enumerate(results):
            self._group.append(self._result(block, at, f"{key}:{number}" if number else key))
        if results or record.get("isMeta"):
            return
        text = content if isinstance(content, str) else _text_of(blocks)
        if text.startswith(NOT_PROMPTS) and not self.own_key:
            if text.startswith(INTERRUPTION):
                self._end_answer(contents.INTERRUPTED)
            return
        self.finish()
        is_summary = bool(record.get("isCompactSummary"))
        if not is_summary:
            self.begin_turn()
            self._answers.clear()
        self.messages.append(
            rows.ImportedMessage(
                key,
                "user",
                _with_images(blocks) or text,
                at,
                is_summary=is_summary,
                is_copy=is_summary,
            )
        )

    def _result(self, block: JsonObject, at: float, key: str) -> rows.ImportedMessage:
        call_id = text_in(block, "tool_use_id")
        content = block.get("content")
        text = content if isinstance(content, str) else _text_of(objects_in(block, "content"))
        if "<persisted-output>" in text[:100]:
            text = self._saved_output(text)
        return rows.ImportedMessage(
            key,
            "tool",
            contents.tool_result(text, is_error=bool(block.get("is_error"))),
            at,
            tool_call_id=call_id,
            tool_name=self._tool_names.get(call_id),
            finish_reason=contents.FAILED if block.get("is_error") else None,
        )

    def _saved_output(self, text: str) -> str:
        """The output that was too long for its record, from its own file."""
        found = SAVED_OUTPUT.search(text)
        if found is None:
            return text
        path = self.unit.path.parent / self.stem / "tool-results" / found[1]
        try:
            with path.open("rb") as file:
                return file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        except OSError:
            return text

    def _end_answer(self, reason: str) -> None:
        if self._answer is not None:
            self._answer.finish_reason = reason
        else:
            self.finish_last(reason)

    def finish(self) -> None:
        """Add the current answer and the results of its calls to the messages."""
        if self._answer is not None:
            self.messages.append(self._answer.message())
        self.messages += self._group
        self._answer, self._group = None, []


class BlockAnswer:
    """An answer of the model, made from the records of its blocks."""

    __slots__ = ("_at", "_calls", "_model", "_texts", "_thoughts", "_usage", "finish_reason", "key")

    def __init__(self, key: str, at: float, model: str) -> None:
        self.key = key
        self._at = at
        self._model = model
        self._usage: JsonObject = {}
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCallDict] = []
        self.finish_reason: str | None = None

    def add(self, message: JsonObject, tool_names: dict[str, str]) -> None:
        """Add the blocks of a record."""
        self._usage = object_in(message, "usage") or self._usage
        self.finish_reason = text_in(message, "stop_reason") or self.finish_reason
        for block in objects_in(message, "content"):
            kind = block.get("type")
            if kind == "text":
                self._texts.append(text_in(block, "text"))
            elif kind == "thinking":
                self._thoughts.append(text_in(block, "thinking"))
            elif kind in ("tool_use", "server_tool_use"):
                call_id, name = text_in(block, "id"), text_in(block, "name")
                tool_names[call_id] = name
                self._calls.append(contents.tool_call(call_id, name, block.get("input")))

    def message(self) -> rows.ImportedMessage:
        """The complete message."""
        is_call = self._model != SYNTHETIC_MODEL
        return rows.ImportedMessage(
            self.key,
            "assistant",
            contents.joined(self._texts),
            self._at,
            self._calls,
            reasoning=contents.joined(self._thoughts) or None,
            finish_reason=self.finish_reason if is_call else contents.FAILED,
            usage=self._tokens() if is_call else None,
            may_change=True,
            only_grows=True,
        )

    def _tokens(self) -> rows.ImportedUsage:
        usage = self._usage
        return rows.ImportedUsage(
            self._model,
            number_in(usage, "input_tokens"),
            number_in(usage, "output_tokens"),
            number_in(usage, "cache_read_input_tokens"),
            number_in(usage, "cache_creation_input_tokens"),
            number_in(object_in(usage, "output_tokens_details"), "thinking_tokens"),
        )


def _text_of(blocks: list[JsonObject]) -> str:
    return contents.joined([text_in(block, "text") for block in blocks])


def _with_images(blocks: list[JsonObject]) -> list[object] | None:
    """The parts of a prompt with pictures; None for one without."""
    if not any(block.get("type") == "image" for block in blocks):
        return None
    return [_part_of(block) for block in blocks]


def _part_of(block: JsonObject) -> JsonValue:
    source = object_in(block, "source")
    if block.get("type") != "image" or source.get("type") != "base64":
        return {"type": "text", "text": text_in(block, "text")}
    url = f"data:{text_in(source, 'media_type')};base64,{text_in(source, 'data')}"
    return {"type": "image_url", "image_url": {"url": url}}


class ClaudeCode(LineFiles):
    """The history of Claude Code."""

    name = "claude-code"
    label = "Claude Code"
    home_folder = ".claude"
    variable = "CLAUDE_CONFIG_DIR"
    reading = ClaudeReading
    folders = ("projects",)

    def in_order(self, units: list[Unit]) -> list[Unit]:
        """Files by the time at which the program was started: a fork after its origin."""
        return sorted(units, key=lambda unit: (_created_at(unit), unit.unit_id))
