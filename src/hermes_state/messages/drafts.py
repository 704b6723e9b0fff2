"""A reply while it streams, safe from kill -9.

Pieces are written as they come, at most a few times a second, and never block whoever
shows the text. The finished message replaces them in one transaction under the same
identity; if the process dies first, the pieces become the message, marked interrupted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import StoreError
from hermes_core.ids import uid_bytes
from hermes_state.engine import process_identity
from hermes_state.engine.threads import run_off_main_thread
from hermes_state.messages import append
from hermes_state.messages.rows import NewMessage, storable

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
CONTENT: Final = "content"
REASONING: Final = "reasoning"
INTERRUPTED: Final = "interrupted"

UPSERT_DRAFT = """
    INSERT INTO hermes_draft (uid, part, session_id, process_id, channel, piece, written_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
CLEAR = "DELETE FROM hermes_draft WHERE uid = ?"
OF_PROCESS = "SELECT DISTINCT uid, session_id FROM hermes_draft WHERE process_id = ?"
PIECES = "SELECT channel, piece, written_at FROM hermes_draft WHERE uid = ? ORDER BY part"


class Draft:
    """One streaming reply. `write` never waits for the disk; `finish` does."""

    def __init__(
        self,
        engine: Engine,
        session_id: str,
        uid: str,
        *,
        identity: ProcessIdentity,
        save: Callable[[dict[str, Any], Callable[[Tx], None]], int],
        interval_seconds: float,
    ) -> None:
        self.session_id = session_id
        self.uid = uid
        self._engine = engine
        self._key = uid_bytes(uid)
        self._identity = identity
        self._save = save
        self._interval = interval_seconds
        self._lock = threading.Lock()  # never held on the main thread
        self._pending: deque[tuple[str, str]] = deque()
        self._shown: dict[str, list[str]] = {CONTENT: [], REASONING: []}
        self._parts = 0
        self._is_armed = False
        self._is_over = False

    def write(self, text: str, channel: str = CONTENT) -> None:
        """Add text that is being shown now."""
        if self._is_over or not text:
            return
        self._shown[channel].append(text)
        self._pending.append((channel, text))
        self._arm(self._interval)

    def text(self, channel: str = CONTENT) -> str:
        """Everything shown so far."""
        return "".join(self._shown[channel])

    def flush(self) -> None:
        """Put what was shown on disk now."""
        run_off_main_thread(self._checkpoint)

    def finish(self, finish_reason: str = "stop", **fields: Any) -> int:
        """The reply is complete: store it as a message and drop the draft; its row id."""
        self._is_over = True
        fields.setdefault("content", self.text())
        fields.setdefault("reasoning", self.text(REASONING) or None)
        message = {"role": "assistant", "finish_reason": finish_reason, **fields}
        return self._save(message, lambda tx: clear(tx, self._key))

    def _arm(self, seconds: float) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._engine.writer().later(seconds, self._checkpoint)

    def _checkpoint(self) -> None:
        with self._lock:
            self._is_armed = False  # first: a piece that comes now is taken, or arms again
            pieces = _merged(_taken(self._pending))
            if not pieces or self._is_over:
                return
            try:
                self._engine.write(lambda tx: self._put(tx, pieces))
            except StoreError as error:
                log.warning("a streaming reply could not be checkpointed yet: %s", error)
                self._pending.extendleft(reversed(pieces))
                self._arm(RETRY_SECONDS)
            else:
                self._parts += len(pieces)

    def _put(self, tx: Tx, pieces: list[tuple[str, str]]) -> None:
        first = self._parts
        if first == 0:
            process_identity.register(tx, self._identity)
        owner = (self.session_id, self._identity.process_id)
        tx.many(
            UPSERT_DRAFT,
            [
                (self._key, first + number, *owner, channel, storable(piece), tx.clock.now())
                for number, (channel, piece) in enumerate(pieces)
            ],
        )


def _taken(pending: deque[tuple[str, str]]) -> list[tuple[str, str]]:
    """Everything that is pending, taken out while more may come."""
    return [pending.popleft() for _ in range(len(pending))]


def _merged(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbouring pieces of one channel as one."""
    merged: list[tuple[str, str]] = []
    for channel, piece in pieces:
        if merged and merged[-1][0] == channel:
            merged[-1] = (channel, merged[-1][1] + piece)
        else:
            merged.append((channel, piece))
    return merged


def clear(tx: Tx, key: bytes) -> None:
    """A draft has become a message."""
    tx.execute(CLEAR, (key,))


def recover(tx: Tx, process_id: str) -> list[str]:
    """Make messages of a dead process's drafts; the sessions they belong to."""
    touched = []
    for key, session_id in tx.rows(OF_PROCESS, (process_id,)):
        texts: dict[str, str] = {}
        written_at = 0.0
        for channel, piece, at in tx.rows(PIECES, (key,)):
            texts[channel] = texts.get(channel, "") + piece
            written_at = at
        fields = {
            "role": "assistant",
            "content": texts.get(CONTENT, ""),
            "reasoning": texts.get(REASONING),
            "finish_reason": INTERRUPTED,
            "timestamp": written_at,
        }
        if tx.value("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
            append.append(tx, session_id, NewMessage.from_fields(fields, key.hex()))
            touched.append(session_id)
        clear(tx, key)
    return touched
