"""OpenClaw: a SQLite database per agent with the events of each conversation.

Large events are compressed. `/new` keeps the conversation and adds a reset event: the next
message begins a new context. Sub-agents and forks are known from the nodes of their sessions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_core.json_values import number_in, object_in, objects_in, text_in
from hermes_import import contents
from hermes_import.databases import DatabaseSource, ListedConversation, parse_json
from hermes_import.files import existing, matching
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
    from hermes_core.messages import Content
    from hermes_import.sources import Unit
    from hermes_state.imports.foreign_database import ForeignDatabase

FILE: Final = "openclaw-agent.sqlite"
EVENTS_PER_PART: Final = 500
WINDOW: Final = (
    "session_id", "session_key", "created_at", "updated_at", "transcript_updated_at", "model",
    "parent_session_key", "spawned_by", "display_name", "previous_session_id", "reason",
)  # fmt: skip
NODE: Final = (
    "session_key", "current_session_id", "parent_session_key", "spawned_by",
    "fork_source_session_id", "label", "display_name", "archived_at",
)  # fmt: skip
LABELS: Final = ("session_key", "archived_at", "label", "display_name")
EVENT: Final = ("seq", "event_json", "event_zstd", "created_at")
EVENTS_FROM: Final = f"WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT {EVENTS_PER_PART}"
LAST_SEQUENCES: Final = "SELECT session_id, max(seq) FROM transcript_events GROUP BY session_id"
# Events about the program, not the conversation.
IGNORED: Final = frozenset(
    {"session", "model_change", "thinking_level_change", "custom", "custom_message", "label",
     "leaf", "link", "branch_summary"}
)  # fmt: skip
FINISH_REASONS: Final = {
    "aborted": contents.INTERRUPTED,
    "error": contents.FAILED,
    "toolUse": "tool_calls",
}
UNREADABLE: Final = "event (not JSON)"


class OpenClaw(DatabaseSource):
    """The history of OpenClaw."""

    name = "openclaw"
    label = "OpenClaw"
    tables = ("session_windows", "transcript_events")

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        folder = Path(environ.get("OPENCLAW_STATE_DIR") or home / ".openclaw")
        return [folder / "agents"] if self.databases(folder / "agents") else []

    def root_at(self, path: Path) -> Path | None:
        for root in (path, path / "agents"):
            if self.databases(root):
                return root
        return None

    def databases(self, root: Path) -> list[Path]:
        if root.name == FILE:
            return existing([root])
        folders = matching(root, "*", "main")
        return existing([folder / "agent" / FILE for folder in folders])

    def listed(self, database: ForeignDatabase) -> list[ListedConversation]:
        last = dict(database.rows(LAST_SEQUENCES))
        listed = database.select("session_nodes", LABELS)
        nodes = {text_in(row, "session_key"): row for row in listed}
        found = []
        for row in database.select("session_windows", WINDOW):
            changed = (
                row.get("transcript_updated_at") or row.get("updated_at") or row.get("created_at")
            )
            sequence = last.get(text_in(row, "session_id"))
            if sequence is not None:
                node = nodes.get(text_in(row, "session_key"), {})
                labels = ":".join(str(node.get(name)) for name in LABELS[1:])
                revision = f"{sequence}:{changed}:{labels}"
                times = contents.seconds_of(row.get("created_at")), contents.seconds_of(changed)
                found.append(ListedConversation(text_in(row, "session_id"), revision, *times))
        return found

    def reading(
        self, database: ForeignDatabase, unit: Unit, native_id: str, before: UnitState | None
    ) -> OpenClawReading:
        return OpenClawReading(database, unit, native_id, before)


class OpenClawReading:
    """One pass over the events of a conversation after those that were read before."""

    def __init__(
        self, database: ForeignDatabase, unit: Unit, session_id: str, before: UnitState | None
    ) -> None:
        self._database = database
        self._unit = unit
        self._session_id = session_id
        self.unknown: Counter[str] = Counter(before.unknown if before else {})
        self._generation = self._current_generation()
        is_rewritten = before and before.state.get("generation") != self._generation
        start = UnitState("") if before is None or is_rewritten else before
        self._position = start.position
        self._is_reset = bool(start.state.get("is_reset"))
        self._cwd = start.state.get("cwd")
        self._messages: list[ImportedMessage] = []

    def _current_generation(self) -> str:
        """What changes when the program rewrites the events."""
        found = self._database.select(
            "transcript_rewrite_watermarks",
            ("generation",),
            "WHERE session_id = ?",
            (self._session_id,),
        )
        return str(found[0].get("generation")) if found else ""

    def parts(self) -> Iterator[ImportedPart]:
        where = "WHERE session_id = ?"
        windows = self._database.select("session_windows", WINDOW, where, (self._session_id,))
        if not windows:
            return  # deleted meanwhile
        about = self._about(windows[0])
        while rows := self._events():
            for row in rows:
                self._read_row(row)
                self._position = number_in(row, "seq") + 1
            yield self._part(about, is_last=False)
        yield self._part(about, is_last=True)

    def state(self) -> UnitState:
        state: JsonObject = {
            "generation": self._generation,
            "is_reset": self._is_reset,
            "cwd": self._cwd,
        }
        return UnitState(self._unit.revision, self._position, state, self.unknown)

    def _events(self) -> list[dict[str, Any]]:
        found = (self._session_id, self._position)
        return self._database.select("transcript_events", EVENT, EVENTS_FROM, found)

    def _part(self, about: ImportedConversation, *, is_last: bool) -> ImportedPart:
        messages, self._messages = self._messages, []
        cwd = self._cwd if isinstance(self._cwd, str) else None
        return ImportedPart(about._replace(cwd=cwd), messages, is_last=is_last)

    def _about(self, window: JsonObject) -> ImportedConversation:
        key = text_in(window, "session_key")
        node = self._node(key)
        parent_key = _first_text("parent_session_key", node, window)
        parent_key = parent_key or _first_text("spawned_by", node, window)
        origin = text_in(node, "fork_source_session_id")
        if window.get("reason") == "fork":
            origin = origin or text_in(window, "previous_session_id")
        kind, parent = ConversationKind.MAIN, ""
        if parent_key or ":subagent:" in key:
            kind = ConversationKind.SUBAGENT
            parent = text_in(self._node(parent_key), "current_session_id")
        elif origin:
            kind, parent = ConversationKind.FORK, origin
        return ImportedConversation(
            self._session_id,
            contents.seconds_of(window.get("created_at")),
            kind,
            parent or None,
            contents.title_of(text_in(node, "label") or _first_text("display_name", node, window)),
            model=text_in(window, "model") or None,
            is_archived=bool(node.get("archived_at")),
        )

    def _node(self, session_key: str) -> JsonObject:
        where = "WHERE session_key = ?"
        found = self._database.select("session_nodes", NODE, where, (session_key,))
        return found[0] if found else {}

    def _read_row(self, row: dict[str, Any]) -> None:
        data = row.get("event_json")
        compressed = row.get("event_zstd")
        if data is None and isinstance(compressed, bytes):
            from hermes_import.zstd import decompress  # noqa: PLC0415 - rarely needed

            data = decompress(compressed)
        event = parse_json(data or "")
        if isinstance(event, dict):
            self._read_event(event, contents.seconds_of(row.get("created_at")))
        else:
            self.unknown[UNREADABLE] += 1

    def _read_event(self, event: JsonObject, at: float) -> None:
        kind, key = event.get("type"), text_in(event, "id")
        if kind == "message":
            self._read_message(object_in(event, "message"), key, at)
        elif kind == "session":
            self._cwd = event.get("cwd") or self._cwd
        elif kind == "reset":
            self._is_reset = True
        elif kind == "compaction":
            text = text_in(event, "summary")
            summary = ImportedMessage(key, "user", text, at, is_summary=True, is_copy=True)
            self._messages.append(summary)
        elif kind not in IGNORED:
            self.unknown[str(kind)] += 1

    def _read_message(self, message: JsonObject, key: str, at: float) -> None:
        role = message.get("role")
        at = contents.seconds_of(message.get("timestamp"), at)
        if role == "user":
            found = ImportedMessage(key, "user", _prompt_of(message), at)
        elif role == "assistant":
            found = _answer_of(message, key, at)
        elif role == "toolResult":
            found = _result_of(message, key, at)
        else:
            self.unknown[f"message {role}"] += 1
            return
        # The first message after a reset is the first of the model's context.
        self._messages.append(found._replace(is_summary=self._is_reset))
        self._is_reset = False


def _first_text(name: str, *rows: JsonObject) -> str:
    return next((text for row in rows if (text := text_in(row, name))), "")


def _texts(message: JsonObject) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = objects_in(message, "content")
    return [text_in(block, "text") for block in blocks if block.get("type") == "text"]


def _prompt_of(message: JsonObject) -> Content:
    text = contents.joined(_texts(message))
    blocks = objects_in(message, "content")
    images = [_data_url(block) for block in blocks if block.get("type") == "image"]
    return contents.prompt_content(text, images)


def _data_url(block: JsonObject) -> str:
    return f"data:{text_in(block, 'mimeType')};base64,{text_in(block, 'data')}"


def _answer_of(message: JsonObject, key: str, at: float) -> ImportedMessage:
    blocks = objects_in(message, "content")
    thoughts = [text_in(block, "thinking") for block in blocks if block.get("type") == "thinking"]
    calls = [
        contents.tool_call(text_in(block, "id"), text_in(block, "name"), block.get("arguments"))
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    reason = text_in(message, "stopReason")
    return ImportedMessage(
        key,
        "assistant",
        contents.joined(_texts(message)) or text_in(message, "errorMessage"),
        at,
        calls,
        reasoning=contents.joined(thoughts) or None,
        finish_reason=FINISH_REASONS.get(reason, reason) or None,
        usage=_usage_of(message),
    )


def _usage_of(message: JsonObject) -> ImportedUsage | None:
    usage = object_in(message, "usage")
    cost = object_in(usage, "cost").get("total")
    spent = ImportedUsage(
        text_in(message, "model"),
        number_in(usage, "input"),
        number_in(usage, "output"),
        number_in(usage, "cacheRead"),
        number_in(usage, "cacheWrite"),
        number_in(usage, "reasoningTokens"),
        float(cost) if isinstance(cost, (int, float)) and cost > 0 else None,
    )
    return spent if any(spent[1:6]) else None


def _result_of(message: JsonObject, key: str, at: float) -> ImportedMessage:
    exit_code = number_in(object_in(message, "details"), "exitCode")
    is_error = bool(message.get("isError"))
    return ImportedMessage(
        key,
        "tool",
        contents.tool_result(
            contents.joined(_texts(message)), is_error=is_error, exit_code=exit_code
        ),
        at,
        tool_call_id=text_in(message, "toolCallId"),
        tool_name=text_in(message, "toolName") or None,
        finish_reason=contents.FAILED if is_error or exit_code else None,
    )
