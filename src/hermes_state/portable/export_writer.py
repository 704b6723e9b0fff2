"""An export file: a header, one line per session, and a last line that vouches for the rest."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, TYPE_CHECKING, Final

from hermes_state.portable.export_schema import to_json
from hermes_state.portable.record import AsItIs, Identities, SessionRecord
from hermes_state.sessions import lineage
from hermes_state.sessions.rows import EXISTS
from hermes_state.sessions.trash import rows_with_delegates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.portable.record import Alters

EVERY = "SELECT id, parent_session_id, archived FROM sessions ORDER BY started_at, id"
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
TRASHED = "SELECT session_id FROM hermes_trash"


def everything(reader: Reader, *, archived: bool, trashed: bool) -> list[str]:
    """Every session, but archived and trashed ones only if wanted."""
    bin_ids = _trashed(reader)
    return parents_first(
        (session_id, parent)
        for session_id, parent, is_archived in reader.rows(EVERY)
        if (trashed if session_id in bin_ids else archived or not is_archived)
    )


def these(reader: Reader, session_ids: Collection[str]) -> list[str]:
    """The sessions named, in order."""
    wanted = set(session_ids)
    return parents_first(
        (session_id, parent) for session_id, parent, _ in reader.rows(EVERY) if session_id in wanted
    )


def conversations(reader: Reader, session_ids: Iterable[str], *, trashed: bool) -> list[str]:
    """The sessions named, the rows they continue, and the work done for them."""
    bin_ids = set() if trashed else _trashed(reader)
    found: set[str] = set()
    for session_id in session_ids:
        for one in lineage.chain_of(reader, session_id):
            if one not in found:
                found.update(rows_with_delegates(reader, one))
    return these(reader, found - bin_ids)


def relatives(reader: Reader, session_id: str) -> list[str]:
    """A session, everything it came from, and the rows in which it was continued."""
    chain = lineage.chain_of(reader, lineage.tip_of(reader, session_id))
    found = {session_id, *chain}
    current = reader.value(PARENT, (chain[0],))
    while current is not None and current not in found:
        found.add(current)
        current = reader.value(PARENT, (current,))
    return these(reader, found)


def parents_first(rows: Iterable[tuple[str, str | None]]) -> list[str]:
    """Ids in the given order, but none before its parent; a circle is cut somewhere."""
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


FORMAT: Final = "hermes-export"
VERSION: Final = 1
SPOOL_BYTES: Final = 4 << 20
PIECE_BYTES: Final = 1 << 20


def export_pieces(
    engine: Engine, session_ids: Sequence[str], redactor: Alters | None = None
) -> Iterator[bytes]:
    """The file, piece by piece; a piece need not end where a line does."""
    digest = hashlib.sha256()
    sessions = messages = 0
    header = {"format": FORMAT, "redacted": redactor is not None, "version": VERSION}
    first = to_json(header).encode() + b"\n"
    digest.update(first)
    yield first
    with Identities(engine, session_ids) as identities:
        for session_id in session_ids:
            with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as spool:
                # Read at once and passed on afterwards: a slow taker holds up no checkpoint.
                count = spool_session(engine, session_id, identities, redactor, spool)
                if count is None:
                    continue
                spool.seek(0)
                while piece := spool.read(PIECE_BYTES):
                    digest.update(piece)
                    yield piece
            sessions += 1
            messages += count
    end = {"end": FORMAT, "messages": messages, "sessions": sessions, "sha256": digest.hexdigest()}
    yield to_json(end).encode() + b"\n"


def spool_session(
    engine: Engine,
    session_id: str,
    identities: Identities,
    redactor: Alters | None,
    spool: IO[bytes],
) -> int | None:
    """Write one session's line; how many messages, or None if it has vanished meanwhile."""

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
    redactor: Alters | None,
    spool: IO[bytes],
) -> int:
    """Write the line of a session that exists; how many messages."""
    record = SessionRecord(reader, session_id, identities, redactor or AsItIs())
    for piece in record.pieces():
        spool.write(piece.encode())
    spool.write(b"\n")
    return record.messages
