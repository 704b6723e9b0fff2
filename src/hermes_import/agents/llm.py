"""llm: threads, turns and messages in a SQLite database; older versions have responses.

A turn is one request. Messages are identified by their content and what precedes them, so equal
ones share a row between threads; here they are identified by the turn that added them. What a
fork shares with its origin is found by following the messages before its own turns.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.json_values import number_in, object_in, text_in
from hermes_import.contents import FAILED, joined, seconds_of, title_of, tool_call, tool_result
from hermes_import.databases import DatabaseSource, ListedConversation, json_in
from hermes_import.files import existing
from hermes_state.imports.rows import (
    ConversationKind,
    ImportedConversation,
    ImportedMessage,
    ImportedPart,
    ImportedUsage,
    UnitState,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_import.sources import Unit
    from hermes_state.imports.foreign_database import ForeignDatabase

FILE: Final = "logs.db"
FOLDER: Final = "io.datasette.llm"
NEW_TABLES: Final = ("threads", "turns", "messages", "parts")
OLD_TABLES: Final = ("conversations", "responses")
THREAD: Final = ("id", "name", "tip_message_hash", "forked_from", "datetime_utc")
TURN: Final = (
    "id", "thread_id", "tip_message_hash", "model", "resolved_model", "input_tokens",
    "output_tokens", "token_details", "duration_ms", "datetime_utc",
)  # fmt: skip
RESPONSE: Final = (
    "id", "model", "resolved_model", "prompt", "response", "reasoning", "duration_ms",
    "datetime_utc", "input_tokens", "output_tokens", "token_details",
)  # fmt: skip
OLD_CALL: Final = ("name", "arguments", "tool_call_id")
OLD_RESULT: Final = ("name", "output", "tool_call_id", "exception")
PART_COLUMNS: Final = ("id", "type", "tool_name", "text", "payload")
TURNS_OF: Final = "WHERE thread_id = ? ORDER BY datetime_utc, id"
RESPONSES_OF: Final = "WHERE conversation_id = ? ORDER BY datetime_utc, id"
PARTS_OF: Final = "WHERE message_hash = ? ORDER BY position"
LAST_TURNS: Final = """
    SELECT thread_id, count(*), min(datetime_utc), max(datetime_utc) FROM turns GROUP BY thread_id
"""
LAST_RESPONSES: Final = """
    SELECT conversation_id, count(*), min(datetime_utc), max(datetime_utc) FROM responses
    WHERE conversation_id IS NOT NULL GROUP BY conversation_id
"""
FRAGMENTS: Final = """
    SELECT f.content FROM part_fragments p JOIN fragments f ON f.id = p.fragment_id
    WHERE p.part_id = ? ORDER BY p."order"
"""
IGNORED: Final = frozenset({"attachment", "system"})


class Llm(DatabaseSource):
    """The history of llm."""

    name = "llm"
    label = "llm"

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        own = environ.get("LLM_USER_PATH")
        config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        folders = [config / FOLDER, home / "Library" / "Application Support" / FOLDER]
        return existing([folder / FILE for folder in ([Path(own)] if own else folders)])

    def root_at(self, path: Path) -> Path | None:
        if path.name == FILE:
            return path
        return next(iter(existing([path / FILE])), None)

    def missing(self, database: ForeignDatabase) -> list[str]:
        new = [name for name in NEW_TABLES if not database.columns(name)]
        old = [name for name in OLD_TABLES if not database.columns(name)]
        return [] if not old else new

    def listed(self, database: ForeignDatabase) -> list[ListedConversation]:
        found: dict[str, ListedConversation] = {}
        if database.columns("responses"):
            for native_id, count, first, last in database.rows(LAST_RESPONSES):
                found[native_id] = _listed(native_id, f"{count}:{last}", first, last)
        if not database.columns("turns"):
            return list(found.values())
        turns = {thread: rest for thread, *rest in database.rows(LAST_TURNS)}
        for row in database.select("threads", THREAD):
            count, first, last = turns.get(text_in(row, "id"), (0, row.get("datetime_utc"), ""))
            revision = f"{row.get('tip_message_hash')}:{count}:{row.get('name')}"
            native_id = text_in(row, "id")
            last = last or row.get("datetime_utc")
            found[native_id] = _listed(native_id, revision, first, last)
        return list(found.values())

    def reading(
        self, database: ForeignDatabase, unit: Unit, native_id: str, before: UnitState | None
    ) -> LlmReading:
        return LlmReading(database, unit, native_id)


def _listed(native_id: str, revision: str, first: object, last: object) -> ListedConversation:
    times = seconds_of(str(first)), seconds_of(str(last))
    return ListedConversation(native_id, revision, *times)


class ChainMessage(NamedTuple):
    """A message of a thread, and the turn that added it."""

    content_hash: str
    role: str
    key: str
    turn: JsonObject


class LlmReading:
    """One pass over a conversation."""

    def __init__(self, database: ForeignDatabase, unit: Unit, native_id: str) -> None:
        self._database = database
        self._unit = unit
        self._id = native_id
        self.unknown: Counter[str] = Counter()
        self._owned: dict[str, ChainMessage] = {}

    def state(self) -> UnitState:
        return UnitState(self._unit.revision, unknown=self.unknown)

    def parts(self) -> Iterator[ImportedPart]:
        threads = self._database.select("threads", THREAD, "WHERE id = ?", (self._id,))
        if threads:
            yield self._thread(threads[0])
            return
        names = ("name", "model")
        for row in self._database.select("conversations", names, "WHERE id = ?", (self._id,)):
            yield self._old_conversation(row)

    def _thread(self, thread: JsonObject) -> ImportedPart:
        origin = text_in(thread, "forked_from")
        for ancestor in self._ancestors(origin):
            self._own(self._turns(ancestor))
        shared = set(self._owned)
        turns = self._turns(self._id)
        self._own(turns)
        chain = self._chain(thread, turns, shared)
        messages: list[ImportedMessage] = []
        for each in chain:
            messages += self._messages(each, is_copy=each.content_hash in shared)
        conversation = ImportedConversation(
            self._id,
            seconds_of((turns[0] if turns else thread).get("datetime_utc")),
            ConversationKind.FORK if origin else ConversationKind.MAIN,
            origin or None,
            title_of(text_in(thread, "name")),
            model=_model_of(turns[0]) if turns else None,
        )
        usage = [_usage_of(turn) for turn in turns]
        return ImportedPart(conversation, messages, usage, is_last=True)

    def _turns(self, thread_id: str) -> list[dict[str, Any]]:
        return self._database.select("turns", TURN, TURNS_OF, (thread_id,))

    def _ancestors(self, thread_id: str) -> list[str]:
        """The threads that a fork continues, the oldest first."""
        found: list[str] = []
        while thread_id and thread_id not in found and thread_id != self._id:
            found.append(thread_id)
            wanted = ("forked_from",)
            rows = self._database.select("threads", wanted, "WHERE id = ?", (thread_id,))
            thread_id = text_in(rows[0], "forked_from") if rows else ""
        return found[::-1]

    def _own(self, turns: list[dict[str, Any]]) -> None:
        """Note which turn added which messages."""
        for turn in turns:
            added = self._back_from(text_in(turn, "tip_message_hash"), self._owned)
            numbers: Counter[str] = Counter()
            for content_hash, role in added:
                key = f"{text_in(turn, 'id')}:{role}:{numbers[role]}"
                numbers[role] += 1
                self._owned[content_hash] = ChainMessage(content_hash, role, key, turn)

    def _back_from(self, tip: str, known: Container[str]) -> list[tuple[str, str]]:
        """The messages up to a tip, after those that are known; the oldest first."""
        found: list[tuple[str, str]] = []
        wanted = ("parent_hash", "role")
        while tip and tip not in known:
            rows = self._database.select("messages", wanted, "WHERE hash = ?", (tip,))
            if not rows:
                self.unknown["message (missing)"] += 1
                break
            found.append((tip, text_in(rows[0], "role")))
            tip = text_in(rows[0], "parent_hash")
        return found[::-1]

    def _chain(
        self, thread: JsonObject, turns: list[dict[str, Any]], shared: set[str]
    ) -> list[ChainMessage]:
        """The messages of a thread: those shared with its origin, then its own."""
        own = [each for name, each in self._owned.items() if name not in shared]
        if not shared:
            return own
        tip = text_in(turns[0] if turns else thread, "tip_message_hash")
        inherited = [self._owned[name] for name, _ in self._back_from(tip, ()) if name in shared]
        return inherited + own

    def _messages(self, each: ChainMessage, *, is_copy: bool) -> list[ImportedMessage]:
        content = MessageContent()
        for row in self._database.select("parts", PART_COLUMNS, PARTS_OF, (each.content_hash,)):
            self._read_part(content, row)
        at = seconds_of(each.turn.get("datetime_utc"))
        if each.role == "user":
            return [ImportedMessage(each.key, "user", content.text, at, is_copy=is_copy)]
        if each.role == "assistant":
            at += number_in(each.turn, "duration_ms") / 1000
            return [content.answer(each.key, at, is_copy=is_copy)]
        if each.role == "tool":
            return content.tool_rows(each.key, at, is_copy=is_copy)
        if each.role not in IGNORED:
            self.unknown[f"message {each.role}"] += 1
        return []

    def _read_part(self, content: MessageContent, row: JsonObject) -> None:
        kind = row.get("type")
        if kind == "text":
            content.texts += [*self._fragments(row), text_in(row, "text")]
        elif kind == "reasoning":
            content.thoughts.append(text_in(row, "text"))
        elif kind == "tool_call":
            content.calls.append(json_in(row, "payload"))
        elif kind == "tool_result":
            content.results.append(json_in(row, "payload"))
        elif kind not in IGNORED:
            self.unknown[f"part {kind}"] += 1

    def _fragments(self, row: JsonObject) -> list[str]:
        if not self._database.columns("part_fragments"):
            return []
        return [text or "" for (text,) in self._database.rows(FRAGMENTS, (number_in(row, "id"),))]

    def _old_conversation(self, about: JsonObject) -> ImportedPart:
        rows = self._database.select("responses", RESPONSE, RESPONSES_OF, (self._id,))
        messages: list[ImportedMessage] = []
        for row in rows:
            messages += self._old_response(row)
        conversation = ImportedConversation(
            self._id,
            seconds_of(rows[0].get("datetime_utc")) if rows else self._unit.created_at,
            title=title_of(text_in(about, "name")),
            model=text_in(about, "model") or None,
        )
        usage = [_usage_of(row) for row in rows]
        return ImportedPart(conversation, messages, usage, is_last=True)

    def _old_response(self, row: JsonObject) -> list[ImportedMessage]:
        """The results that a request began with, its prompt and its answer."""
        key, of_response = text_in(row, "id"), "WHERE response_id = ? ORDER BY id"
        content = MessageContent()
        content.texts, content.thoughts = [text_in(row, "response")], [text_in(row, "reasoning")]
        content.calls = self._database.select("tool_calls", OLD_CALL, of_response, (key,))
        content.results = self._database.select("tool_results", OLD_RESULT, of_response, (key,))
        at = seconds_of(row.get("datetime_utc"))
        messages = content.tool_rows(f"{key}:tool:0", at)
        if prompt := text_in(row, "prompt"):
            messages.append(ImportedMessage(f"{key}:user:0", "user", prompt, at))
        end = at + number_in(row, "duration_ms") / 1000
        return [*messages, content.answer(f"{key}:assistant:0", end)]


class MessageContent:
    """The parts of a message."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[JsonObject] = []
        self.results: list[JsonObject] = []

    @property
    def text(self) -> str:
        """The texts as one."""
        return joined(self.texts)

    def answer(self, key: str, at: float, *, is_copy: bool = False) -> ImportedMessage:
        """An answer of the model."""
        calls = [
            tool_call(text_in(each, "tool_call_id"), text_in(each, "name"), each.get("arguments"))
            for each in self.calls
        ]
        return ImportedMessage(
            key,
            "assistant",
            self.text,
            at,
            calls,
            reasoning=joined(self.thoughts) or None,
            finish_reason="tool_calls" if calls else "stop",
            is_copy=is_copy,
        )

    def tool_rows(self, key: str, at: float, *, is_copy: bool = False) -> list[ImportedMessage]:
        """The results of tool calls."""
        return [
            ImportedMessage(
                f"{key}:{number}",
                "tool",
                tool_result(text_in(each, "output"), is_error=bool(each.get("exception"))),
                at,
                tool_call_id=text_in(each, "tool_call_id") or None,
                tool_name=text_in(each, "name") or None,
                finish_reason=FAILED if each.get("exception") else None,
                is_copy=is_copy,
            )
            for number, each in enumerate(self.results)
        ]


def _model_of(turn: JsonObject) -> str:
    return text_in(turn, "resolved_model") or text_in(turn, "model")


def _usage_of(turn: JsonObject) -> ImportedUsage:
    """The tokens of a turn; cached ones are part of its input where OpenAI's names are used."""
    details = json_in(turn, "token_details")
    cached = number_in(object_in(details, "prompt_tokens_details"), "cached_tokens")
    thoughts = object_in(details, "completion_tokens_details")
    return ImportedUsage(
        _model_of(turn),
        max(0, number_in(turn, "input_tokens") - cached),
        number_in(turn, "output_tokens"),
        cached + number_in(details, "cache_read_input_tokens"),
        number_in(details, "cache_creation_input_tokens"),
        number_in(thoughts, "reasoning_tokens"),
        key=text_in(turn, "id"),
        answer=f"{text_in(turn, 'id')}:assistant:0",
    )
