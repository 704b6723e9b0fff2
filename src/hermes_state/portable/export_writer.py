"""Export files: a header, one line per session, and a last line with a checksum."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, TYPE_CHECKING, Final

from hermes_state.portable.export_schema import to_json
from hermes_state.portable.record import Identities, SessionRecord, UnchangedRows
from hermes_state.sessions import lineage
from hermes_state.sessions.rows import EXISTS
from hermes_state.sessions.trash import rows_with_delegates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.portable.record import RowFilter

SELECT_SESSIONS = "SELECT id, parent_session_id, archived FROM sessions ORDER BY started_at, id"
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
TRASHED = "SELECT session_id FROM hermes_trash"


def all_sessions(reader: Reader, *, archived: bool, trashed: bool) -> list[str]:
    """Every session, optionally including archived and trashed ones."""
    trashed_ids = _trashed(reader)
    return parents_first(
        (session_id, parent)
        for session_id, parent, is_archived in reader.rows(SELECT_SESSIONS)
        if (trashed if session_id in trashed_ids else archived or not is_archived)
    )


def in_order(reader: Reader, session_ids: Collection[str]) -> list[str]:
    """These sessions, parents before children."""
    selected = set(session_ids)
    return parents_first(
        (session_id, parent)
        for session_id, parent, _ in reader.rows(SELECT_SESSIONS)
        if session_id in selected
    )


def conversations(reader: Reader, session_ids: Iterable[str], *, trashed: bool) -> list[str]:
    """These sessions, the rows they continue, and the tasks delegated from them."""
    trashed_ids = set() if trashed else _trashed(reader)
    row_ids: set[str] = set()
    for session_id in session_ids:
        for row_id in lineage.chain_of(reader, session_id):
            if row_id not in row_ids:
                row_ids.update(rows_with_delegates(reader, row_id))
    return in_order(reader, row_ids - trashed_ids)


def relatives(reader: Reader, session_id: str) -> list[str]:
    """A session, its ancestors, and the rows that continue it."""
    chain = lineage.chain_of(reader, lineage.tip_of(reader, session_id))
    row_ids = {session_id, *chain}
    current = reader.value(PARENT, (chain[0],))
    while current is not None and current not in row_ids:
        row_ids.add(current)
        current = reader.value(PARENT, (current,))
    return in_order(reader, row_ids)


def parents_first(rows: Iterable[tuple[str, str | None]]) -> list[str]:
    """IDs in the given order, but each after its parent; cycles are broken."""
    parent_of = dict(rows)
    done: dict[str, None] = {}
    for session_id in parent_of:
        path: dict[str, None] = {}
        current: str | None = session_id
        while current in parent_of and current not in done and current not in path:
            path[current] = None
            current = parent_of[current]
        done.update(dict.fromkeys(reversed(path)))
    return list(done)


def _trashed(reader: Reader) -> set[str]:
    if not reader.columns.has_own_tables:
        return set()
    return {row[0] for row in reader.rows(TRASHED)}


EXPORT_FORMAT: Final = "hermes-export"
EXPORT_VERSION: Final = 1
MAX_MEMORY_BYTES: Final = 4 << 20
CHUNK_BYTES: Final = 1 << 20


def export_chunks(
    engine: Engine, session_ids: Sequence[str], redactor: RowFilter | None = None
) -> Iterator[bytes]:
    """The file in chunks, which do not necessarily end at line ends."""
    digest = hashlib.sha256()
    sessions = messages = 0
    header = {"format": EXPORT_FORMAT, "redacted": redactor is not None, "version": EXPORT_VERSION}
    first = to_json(header).encode() + b"\n"
    digest.update(first)
    yield first
    with Identities(engine, session_ids) as identities:
        for session_id in session_ids:
            with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES) as spool:
                # Read completely before it is yielded: a slow consumer must not block checkpoints.
                count = spool_session(engine, session_id, identities, redactor, spool)
                if count is None:
                    continue
                spool.seek(0)
                while chunk := spool.read(CHUNK_BYTES):
                    digest.update(chunk)
                    yield chunk
            sessions += 1
            messages += count
    end = {
        "end": EXPORT_FORMAT,
        "messages": messages,
        "sessions": sessions,
        "sha256": digest.hexdigest(),
    }
    yield to_json(end).encode() + b"\n"


def spool_session(
    engine: Engine,
    session_id: str,
    identities: Identities,
    redactor: RowFilter | None,
    spool: IO[bytes],
) -> int | None:
    """Write the line of a session; returns its number of messages, or None if it was deleted."""

    def write(reader: Reader) -> int | None:
        reader.execute("BEGIN")
        try:
            if not reader.value(EXISTS, (session_id,)):
                return None
            return write_record(reader, session_id, identities, redactor, spool)
        finally:
            reader.execute("ROLLBACK")

    return engine.read(write)


def write_record(
    reader: Reader,
    session_id: str,
    identities: Identities,
    redactor: RowFilter | None,
    spool: IO[bytes],
) -> int:
    """Write the line of an existing session; returns its number of messages."""
    record = SessionRecord(reader, session_id, identities, redactor or UnchangedRows())
    for chunk in record.chunks():
        spool.write(chunk.encode())
    spool.write(b"\n")
    return record.messages
