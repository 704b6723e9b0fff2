"""An export file: a header, one line per session, and a last line that vouches for the rest."""

from __future__ import annotations

import hashlib
import tempfile
from typing import IO, TYPE_CHECKING, Final

from hermes_state.portable.export_schema import to_json
from hermes_state.portable.message_identities import Identities
from hermes_state.portable.record import AsItIs, SessionRecord
from hermes_state.sessions.rows import EXISTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.portable.record import Alters

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
