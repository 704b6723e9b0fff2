"""Reads export files: verifies the complete file first, then yields its sessions."""

from __future__ import annotations

import hashlib
import json
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Required, TypedDict

from hermes_core.errors import IdFormatError, PortableFileError
from hermes_core.ids import uid_bytes
from hermes_core.json_values import list_in, number_in, object_in, objects_in, text_in
from hermes_state.portable.export_schema import UNKNOWN_COLUMN, columns_of, from_plain
from hermes_state.portable.record import (
    EXPORT_FORMAT,
    EXPORT_VERSION,
    GENERATED,
    ORIGIN_FIELD,
    UID_FIELD,
    USAGE_FIELD,
)
from hermes_state.sessions.usage import AnswerUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_core.json_values import JsonObject, JsonValue

RECORD_FIELDS: Final = frozenset(
    {"extra", "index", "messages", "session", "trash", "undo", "usage"}
)
INDEX_FIELDS: Final = frozenset({"epoch", "lifetime_messages", "lifetime_tool_calls"})
TRASH_FIELDS: Final = frozenset({"reason", "title", "trashed_at", "was_archived", "was_open"})
UNDO_FIELDS: Final = frozenset({"at", "is_open", "last", "rows"})
INTEGER_LIMIT: Final = 2**63
MAX_ID_CHARACTERS: Final = 300


class ExportedOrigin(TypedDict):
    """The row that an exported message repeats."""

    session: str
    row: int


class ExportedUndo(TypedDict):
    """An undo in an exported session."""

    at: JsonValue
    is_open: int
    last: int
    rows: list[int]


class ExportedRecord(TypedDict, total=False):
    """A session in an export file; its parts have the fields above, or columns of a table."""

    session: Required[JsonObject]
    messages: Required[list[JsonObject]]
    index: Required[JsonObject]
    trash: JsonObject | None
    undo: list[ExportedUndo]
    usage: list[JsonObject]
    extra: JsonObject


def check_record(given: Any) -> None:
    """Raise ValueError with the reason if *given* cannot have been exported."""
    _require(isinstance(given, dict), "not a JSON object")
    record: ExportedRecord = given
    _require(
        {"index", "messages", "session"} <= record.keys() <= RECORD_FIELDS,
        "unknown or missing fields",
    )
    session, messages = record["session"], record["messages"]
    _check_values(session, "session", "sessions")
    _check_text(session, "id", "session")
    _require(len(text_in(session, "id")) <= MAX_ID_CHARACTERS, "the ID of the session is too long")
    _check_text(session, "source", "session")
    _check_number(session, "started_at", "session")
    parent = session.get("parent_session_id")
    is_id = isinstance(parent, str) and len(parent) <= MAX_ID_CHARACTERS
    _require(parent is None or is_id, "the parent is not an ID")
    _require(isinstance(messages, list), "'messages' is not a list")
    for number, message in enumerate(messages):
        _check_message(message, f"message {number}")
    _check_index(record["index"])
    _check_trash(record.get("trash"))
    _check_undo(record.get("undo", []), len(messages))
    _require(isinstance(record.get("usage", []), list), "'usage' is not a list")
    for row in record.get("usage", []):
        _check_values(row, "usage", "session_model_usage")
        _check_text(row, "model", "usage")
    _check_values(record.get("extra", {}), "extra")
    _require(
        not any("." in name for name in record.get("extra", {})), "'extra' has an invalid name"
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_values(row: Any, where: str, table: str = "") -> None:
    _require(isinstance(row, dict), f"'{where}' is not an object")
    known = columns_of(table) if table else {}
    for name, value in row.items():
        if name in {UID_FIELD, ORIGIN_FIELD}:
            continue
        is_missing = value is None and known.get(name, UNKNOWN_COLUMN).is_required
        _require(not is_missing, f"{where}: {name} is missing")
        try:
            _check_value(from_plain(value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {name} has a value that cannot be stored") from error


def _check_value(value: Any) -> None:
    _require(isinstance(value, (str, int, float, bytes)) or value is None, "not a scalar")
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is a ValueError
    _require(value == value, "not a number")  # noqa: PLR0124 - NaN is not equal to itself
    if isinstance(value, int):
        _require(
            -INTEGER_LIMIT <= value < INTEGER_LIMIT and not isinstance(value, bool),
            "not a 64-bit number",
        )


def _check_text(row: JsonObject, name: str, where: str) -> None:
    _require(isinstance(row.get(name), str) and row[name] != "", f"{where}: {name} is missing")


def _check_number(row: JsonObject, name: str, where: str) -> None:
    value = from_plain(row.get(name))
    _require(isinstance(value, (int, float)), f"{where}: {name} is not a number")
    _check_value(value)


def _check_count(value: Any, below: float, what: str) -> None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
    _require(is_count, f"{what} is out of range")


def _check_message(message: Any, where: str) -> None:
    _check_values(message, where, "messages")
    _require(isinstance(message.get("role"), str), f"{where}: role is missing")
    _check_number(message, "timestamp", where)
    uid = message.get(UID_FIELD)
    if uid is not None:
        try:
            uid_bytes(uid)
        except (IdFormatError, TypeError) as error:
            raise ValueError(f"{where}: {UID_FIELD} is not a valid identity") from error
    if message.get(ORIGIN_FIELD) not in (None, GENERATED):
        _check_origin(message[ORIGIN_FIELD], f"{where}: {ORIGIN_FIELD}")
    if USAGE_FIELD in message:
        try:
            parse_usage(message[USAGE_FIELD])
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{where}: {USAGE_FIELD} is not valid") from error


def parse_usage(text: Any) -> AnswerUsage:
    """The usage of an exported answer; fields of a newer release are ignored."""
    fields = json.loads(text)
    for name in ("model", "cost_status"):
        _require(isinstance(fields[name], str), f"{name} is not text")
    for name in AnswerUsage._fields[1:6]:
        _check_count(fields[name], INTEGER_LIMIT, name)
    for name, kind in (("cost_usd", float | int | None), ("seconds", float | int)):
        _require(isinstance(fields[name], kind), f"{name} is not a number")
    return AnswerUsage(**{name: fields[name] for name in AnswerUsage._fields})


def _check_origin(given: Any, where: str) -> None:
    is_whole = isinstance(given, dict) and given.keys() == {"row", "session"}
    _require(is_whole, f"{where} is not a valid origin")
    origin: ExportedOrigin = given
    _require(isinstance(origin["session"], str), f"{where} is not a valid origin")
    _check_count(origin["row"], INTEGER_LIMIT, where)


def _check_index(part: Any) -> None:
    _require(isinstance(part, dict) and part.keys() == INDEX_FIELDS, "'index' is incomplete")
    for name, value in part.items():
        _check_count(value, INTEGER_LIMIT, f"index: {name}")


def _check_trash(part: Any) -> None:
    if part is None:
        return
    _check_values(part, "trash")
    _require(part.keys() == TRASH_FIELDS, "'trash' is incomplete")
    _check_number(part, "trashed_at", "trash")
    _check_text(part, "reason", "trash")
    for name in ("was_archived", "was_open"):
        _check_count(part[name], INTEGER_LIMIT, f"trash: {name}")


def _check_undo(part: Any, messages: int) -> None:
    _require(isinstance(part, list), "'undo' is not a list")
    for given in part:
        _require(isinstance(given, dict) and given.keys() == UNDO_FIELDS, "'undo' is incomplete")
        _check_number(given, "at", "undo")
        entry: ExportedUndo = given
        _check_count(entry["is_open"], 2, "undo: is_open")
        _check_count(entry["last"], messages, "undo: last")
        _require(isinstance(entry["rows"], list), "undo: rows is not a list")
        for row in entry["rows"]:
            _check_count(row, messages, "undo: a row")


class RowOrigin(NamedTuple):
    """The row that a message repeats: the session, and the position in it."""

    session: str
    row: int

    @classmethod
    def parse(cls, fields: JsonObject) -> RowOrigin:
        """An origin that was checked."""
        return cls(text_in(fields, "session"), number_in(fields, "row"))


class UndoEntry(NamedTuple):
    """An undo: its time, whether it can be redone, the last row then, and its rows."""

    at: JsonValue
    is_open: int
    last: int
    rows: list[int]


class IndexCounts(NamedTuple):
    """The epoch and the lifetime counts of a session."""

    epoch: int
    lifetime_messages: int
    lifetime_tool_calls: int


class ExportRecord(NamedTuple):
    """An exported session that was checked; its rows may have columns of other releases."""

    session: JsonObject
    messages: list[JsonObject]
    extra: JsonObject
    counts: IndexCounts
    trash: JsonObject | None
    undo: list[UndoEntry]
    usage: list[JsonObject]

    @classmethod
    def parse(cls, fields: JsonObject) -> ExportRecord:
        """The parts of a record that `check_record` accepts."""
        counts = object_in(fields, "index")
        trash = fields.get("trash")
        return cls(
            session=object_in(fields, "session"),
            messages=objects_in(fields, "messages"),
            extra=object_in(fields, "extra"),
            counts=IndexCounts(*(number_in(counts, name) for name in IndexCounts._fields)),
            trash=trash if isinstance(trash, dict) else None,
            undo=[_undo_entry(entry) for entry in objects_in(fields, "undo")],
            usage=objects_in(fields, "usage"),
        )


def _undo_entry(entry: JsonObject) -> UndoEntry:
    rows = [row for row in list_in(entry, "rows") if isinstance(row, int)]
    is_open, last = number_in(entry, "is_open"), number_in(entry, "last")
    return UndoEntry(entry.get("at"), is_open, last, rows)


class ExportLine(NamedTuple):
    """A session line of the file."""

    number: int
    raw: bytes
    record: ExportRecord

    @property
    def session_id(self) -> str:
        """The ID of the session in the export."""
        return text_in(self.record.session, "id")


class ExportSummary(NamedTuple):
    """Content of a valid file."""

    sessions: int
    messages: int
    is_redacted: bool


class ExportFile:
    """An export file; *file* must be seekable, *name* is used in error messages."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name

    def verify(self, each: Callable[[ExportLine], object] | None = None) -> ExportSummary:
        """Read the complete file; PortableFileError names the first invalid line.

        *each* is called with every session, before the rest of the file is verified.
        """
        digest = hashlib.sha256()
        header: JsonObject | None = None
        session_ids: set[str] = set()
        messages = 0
        for number, raw in self._raw_lines():
            value = self._parse(number, raw)
            if header is None:
                header = self._header(value)
            elif "end" in value:
                return self._end(
                    number, value, digest.hexdigest(), (len(session_ids), messages), header
                )
            else:
                line = self._line(number, raw, value)
                if line.session_id in session_ids:
                    raise self._error(number, f"session {line.session_id} occurs twice")
                session_ids.add(line.session_id)
                messages += len(line.record.messages)
                if each is not None:
                    each(line)
            digest.update(raw)
        if header is None:
            raise PortableFileError(f"{self._name} is empty")
        raise PortableFileError(
            f"{self._name} ends after line {len(session_ids) + 1}, before its last line: the rest "
            "is missing. Nothing was changed; export it again."
        )

    def sessions(self) -> Iterator[ExportLine]:
        """The sessions of a verified file."""
        for number, raw in self._raw_lines():
            value = self._parse(number, raw)
            if number > 1 and "end" in value:
                return
            if number > 1:
                yield self._line(number, raw, value)

    def _raw_lines(self) -> Iterator[tuple[int, bytes]]:
        self._file.seek(0)
        return enumerate(self._file, 1)

    def _parse(self, number: int, raw: bytes) -> JsonObject:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if number == 1:
                raise self._foreign() from error
            raise self._error(number, "invalid JSON") from error
        if not isinstance(value, dict):
            raise self._foreign() if number == 1 else self._error(number, "not a JSON object")
        if not raw.endswith(b"\n"):
            raise self._error(number, "the line is cut off")
        return value

    def _header(self, value: JsonObject) -> JsonObject:
        if value.get("format") != EXPORT_FORMAT:
            raise self._foreign()
        if value.get("version") != EXPORT_VERSION:
            raise PortableFileError(
                f"{self._name} has format version {value.get('version')}; this release supports "
                f"{EXPORT_VERSION}. Update Hermes; nothing was changed."
            )
        return value

    def _line(self, number: int, raw: bytes, value: JsonObject) -> ExportLine:
        try:
            check_record(value)
        except (ValueError, TypeError) as error:
            raise self._error(number, str(error)) from error
        return ExportLine(number, raw, ExportRecord.parse(value))

    def _end(
        self,
        number: int,
        value: JsonObject,
        digest: str,
        counted: tuple[int, int],
        header: JsonObject,
    ) -> ExportSummary:
        if (value.get("sessions"), value.get("messages")) != counted:
            raise self._error(number, "its counts of sessions and messages do not match the file")
        expected = {
            "end": EXPORT_FORMAT,
            "messages": counted[1],
            "sessions": counted[0],
            "sha256": digest,
        }
        if value != expected:
            raise self._error(number, "checksum mismatch: the file was changed")
        if self._file.read(1):
            raise self._error(number + 1, "unexpected data after the last line")
        return ExportSummary(*counted, is_redacted=bool(header.get("redacted")))

    def _error(self, number: int, reason: str) -> PortableFileError:
        return PortableFileError(
            f"{self._name}, line {number}: {reason}. The file is damaged; nothing was changed."
        )

    def _foreign(self) -> PortableFileError:
        return PortableFileError(
            f"{self._name}, line 1: not a Hermes export; expected a file written by "
            "`hermes sessions export`. Nothing was changed."
        )
