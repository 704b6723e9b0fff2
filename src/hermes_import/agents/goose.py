"""goose: sessions and messages in a SQLite database, before that one JSON-lines file each.

Tokens are those of the usage ledger where there is one, otherwise the accumulated totals of the
session. The program inserts all messages of a session again when it summarizes them, so that
they are identified by their message IDs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import.contents import (
    FAILED,
    joined,
    prompt_content,
    seconds_of,
    title_of,
    tool_call,
    tool_result,
)
from hermes_import.databases import DatabaseSource, ListedConversation, json_in, parse_json
from hermes_import.files import file_unit, is_there
from hermes_import.json_lines import JsonLines
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
    from hermes_import.sources import Unit, UnitReading
    from hermes_state.imports.foreign_database import ForeignDatabase

FILE: Final = "sessions.db"
OLD_SUFFIX: Final = ".jsonl"
MESSAGES_PER_PART: Final = 500
LISTED: Final = (
    "id", "created_at", "updated_at", "session_type", "name", "description", "archived_at",
)  # fmt: skip
SESSION: Final = (
    "id", "name", "description", "session_type", "working_dir", "created_at", "archived_at",
    "model_config_json", "accumulated_input_tokens", "accumulated_output_tokens",
    "accumulated_cost",
)  # fmt: skip
MESSAGE: Final = (
    "id", "message_id", "role", "content_json", "created_timestamp", "timestamp", "metadata_json",
)  # fmt: skip
# The columns of tokens have had two sets of names.
LEDGER: Final = (
    "id", "model", "input", "output", "cache_read", "cache_write", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "cost",
)  # fmt: skip
MESSAGES_OF: Final = f"WHERE session_id = ? AND id > ? ORDER BY id LIMIT {MESSAGES_PER_PART}"
LAST_MESSAGES: Final = "SELECT session_id, max(id), count(*) FROM messages GROUP BY session_id"
UNNAMED: Final = frozenset({"New Chat", "CLI Session", "ACP Session", "New Session"})
HIDDEN: Final = "hidden"  # sessions of the program itself
SUBAGENT_TYPES: Final = frozenset({"sub_agent", "subagent"})
CALLS: Final = frozenset({"toolRequest", "frontendToolRequest"})
IGNORED: Final = frozenset(
    {"redactedThinking", "toolConfirmationRequest", "systemNotification", "actionRequired"}
)


class Goose(DatabaseSource):
    """The history of goose."""

    name = "goose"
    label = "goose"
    tables = ("sessions", "messages")

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        own = environ.get("GOOSE_PATH_ROOT")
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        folders = [Path(own) / "data"] if own else [data / "goose", home / ".config" / "goose"]
        found = [self.root_at(folder / "sessions") for folder in folders]
        return [root for root in found if root is not None]

    def root_at(self, path: Path) -> Path | None:
        if path.name == FILE:
            return path
        if is_there(path / FILE):
            return path / FILE
        is_old = path.name == "sessions" and "goose" in {path.parent.name, path.parent.parent.name}
        return path if is_old and any(path.glob(f"*{OLD_SUFFIX}")) else None

    def units(self, root: Path) -> Iterator[Unit]:
        """The sessions of the database; files of older versions, which it replaces, without one."""
        if root.name == FILE:
            yield from super().units(root)
            return
        for path in sorted(root.glob(f"*{OLD_SUFFIX}")):
            unit = file_unit(path)
            if unit is not None:
                yield unit

    def read(self, unit: Unit, before: UnitState | None) -> UnitReading:
        if unit.path.suffix == OLD_SUFFIX:
            return GooseFileReading(unit, before)
        return super().read(unit, before)

    def listed(self, database: ForeignDatabase) -> list[ListedConversation]:
        last = {session: rest for session, *rest in database.rows(LAST_MESSAGES)}
        found = []
        for row in database.select("sessions", LISTED):
            if row.get("session_type") == HIDDEN or text_in(row, "id") not in last:
                continue
            row_id, count = last[text_in(row, "id")]
            labels = f"{row.get('archived_at')}:{_title_of(row)}"
            revision = f"{row.get('updated_at')}:{row_id}:{count}:{labels}"
            times = seconds_of(row.get("created_at")), seconds_of(row.get("updated_at"))
            found.append(ListedConversation(text_in(row, "id"), revision, *times))
        return found

    def reading(
        self, database: ForeignDatabase, unit: Unit, native_id: str, before: UnitState | None
    ) -> GooseReading:
        return GooseReading(database, unit, native_id, before)


class GooseReading:
    """One pass over a session in the database."""

    def __init__(
        self, database: ForeignDatabase, unit: Unit, session_id: str, before: UnitState | None
    ) -> None:
        self._database = database
        self._unit = unit
        self._session_id = session_id
        self.unknown: Counter[str] = Counter()
        self._counted: JsonObject = dict(before.state) if before else {}
        self._reader = MessageReader(session_id, self.unknown)

    def parts(self) -> Iterator[ImportedPart]:
        where = "WHERE id = ?"
        rows = self._database.select("sessions", SESSION, where, (self._session_id,))
        if not rows:
            return  # deleted meanwhile
        conversation = _conversation_of(rows[0])
        position = 0
        while found := self._messages_after(position):
            messages: list[ImportedMessage] = []
            for row in found:
                messages += self._read_row(row)
                position = number_in(row, "id")
            yield ImportedPart(conversation, messages)
        yield ImportedPart(conversation, usage=self._usage(rows[0]), is_last=True)

    def state(self) -> UnitState:
        return UnitState(self._unit.revision, state=self._counted, unknown=self.unknown)

    def _messages_after(self, position: int) -> list[dict[str, Any]]:
        found = (self._session_id, position)
        return self._database.select("messages", MESSAGE, MESSAGES_OF, found)

    def _read_row(self, row: JsonObject) -> list[ImportedMessage]:
        content = parse_json(text_in(row, "content_json"))
        if not isinstance(content, list):
            self.unknown["message (not JSON)"] += 1
            return []
        return self._reader.read(
            {
                "id": row.get("message_id"),
                "number": row.get("id"),
                "role": row.get("role"),
                "content": content,
                "created": row.get("created_timestamp") or row.get("timestamp"),
                "metadata": json_in(row, "metadata_json"),
            }
        )

    def _usage(self, session: JsonObject) -> list[ImportedUsage]:
        if "session_id" in self._database.columns("usage_ledger"):
            where = "WHERE session_id = ?"
            rows = self._database.select("usage_ledger", LEDGER, where, (self._session_id,))
            return [_ledger_usage(self._session_id, row) for row in rows]
        model = text_in(json_in(session, "model_config_json"), "model_name")
        usage = _accumulated(self._session_id, model, session, self._counted)
        return [usage] if usage else []


def _conversation_of(session: JsonObject) -> ImportedConversation:
    is_subagent = session.get("session_type") in SUBAGENT_TYPES
    model = json_in(session, "model_config_json")
    return ImportedConversation(
        text_in(session, "id"),
        seconds_of(session.get("created_at")),
        ConversationKind.SUBAGENT if is_subagent else ConversationKind.MAIN,
        title=_title_of(session),
        cwd=text_in(session, "working_dir") or None,
        model=text_in(model, "model_name") or None,
        is_archived=bool(session.get("archived_at")),
    )


def _title_of(session: JsonObject) -> str | None:
    name = text_in(session, "name") or text_in(session, "description")
    return None if name in UNNAMED else title_of(name)


def _ledger_usage(session_id: str, row: JsonObject) -> ImportedUsage:
    read = number_in(row, "cache_read") or number_in(row, "cache_read_tokens")
    written = number_in(row, "cache_write") or number_in(row, "cache_write_tokens")
    total = number_in(row, "input") or number_in(row, "input_tokens")
    cost = row.get("cost")
    return ImportedUsage(
        text_in(row, "model"),
        # The input includes what was cached, where it is large enough for that.
        total - read - written if total >= read + written else total,
        number_in(row, "output") or number_in(row, "output_tokens"),
        read,
        written,
        cost_usd=float(cost) if isinstance(cost, (int, float)) and cost > 0 else None,
        key=f"{session_id}:ledger:{row.get('id')}",
    )


def _accumulated(
    session_id: str, model: str, session: JsonObject, counted: JsonObject
) -> ImportedUsage | None:
    """What was added to the totals of a session since they were counted; notes the new ones."""
    sent = number_in(session, "accumulated_input_tokens")
    received = number_in(session, "accumulated_output_tokens")
    cost = session.get("accumulated_cost")
    cost = float(cost) if isinstance(cost, (int, float)) else 0.0
    cost_before = counted.get("cost")
    cost_before = cost_before if isinstance(cost_before, float) else 0.0
    new = (sent - number_in(counted, "input"), received - number_in(counted, "output"))
    if not any(new) or min(new) < 0:
        return None
    counted |= {"input": sent, "output": received, "cost": cost}
    added_cost = cost - cost_before if cost > cost_before else None
    key = f"{session_id}:{sent}:{received}"
    return ImportedUsage(model, *new, cost_usd=added_cost, key=key, is_call=False)


class GooseFileReading:
    """One pass over the file of a session: a line about it, then its messages."""

    def __init__(self, unit: Unit, before: UnitState | None) -> None:
        self._unit = unit
        self.unknown: Counter[str] = Counter()
        self._counted: JsonObject = dict(before.state) if before else {}

    def parts(self) -> Iterator[ImportedPart]:
        session_id = self._unit.path.stem
        reader = MessageReader(session_id, self.unknown)
        about: JsonObject = {}
        messages: list[ImportedMessage] = []
        for number, record in enumerate(JsonLines(self._unit.path, self.unknown, UnitState(""))):
            if "role" in record:
                messages += reader.read({**record, "number": number})
            else:
                about |= record
        conversation = ImportedConversation(
            session_id,
            messages[0].at if messages else self._unit.created_at,
            title=title_of(text_in(about, "description")),
            cwd=text_in(about, "working_dir") or None,
        )
        usage = _accumulated(session_id, "", about, self._counted)
        yield ImportedPart(conversation, messages, [usage] if usage else [], is_last=True)

    def state(self) -> UnitState:
        return UnitState(self._unit.revision, state=self._counted, unknown=self.unknown)


class MessageReader:
    """Reads the messages of a session, whose content is a list of tagged items."""

    def __init__(self, session_id: str, unknown: Counter[str]) -> None:
        self._session_id = session_id
        self._unknown = unknown
        self._repeated: Counter[str] = Counter()
        self._tool_names: dict[str, str] = {}

    def read(self, record: JsonObject) -> list[ImportedMessage]:
        """The prompt, answer or tool results of a record."""
        key = text_in(record, "id") or f"{self._session_id}:{record.get('number')}"
        self._repeated[key] += 1
        if self._repeated[key] > 1:
            key = f"{key}:{self._repeated[key]}"
        at = seconds_of(record.get("created"))
        items = objects_in(record, "content")
        results = [item for item in items if item.get("type") == "toolResponse"]
        messages = [
            self._result(item, f"{key}:{number}", at) for number, item in enumerate(results)
        ]
        if record.get("role") == "assistant":
            messages.insert(0, self._answer(items, key, at))
        elif len(results) < len(items):
            messages += self._prompt(record, items, key, at)
        return messages

    def _prompt(
        self, record: JsonObject, items: list[JsonObject], key: str, at: float
    ) -> list[ImportedMessage]:
        metadata = object_in(record, "metadata")
        # What the user does not see and the model does is the summary of earlier messages.
        is_summary = metadata.get("userVisible") is False
        if is_summary and metadata.get("agentVisible") is False:
            return []
        text = joined([text_in(item, "text") for item in items])
        images = [_data_url(item) for item in items if item.get("type") == "image"]
        if not text and not images:
            self._note_unknown(items)
            return []
        content = prompt_content(text, images)
        return [
            ImportedMessage(key, "user", content, at, is_summary=is_summary, is_copy=is_summary)
        ]

    def _answer(self, items: list[JsonObject], key: str, at: float) -> ImportedMessage:
        self._note_unknown(items)
        calls = [self._call(item) for item in items if item.get("type") in CALLS]
        thoughts = [text_in(item, "thinking") for item in items]
        return ImportedMessage(
            key,
            "assistant",
            joined([text_in(item, "text") for item in items if item.get("type") == "text"]),
            at,
            calls,
            reasoning=joined(thoughts) or None,
            finish_reason="tool_calls" if calls else "stop",
        )

    def _call(self, item: JsonObject) -> ToolCallDict:
        value = object_in(object_in(item, "toolCall"), "value")
        call_id, name = text_in(item, "id"), text_in(value, "name")
        self._tool_names[call_id] = name
        return tool_call(call_id, name, value.get("arguments") or {})

    def _result(self, item: JsonObject, key: str, at: float) -> ImportedMessage:
        result, call_id = object_in(item, "toolResult"), text_in(item, "id")
        value = object_in(result, "value")
        contents = objects_in(result, "value") or objects_in(value, "content")
        text = joined([text_in(each, "text") for each in contents]) or text_in(result, "error")
        is_error = result.get("status") == "error" or value.get("isError") is True
        return ImportedMessage(
            key,
            "tool",
            tool_result(text, is_error=is_error),
            at,
            tool_call_id=call_id,
            tool_name=self._tool_names.get(call_id),
            finish_reason=FAILED if is_error else None,
        )

    def _note_unknown(self, items: list[JsonObject]) -> None:
        known = CALLS | IGNORED | {"text", "thinking", "image", "toolResponse"}
        for item in items:
            if item.get("type") not in known:
                self._unknown[f"content {item.get('type')}"] += 1


def _data_url(item: JsonObject) -> str:
    return f"data:{text_in(item, 'mimeType')};base64,{text_in(item, 'data')}"
