"""The history of hermes-agent in another folder: its `state.db`, and snapshots of sessions.

Every session keeps its ID, its source and the columns of its rows. A session is read again when
it was written to since; a row is identified by its session and its number there.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Final, cast

from hermes_core.errors import UsageError
from hermes_core.json_values import object_in, objects_in, text_in
from hermes_core.paths import hermes_home
from hermes_import.contents import seconds_of, title_of
from hermes_import.files import ExportFiles, file_unit
from hermes_import.sources import Unit
from hermes_state.imports.original_history import FILE_NAME, OriginalHistory
from hermes_state.imports.repository import ORIGINAL_AGENT
from hermes_state.imports.rows import (
    ConversationKind,
    ImportedConversation,
    ImportedMessage,
    ImportedPart,
    UnitState,
    UsageColumns,
)
from hermes_state.messages.rows import decode_content, decode_json
from hermes_state.sessions.usage import COSTS, COUNTERS
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from hermes_core.json_values import JsonObject
    from hermes_core.messages import Content, ToolCallDict
    from hermes_state.engine.values import SqlValue
    from hermes_state.imports.original_history import OriginalSession

    Row = dict[str, SqlValue]

SNAPSHOTS: Final = (("sessions", "session_*.json"), ("sessions/saved", "*.json"))
USAGE_TEXTS: Final = (
    "model", "billing_provider", "billing_base_url", "billing_mode", "task", "cost_status",
    "cost_source", "pricing_version",
)  # fmt: skip
SNAPSHOT_PREFIX: Final = "session_"
ROWS_STATE: Final = "rows"  # in the state of a unit: it was read from the database
ACTUAL: Final = "actual"
OWN_HOME: Final = (
    "its history is used where it is. `hermes import hermes-agent` takes over the settings in it."
)


class HermesAgent(ExportFiles):
    """A home of hermes-agent, or its `state.db`.

    It is given by its path, as an export is: its folder may be that of Hermes.
    """

    name: ClassVar[str] = ORIGINAL_AGENT
    label: ClassVar[str] = "hermes-agent"

    def __init__(self) -> None:
        self._history: OriginalHistory | None = None

    def root_at(self, path: Path) -> Path | None:
        """The home with a `state.db`, or that file; UsageError for the folder of Hermes itself."""
        if _is_own(path):
            raise UsageError(f"{hermes_home()} is the folder of Hermes: {OWN_HOME}")
        if path.is_file():
            return path if path.name == FILE_NAME else None
        if (path / FILE_NAME).is_file():
            return path
        return path if any(_snapshots(path)) else None

    def units(self, root: Path) -> Iterator[Unit]:
        """The sessions of the database, then snapshots of sessions that it lacks."""
        database = root if root.is_file() else root / FILE_NAME
        known: set[str] = set()
        if database.is_file():
            sessions = self._opened(database).sessions()
            known = {session.session_id for session in sessions}
            yield from _units(database, sessions)
        for path in _snapshots(root):
            session_id = _snapshot_id(path)
            unit = file_unit(path) if session_id not in known else None
            if unit is not None and session_id:
                known.add(session_id)
                yield unit._replace(unit_id=_unit_id(database, session_id))

    def close(self) -> None:
        """Close the database."""
        if self._history is not None:
            self._history.close()
            self._history = None

    def read(self, unit: Unit, before: UnitState | None) -> SessionReading | SnapshotReading:
        """Read a session."""
        if unit.path.name == FILE_NAME:
            return SessionReading(self._opened(unit.path), unit, before)
        return SnapshotReading(unit, before)

    def _opened(self, database: Path) -> OriginalHistory:
        """The database, which stays open for all sessions."""
        current = self._history
        if current is None or current.path != database or not current.is_current:
            self.close()
            current = self._history = OriginalHistory(database)
        return current


def _is_own(path: Path) -> bool:
    """Whether a path leads to the file that holds the history of Hermes."""
    folder = path.parent if path.is_file() else path
    own = hermes_home() / FILE_NAME
    return folder.resolve() == own.parent.resolve() and own.exists() and not store_url(own)


def _unit_id(database: Path, session_id: str) -> str:
    return f"{database}#{session_id}"


def _units(database: Path, sessions: Sequence[OriginalSession]) -> Iterator[Unit]:
    total = sum(session.messages for session in sessions) or 1
    size = database.stat().st_size
    for session in sessions:
        yield Unit(
            _unit_id(database, session.session_id),
            database,
            session.revision,
            size * session.messages // total,
            session.last_at,
            session.started_at,
        )


def _snapshots(root: Path) -> Iterator[Path]:
    for folder, pattern in SNAPSHOTS if root.is_dir() else ():
        yield from sorted((root / folder).glob(pattern))


class SessionReading:
    """One pass over a session in the database."""

    def __init__(self, history: OriginalHistory, unit: Unit, before: UnitState | None) -> None:
        self._history = history
        self._unit = unit
        self._session_id = unit.unit_id.rpartition("#")[2]
        self._usage_before = object_in(dict(before.state), "usage") if before else {}
        self._usage: JsonObject = {}
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[ImportedPart]:
        """The session in one part."""
        row = self._history.session(self._session_id)
        if not row:
            return
        about = conversation_of(row)
        yield ImportedPart(
            about,
            self._messages(about),
            (),
            _number(row, "ended_at") or None,
            is_last=True,
            usage_columns=self._new_usage(row, self._history.usage(self._session_id)),
        )

    def state(self) -> UnitState:
        """The session is read completely."""
        state: JsonObject = {ROWS_STATE: True, "usage": self._usage}
        return UnitState(self._unit.revision, state=state, unknown=self.unknown)

    def _messages(self, about: ImportedConversation) -> list[ImportedMessage]:
        rows = list(self._history.messages(self._session_id))
        copies: list[str] = []
        if about.kind is ConversationKind.FORK and about.parent_id is not None:
            copies = _copied_keys(rows, self._history.messages(about.parent_id), about.parent_id)
        own = [_key(self._session_id, row) for row in rows[len(copies) :]]
        return [_message(key, row) for key, row in zip([*copies, *own], rows, strict=True)]

    def _new_usage(self, row: Row, by_model: list[Row]) -> list[UsageColumns]:
        """The usage since the session was read before."""
        added = []
        for total in _usage_rows(row, by_model):
            name = "|".join(str(total.get(each) or "") for each in USAGE_TEXTS[:5])
            counted = {each: total[each] for each in (*COUNTERS, *COSTS) if total.get(each)}
            self._usage[name] = cast("JsonObject", counted)
            before = object_in(self._usage_before, name)
            more = {each: _more(value, before.get(each)) for each, value in counted.items()}
            if any(more.values()):
                texts = {each: total[each] for each in USAGE_TEXTS if total.get(each)}
                key = f"{self._session_id}:{name}:{sorted(counted.items())}"
                added.append(UsageColumns(key, {**texts, **more}))
        return added


class SnapshotReading:
    """One pass over a file with a session that the database does not have."""

    def __init__(self, unit: Unit, before: UnitState | None) -> None:
        self._unit = unit
        self._is_in_history = before is not None and bool(before.state.get(ROWS_STATE))
        self.unknown: Counter[str] = Counter()

    def parts(self) -> Iterator[ImportedPart]:
        """The session, unless it was read from the database earlier."""
        record = _snapshot(self._unit.path)
        session_id = text_in(record, "session_id") or _snapshot_id(self._unit.path)
        if self._is_in_history:
            return
        started = seconds_of(record.get("session_start"), self._unit.modified_at)
        about = ImportedConversation(
            session_id,
            started,
            model=text_in(record, "model") or None,
            source=text_in(record, "platform") or "cli",
            keeps_id=True,
        )
        messages = [
            _snapshot_message(f"{session_id}:snapshot:{number}", item, started)
            for number, item in enumerate(objects_in(record, "messages"))
            if text_in(item, "role") != "system"
        ]
        yield ImportedPart(about, messages, is_last=True)

    def state(self) -> UnitState:
        """The file is read completely."""
        state: JsonObject = {ROWS_STATE: True} if self._is_in_history else {}
        return UnitState(self._unit.revision, state=state, unknown=self.unknown)


def _snapshot(path: Path) -> JsonObject:
    record = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    return record if isinstance(record, dict) else {}


def _snapshot_id(path: Path) -> str:
    """The session of a snapshot; empty if the file is not one."""
    if path.name.startswith(SNAPSHOT_PREFIX):
        return path.stem.removeprefix(SNAPSHOT_PREFIX)
    try:
        record = _snapshot(path)
    except (OSError, ValueError):
        return ""
    return text_in(record, "session_id") if isinstance(record.get("messages"), list) else ""


def _snapshot_message(key: str, item: JsonObject, started: float) -> ImportedMessage:
    content, calls = item.get("content"), item.get("tool_calls")
    return ImportedMessage(
        key,
        text_in(item, "role"),
        cast("Content", content if isinstance(content, (str, list, dict)) else None),
        seconds_of(item.get("timestamp"), started),
        cast("list[ToolCallDict]", calls) if isinstance(calls, list) else (),
        text_in(item, "tool_call_id") or None,
        text_in(item, "tool_name") or text_in(item, "name") or None,
        text_in(item, "reasoning") or None,
        text_in(item, "finish_reason") or None,
    )


def conversation_of(row: Row) -> ImportedConversation:
    """What the columns of a session say about it."""
    markers = decode_json(row.get("model_config"))
    markers = markers if isinstance(markers, dict) else {}
    kind = ConversationKind.MAIN
    if row.get("source") == "subagent" or "_delegate_from" in markers:
        kind = ConversationKind.SUBAGENT
    elif "_branched_from" in markers:
        kind = ConversationKind.FORK
    ended = _number(row, "ended_at")
    return ImportedConversation(
        _text(row, "id") or "",
        _number(row, "started_at"),
        kind,
        _text(row, "parent_session_id"),
        title_of(_text(row, "title") or ""),
        _text(row, "cwd"),
        _text(row, "git_branch"),
        _text(row, "model"),
        bool(row.get("archived")),
        _text(row, "source"),
        keeps_id=True,
        columns=row,
        end_reason=_text(row, "end_reason"),
        stays_open=not ended,
    )


def _message(key: str, row: Row) -> ImportedMessage:
    calls = decode_json(row.get("tool_calls"))
    return ImportedMessage(
        key,
        str(row.get("role") or ""),
        cast("Content", decode_content(row.get("content"))),
        _number(row, "timestamp"),
        cast("list[ToolCallDict]", calls) if isinstance(calls, list) else (),
        _text(row, "tool_call_id"),
        _text(row, "tool_name"),
        _text(row, "reasoning"),
        _text(row, "finish_reason"),
        columns=row,
    )


def _key(session_id: str, row: Row) -> str:
    return f"{session_id}:{_text(row, 'id')}"


def _copied_keys(rows: Sequence[Row], parent_rows: Iterable[Row], parent_id: str) -> list[str]:
    """The keys of the rows with which a branch repeats its parent."""
    keys: list[str] = []
    for row, original in zip(rows, parent_rows, strict=False):
        if any(row.get(name) != original.get(name) for name in ("role", "content", "tool_calls")):
            break
        keys.append(_key(parent_id, original))
    return keys


def _usage_rows(row: Row, by_model: list[Row]) -> list[Row]:
    """The usage by model, and what the session has counted besides."""
    rows = [_costs(each) for each in by_model]
    rest = _costs(row)
    for name in (*COUNTERS, *COSTS):
        counted = sum(_number(each, name) for each in rows)
        more = _number(rest, name) - counted
        rest[name] = more if more > 1e-9 else None
        if name in COUNTERS and rest[name] is not None:
            rest[name] = int(more)
    rest["task"] = None
    return [*rows, rest]


def _costs(row: Row) -> Row:
    """A copy without an actual cost of zero, which stands for none."""
    costs = dict(row)
    if not costs.get("actual_cost_usd") and costs.get("cost_status") != ACTUAL:
        costs["actual_cost_usd"] = None
    return costs


def _more(value: SqlValue, before: object) -> SqlValue:
    earlier = before if isinstance(before, (int, float)) else 0
    return value - earlier if isinstance(value, (int, float)) and value > earlier else None


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return str(value) if value not in (None, "") else None


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
