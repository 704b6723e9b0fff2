"""opencode: sessions, messages and parts in a SQLite database; rows are updated in place.

A fork is a full copy under new IDs without a link to its origin; copies are older than their
session. Output tokens exclude reasoning. Totals of sessions include copies and are not used.
An answer is read when it is complete; until then reading stops before it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, object_in, text_in
from hermes_import import contents
from hermes_import.databases import DatabaseSource, ListedConversation, json_in
from hermes_import.files import is_regular, matching
from hermes_state.imports.foreign_database import file_state
from hermes_state.imports.rows import (
    ConversationKind,
    ImportedConversation,
    ImportedMessage,
    ImportedPart,
    ImportedUsage,
    UnitState,
    own_key,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.json_values import JsonObject
    from hermes_core.messages import ToolCallDict
    from hermes_import.sources import Unit
    from hermes_state.imports.foreign_database import ForeignDatabase

DATABASE_PATTERN: Final = "opencode*.db"  # other release channels have a suffix
DEFAULT_DATABASE: Final = "opencode.db"
MESSAGES_PER_PART: Final = 500
MAX_OUTPUT_BYTES: Final = 1 << 20
# An incomplete answer is given up when the database was written this much later.
ABANDONED_SECONDS: Final = 3600
SESSION: Final = ("id", "time_created", "time_updated", "title", "time_archived")
SESSION_COLUMNS: Final = (
    "id", "parent_id", "directory", "title", "model", "time_created", "time_archived",
)  # fmt: skip
MESSAGE: Final = ("id", "time_created", "time_updated", "data")
PART_COLUMNS: Final = ("id", "data")
MESSAGES_FROM: Final = "WHERE session_id = ? AND time_created >= ? ORDER BY time_created, id"
PARTS_OF: Final = "WHERE message_id = ? ORDER BY id"
LATEST_MESSAGES: Final = (
    "SELECT session_id, max(time_updated), count(*) FROM message GROUP BY session_id"
)
# Parts about the program, not the conversation.
IGNORED: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "compaction", "agent", "retry"}
)
UNNAMED: Final = re.compile(r"(?:New|Child) session - \d{4}-")  # until a model names it
# The ID of a message or part that Hermes has written: the identity of its message.
OWN_ID: Final = re.compile(r"(?:msg|prt)_[0-9a-f]{12}hermes([0-9a-f]{32}|none)")
ABORTED: Final = "MessageAbortedError"
SAVED_OUTPUT: Final = re.compile(r"Full output saved to: \S*?/tool-output/([\w.-]+)")


class OpenCode(DatabaseSource):
    """The history of opencode."""

    name = "opencode"
    label = "opencode"
    tables = ("session", "message", "part")

    def roots(self, home: Path, environ: Mapping[str, str]) -> list[Path]:
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        return matching(data / "opencode", DATABASE_PATTERN, DEFAULT_DATABASE)

    def root_at(self, path: Path) -> Path | None:
        if path.match(DATABASE_PATTERN) and is_regular(path):
            return path
        return next(iter(matching(path, DATABASE_PATTERN, DEFAULT_DATABASE)), None)

    def listed(self, database: ForeignDatabase) -> list[ListedConversation]:
        latest = {session: (at, count) for session, at, count in database.rows(LATEST_MESSAGES)}
        found = []
        for row in database.select("session", SESSION):
            at, count = latest.get(text_in(row, "id"), (0, 0))
            changed = max(number_in(row, "time_updated"), at or 0)
            labels = f"{row.get('time_archived')}:{row.get('title')}"
            revision = f"{row.get('time_updated')}:{at}:{count}:{labels}"
            created = contents.seconds_of(row.get("time_created"))
            native_id = text_in(row, "id")
            found.append(
                ListedConversation(native_id, revision, created, contents.seconds_of(changed))
            )
        return found

    def reading(
        self, database: ForeignDatabase, unit: Unit, native_id: str, before: UnitState | None
    ) -> OpenCodeReading:
        return OpenCodeReading(database, unit, native_id, before)


class OpenCodeReading:
    """One pass over a session, from the last message that was read before."""

    def __init__(
        self, database: ForeignDatabase, unit: Unit, session_id: str, before: UnitState | None
    ) -> None:
        self._database = database
        self._unit = unit
        self._session_id = session_id
        self._position = before.position if before else 0
        self.unknown: Counter[str] = Counter(before.unknown if before else {})
        self._kind = ConversationKind(text_in(dict(before.state), "kind") if before else "main")
        self._is_complete = True
        self._created_at = 0.0
        self._messages: list[ImportedMessage] = []
        self._usage: list[ImportedUsage] = []

    def parts(self) -> Iterator[ImportedPart]:
        rows = self._database.select(
            "session", SESSION_COLUMNS, "WHERE id = ?", (self._session_id,)
        )
        if not rows:
            return  # deleted meanwhile
        about = rows[0]
        self._created_at = contents.seconds_of(about.get("time_created"))
        if about.get("parent_id"):
            self._kind = ConversationKind.SUBAGENT
        for row in self._complete_rows():
            self._read_message(row)
            if OWN_ID.fullmatch(text_in(row, "id")):
                continue  # read again, until the agent has added a turn
            self._position = number_in(row, "time_created")
            if len(self._messages) >= MESSAGES_PER_PART:
                yield self._part(about, is_last=False)
        yield self._part(about, is_last=True)

    def state(self) -> UnitState:
        # What was left out is looked at again, although the session may no longer change.
        revision = self._unit.revision if self._is_complete else f"incomplete {self._position}"
        return UnitState(revision, self._position, {"kind": self._kind.value}, self.unknown)

    def _complete_rows(self) -> list[JsonObject]:
        """The messages before the answer that is being written, if there is one."""
        found = (self._session_id, self._position)
        rows = self._database.select("message", MESSAGE, MESSAGES_FROM, found)
        is_last = True
        for index in range(len(rows) - 1, -1, -1):
            rows[index]["data"] = data = json_in(rows[index], "data")
            if data.get("role") != "assistant":
                continue
            if is_last and self._is_running(rows[index], data):
                self._is_complete = False
                rows = rows[:index]
            is_last = False
        return rows

    def _is_running(self, row: JsonObject, data: JsonObject) -> bool:
        if _is_finished(data):
            return False
        written = file_state(self._unit.path).written_at
        return written - contents.seconds_of(row.get("time_updated")) < ABANDONED_SECONDS

    def _part(self, about: JsonObject, *, is_last: bool) -> ImportedPart:
        messages, self._messages = self._messages, []
        usage, self._usage = self._usage, []
        model = json_in(about, "model")
        conversation = ImportedConversation(
            self._session_id,
            self._created_at,
            self._kind,
            text_in(about, "parent_id") or None,
            _title_of(text_in(about, "title")),
            text_in(about, "directory") or None,
            model=text_in(model, "id") or text_in(model, "modelID") or None,
            is_archived=bool(about.get("time_archived")),
        )
        return ImportedPart(conversation, messages, usage, is_last=is_last)

    def _read_message(self, row: JsonObject) -> None:
        data = object_in(row, "data")
        parts = []
        for each in self._database.select("part", PART_COLUMNS, PARTS_OF, (text_in(row, "id"),)):
            part = json_in(each, "data")
            parts.append({**part, "id": text_in(each, "id")})
        role = data.get("role")
        if role == "assistant":
            self._read_answer(_key_of(text_in(row, "id")), data, parts)
        elif role == "user":
            self._read_prompt(_key_of(text_in(row, "id")), data, parts)
        else:
            self.unknown[f"message {role}"] += 1

    def _is_copy(self, data: JsonObject) -> bool:
        created = contents.seconds_of(object_in(data, "time").get("created"), self._created_at)
        is_copy = created < self._created_at
        if is_copy and self._kind is ConversationKind.MAIN:
            self._kind = ConversationKind.FORK
        return is_copy

    def _read_prompt(self, key: str, data: JsonObject, parts: list[JsonObject]) -> None:
        texts: list[str] = []
        images: list[str] = []
        for part in parts:
            kind = part.get("type")
            if part.get("synthetic") or part.get("ignored"):
                continue  # written by the program
            if kind == "text":
                texts.append(text_in(part, "text"))
            elif kind == "subtask":
                texts.append(text_in(part, "prompt"))
            elif kind == "file":
                images += _image_of(part)
            elif kind not in IGNORED:
                self.unknown[f"part {kind}"] += 1
        text = contents.joined(texts)
        if not text and not images:
            return
        content = contents.prompt_content(text, images)
        at = contents.seconds_of(object_in(data, "time").get("created"))
        self._messages.append(
            ImportedMessage(key, "user", content, at, is_copy=self._is_copy(data))
        )

    def _read_answer(self, key: str, data: JsonObject, parts: list[JsonObject]) -> None:
        answer = PartAnswer(key, data, is_copy=self._is_copy(data))
        for part in parts:
            kind = part.get("type")
            if kind == "text":
                answer.texts.append(text_in(part, "text"))
            elif kind == "reasoning":
                answer.thoughts.append(text_in(part, "text"))
            elif kind == "tool":
                self._read_tool(answer, part)
            elif kind not in IGNORED and kind != "file":
                self.unknown[f"part {kind}"] += 1
        self._messages += [answer.message(), *answer.results]
        self._usage += answer.usage()
        if data.get("summary") is True:
            self._messages.append(answer.summary())

    def _read_tool(self, answer: PartAnswer, part: JsonObject) -> None:
        state = object_in(part, "state")
        call_id, name = text_in(part, "callID"), text_in(part, "tool")
        answer.calls.append(contents.tool_call(call_id, name, state.get("input") or {}))
        key = _key_of(text_in(part, "id"))
        if not key:
            return
        is_error = state.get("status") == "error" or name == "invalid"
        exit_code = number_in(object_in(state, "metadata"), "exit")
        text = text_in(state, "error") or self._output(text_in(state, "output"))
        finish = contents.FAILED if is_error or exit_code else None
        if state.get("status") not in ("completed", "error"):
            finish = contents.INTERRUPTED
        answer.results.append(
            ImportedMessage(
                key,
                "tool",
                contents.tool_result(text, is_error=is_error, exit_code=exit_code),
                contents.seconds_of(object_in(state, "time").get("end"), answer.at),
                tool_call_id=call_id,
                tool_name=name,
                finish_reason=finish,
                is_copy=answer.is_copy,
                may_change=finish == contents.INTERRUPTED,
            )
        )

    def _output(self, text: str) -> str:
        """The output of a tool; from its own file, if it was too long for the row."""
        found = SAVED_OUTPUT.search(text[:1000])
        if found is None:
            return text
        try:
            with (self._unit.path.parent / "tool-output" / found[1]).open("rb") as file:
                return file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        except OSError:
            return text


class PartAnswer:
    """An answer of the model, and the results of its tool calls."""

    def __init__(self, key: str, data: JsonObject, *, is_copy: bool) -> None:
        self._key = key
        self._data = data
        self.is_copy = is_copy
        self.at = contents.seconds_of(object_in(data, "time").get("created"))
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCallDict] = []
        self.results: list[ImportedMessage] = []

    def message(self) -> ImportedMessage:
        """The answer; one that was given up may be completed after all."""
        return ImportedMessage(
            self._key,
            "assistant",
            contents.joined(self.texts),
            self.at,
            self.calls,
            reasoning=contents.joined(self.thoughts) or None,
            finish_reason=self._finish_reason(),
            is_copy=self.is_copy,
            may_change=True,
        )

    def summary(self) -> ImportedMessage:
        """The summary that replaces the context before it, as the model gets it."""
        text = contents.joined(self.texts)
        return ImportedMessage(
            f"{self._key}:summary", "user", text, self.at, is_summary=True, is_copy=True
        )

    def _finish_reason(self) -> str:
        error = object_in(self._data, "error")
        if error:
            return contents.INTERRUPTED if error.get("name") == ABORTED else contents.FAILED
        finish = text_in(self._data, "finish")
        return contents.INTERRUPTED if finish in ("", "unknown") else finish.replace("-", "_")

    def usage(self) -> list[ImportedUsage]:
        """The tokens of the request; none of a copy or of a request that was interrupted."""
        tokens = object_in(self._data, "tokens")
        cache = object_in(tokens, "cache")
        reasoning = number_in(tokens, "reasoning")
        spent = ImportedUsage(
            text_in(self._data, "modelID"),
            number_in(tokens, "input"),
            number_in(tokens, "output") + reasoning,
            number_in(cache, "read"),
            number_in(cache, "write"),
            reasoning,
            _cost_of(self._data),
            key=self._key,
            answer=self._key,
        )
        return [spent] if any(spent[1:6]) and not self.is_copy else []


def _key_of(native_id: str) -> str:
    """The identity of a record; empty for a result that Hermes has only filled in."""
    own = OWN_ID.fullmatch(native_id)
    return own_key(own[1]) if own else native_id


def _title_of(text: str) -> str | None:
    return None if UNNAMED.match(text) else contents.title_of(text)


def _is_finished(data: JsonObject) -> bool:
    return bool(object_in(data, "time").get("completed") or data.get("error"))


def _cost_of(data: JsonObject) -> float | None:
    """The stated cost; zero stands for a model whose price is not known."""
    cost = data.get("cost")
    return float(cost) if isinstance(cost, (int, float)) and cost > 0 else None


def _image_of(part: JsonObject) -> list[str]:
    """The URL of the picture in a file part; other files are in texts that the program adds."""
    url = text_in(part, "url")
    is_image = text_in(part, "mime").startswith("image/") and url.startswith("data:")
    return [url] if is_image else []
