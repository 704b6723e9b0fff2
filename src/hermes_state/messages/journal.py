"""Journal of messages that the database refused.

One file per process, one JSON line per message, synced to disk before the call returns.
The lines are stored in the database as soon as it accepts writes: by the same process, or
by the next one that opens the store. Message identities prevent duplicates.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.atomic_files import sync_folder
from hermes_core.errors import NotSavedError
from hermes_core.ids import MessageIds
from hermes_state.engine.threads import run_off_main_thread

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypedDict

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.messages.rows import NewMessage

    class JournalLine(TypedDict):
        """A message in a journal; `words` is its preview."""

        session_id: str
        uid: str | None
        values: dict[str, SqlValue]
        tool_calls: int
        words: str


log = logging.getLogger(__name__)

SELECT_END = "SELECT ended_at, end_reason FROM sessions WHERE id = ?"
SESSION_EXISTS = "SELECT 1 FROM sessions WHERE id = ?"
INSERT_SESSION = "INSERT INTO sessions (id, source, started_at) VALUES (?, 'unknown', ?)"


class Journal:
    """The journal of one process for one store, shared by all its `SessionDB` objects.

    Its lock is never held on the main thread, where a signal handler that stores a
    message would deadlock.
    """

    def __init__(self, database: Path, process_id: str) -> None:
        self._folder = database.parent / "spool"
        self._prefix = database.name
        self._path = self._folder / f"{self._prefix}-{process_id}.jsonl"
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self.waiting = 0

    def add(self, session_id: str, messages: list[NewMessage], cause: BaseException) -> None:
        """Write messages to the journal, all or none; raises NotSavedError if that fails."""
        lines = b"".join(_encode_line(session_id, message) for message in messages)
        try:
            waiting = run_off_main_thread(lambda: self._add(lines, len(messages)))
        except OSError as error:
            raise NotSavedError(
                f"the message could not be saved: writing to the database failed ({cause}), and "
                f"so did writing to {self._folder} ({error.strerror}). Free some space or repair "
                "the disk, then send it again."
            ) from error
        if waiting == len(messages):
            log.warning(
                "database rejected messages: %s; keeping them in %s until it recovers",
                cause,
                self._path,
            )

    def _add(self, lines: bytes, count: int) -> int:
        with self._lock:
            self._write(lines)
            self.waiting += count
            return self.waiting

    def _open(self) -> int:
        paths.private_folder(self._folder)
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        while True:
            descriptor = os.open(self._path, flags, paths.FILE_MODE)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, self._path):
                return descriptor
            os.close(descriptor)  # another process replayed and deleted it meanwhile

    def _write(self, lines: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = self._open()
            sync_folder(self._folder)
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, lines)
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise
        if written < len(lines):
            os.ftruncate(self._descriptor, size)
            raise OSError(28, "no space left for the whole message")

    def replay(self, engine: Engine) -> int:
        """Store the journaled messages in the database; returns their number."""
        return run_off_main_thread(lambda: self._replay(engine))

    def _replay(self, engine: Engine) -> int:
        with self._lock:
            if self._descriptor is None:
                return 0
            lines = _read_lines(self._descriptor)
            engine.write_untranslated(lambda tx: store_lines(tx, lines))
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None
            count, self.waiting = self.waiting, 0
        if count:
            log.warning("database recovered: %d messages of the journal stored", count)
        return count

    def replay_orphans(self, engine: Engine) -> int:
        """Store the journals of ended processes; returns the number of messages."""
        if not self._folder.is_dir():
            return 0
        return sum(
            self._replay_file(path, engine)
            for path in sorted(self._folder.glob(f"{self._prefix}-*.jsonl"))
            if path != self._path or self._descriptor is None
        )

    def has_others(self) -> bool:
        """Whether another process, running or ended, has a journal."""
        if not self._folder.is_dir():
            return False
        return any(path != self._path for path in self._folder.glob(f"{self._prefix}-*.jsonl"))

    def _replay_file(self, path: Path, engine: Engine) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(descriptor, path):
                return 0  # replayed and deleted by its process
            lines = _read_lines(descriptor)
            engine.write_untranslated(lambda tx: store_lines(tx, lines))
            path.unlink(missing_ok=True)
        except BlockingIOError:
            return 0  # its process is running and replays it itself
        finally:
            os.close(descriptor)
        if lines:
            log.warning("journal %s replayed: %d messages stored", path.name, len(lines))
        return len(lines)

    def close(self) -> None:
        """Close the file; the next process that opens the store replays it."""
        if self._descriptor is not None:
            run_off_main_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            if self._descriptor is not None:
                if not self.waiting:
                    self._path.unlink(missing_ok=True)
                os.close(self._descriptor)
                self._descriptor = None


def _encode_line(session_id: str, message: NewMessage) -> bytes:
    values: JournalLine = {
        "session_id": session_id,
        "uid": message.uid,
        "values": message.values,
        "tool_calls": message.tool_calls,
        "words": message.preview,
    }
    return json.dumps(values).encode() + b"\n"


def store_lines(tx: Tx, lines: list[JournalLine]) -> None:
    """Store journaled messages; a missing session is created."""
    # Most processes have nothing to replay, and readers do without these modules.
    from hermes_state.messages import history  # noqa: PLC0415
    from hermes_state.messages.rows import NewMessage  # noqa: PLC0415
    from hermes_state.sessions import rows as sessions  # noqa: PLC0415

    for line in lines:
        session_id = line["session_id"]
        if not tx.value(SESSION_EXISTS, (session_id,)):
            tx.execute(INSERT_SESSION, (session_id, tx.clock.now()))
        message = NewMessage(line["values"], line["uid"], line["tool_calls"], line["words"])
        ended_at, reason = tx.row(SELECT_END, (session_id,)) or (None, None)
        history.append(tx, session_id, message)
        if ended_at is not None:  # the message is older than the end
            event = MessageIds(tx.clock).new()
            sessions.end(tx, event, session_id, reason or "shutdown", ended_at=ended_at)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at *path*."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read_lines(descriptor: int) -> list[JournalLine]:
    """The complete lines of a journal; a partial last line was never acknowledged."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = b""
    while piece := os.read(descriptor, 1 << 20):
        data += piece
    lines = []
    for line in data.split(b"\n")[:-1]:
        try:
            lines.append(json.loads(line))
        except ValueError:
            log.error("journal line unreadable, skipped: %r", line[:200])
    return lines
