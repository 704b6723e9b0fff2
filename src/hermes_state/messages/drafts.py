"""Checkpoints of a streaming reply, which survive kill -9.

Pieces are written as they arrive, at most a few times per second, without blocking the
stream. The finished message replaces them in one transaction under the same identity; if
the process dies first, the pieces become the message, marked as interrupted. So they do when
another process takes the turn over: pieces are written under the token of the turn's lease, and
those that come later are dropped.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from hermes_core.errors import LeaseLostError, StoreError
from hermes_core.ids import uid_bytes
from hermes_state.engine import process_identity
from hermes_state.engine.threads import run_off_main_thread
from hermes_state.messages import history
from hermes_state.messages.rows import NewMessage, to_utf8_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.messages import Message
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
CONTENT: Final = "content"
REASONING: Final = "reasoning"
INTERRUPTED: Final = "interrupted"

INSERT_PIECE = """
    INSERT INTO hermes_draft (uid, part, session_id, process_id, channel, piece, written_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
DELETE_DRAFT = "DELETE FROM hermes_draft WHERE uid = ?"
OF_PROCESS = "SELECT DISTINCT uid, session_id FROM hermes_draft WHERE process_id = ?"
OF_TURN = f"{OF_PROCESS} AND session_id = ?"
IS_KEPT = """
    SELECT 1 FROM sessions WHERE id = ? AND id NOT IN (SELECT session_id FROM hermes_trash)
"""
PIECES = "SELECT channel, piece, written_at FROM hermes_draft WHERE uid = ? ORDER BY part"


class Draft:
    """A streaming reply. `write` never waits for the disk; `finish` does."""

    def __init__(
        self,
        engine: Engine,
        session_id: str,
        uid: str,
        *,
        identity: ProcessIdentity,
        save: Callable[[Message, Callable[[Tx], None]], int],
        interval_seconds: float,
        token: int | None = None,
    ) -> None:
        self.session_id = session_id
        self.uid = uid
        self._engine = engine
        self._key = uid_bytes(uid)
        self._identity = identity
        self._save = save
        self._interval = interval_seconds
        self._token = token  # of the turn's lease
        self._lock = threading.Lock()  # never held on the main thread
        self._pending: deque[tuple[str, str]] = deque()
        self._text: dict[str, list[str]] = {CONTENT: [], REASONING: []}
        self._parts = 0
        self._is_armed = False
        self._is_finished = False
        self._is_restarted = False  # the next text replaces the text so far
        self._replaces_pieces = False  # the next pieces replace those on the disk

    def write(self, text: str, channel: str = CONTENT) -> None:
        """Add streamed text."""
        if self._is_finished or not text:
            return
        if self._is_restarted:
            with self._lock:
                self._is_restarted, self._replaces_pieces = False, True
                self._pending.clear()
                self._text = {CONTENT: [], REASONING: []}
        self._text[channel].append(text)
        self._pending.append((channel, text))
        self._arm(self._interval)

    def restart(self) -> None:
        """Let the next text replace what was written so far."""
        self._is_restarted = True

    def text(self, channel: str = CONTENT) -> str:
        """All text so far."""
        return "".join(self._text[channel])

    def flush(self) -> None:
        """Write the pending text to disk now."""
        run_off_main_thread(self._checkpoint)

    def finish(
        self,
        finish_reason: str = "stop",
        *,
        also: Sequence[Callable[[Tx], object]] = (),
        **fields: Any,
    ) -> int:
        """Store the complete reply as a message and delete the draft; returns its row ID.

        The changes *also* are part of the same transaction.
        """
        self._is_finished = True
        fields.setdefault("content", self.text())
        fields.setdefault("reasoning", self.text(REASONING) or None)
        fields |= {"role": "assistant", "finish_reason": finish_reason}
        message = cast("Message", fields)

        def complete(tx: Tx) -> None:
            delete_draft(tx, self._key)
            for change in also:
                change(tx)

        return self._save(message, complete)

    def _arm(self, seconds: float) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._engine.writer().later(seconds, self._checkpoint)

    def _checkpoint(self) -> None:
        with self._lock:
            self._is_armed = False  # first: a piece that arrives now is drained below or arms again
            pieces = _merged([self._pending.popleft() for _ in range(len(self._pending))])
            if not pieces or self._is_finished:
                return
            replaces, self._replaces_pieces = self._replaces_pieces, False
            try:
                self._engine.write(lambda tx: self._insert_pieces(tx, pieces, replaces=replaces))
            except LeaseLostError as error:
                log.info("streaming reply dropped: %s", error)
            except StoreError as error:
                log.warning("streaming reply not checkpointed yet: %s", error)
                self._pending.extendleft(reversed(pieces))
                self._replaces_pieces = replaces
                self._arm(RETRY_SECONDS)
            else:
                self._parts += len(pieces)

    def _insert_pieces(self, tx: Tx, pieces: list[tuple[str, str]], *, replaces: bool) -> None:
        if self._token is not None:
            history.check_token(tx, self.session_id, self._token)
        if replaces:
            delete_draft(tx, self._key)
        first = self._parts
        if first == 0:
            process_identity.register(tx, self._identity)
        owner = (self.session_id, self._identity.process_id)
        tx.many(
            INSERT_PIECE,
            [
                (self._key, first + number, *owner, channel, to_utf8_text(piece), tx.clock.now())
                for number, (channel, piece) in enumerate(pieces)
            ],
        )


def _merged(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Adjacent pieces of one channel merged into one."""
    merged: list[tuple[str, str]] = []
    for channel, piece in pieces:
        if merged and merged[-1][0] == channel:
            merged[-1] = (channel, merged[-1][1] + piece)
        else:
            merged.append((channel, piece))
    return merged


def delete_draft(tx: Tx, key: bytes) -> None:
    """Delete the pieces of a draft."""
    tx.execute(DELETE_DRAFT, (key,))


def recover(tx: Tx, process_id: str, in_session: str | None = None) -> list[str]:
    """Store the drafts of a process that lost its turns as messages; returns their sessions."""
    touched = []
    values = (process_id,) if in_session is None else (process_id, in_session)
    for key, session_id in tx.rows(OF_PROCESS if in_session is None else OF_TURN, values):
        texts: dict[str, str] = {}
        written_at = 0.0
        for channel, piece, at in tx.rows(PIECES, (key,)):
            texts[channel] = texts.get(channel, "") + piece
            written_at = at
        message: Message = {
            "role": "assistant",
            "content": texts.get(CONTENT, ""),
            "reasoning": texts.get(REASONING),
            "finish_reason": INTERRUPTED,
            "timestamp": written_at,
        }
        if tx.value(IS_KEPT, (session_id,)):
            history.append(tx, session_id, NewMessage.encode(message, key.hex()))
            touched.append(session_id)
        delete_draft(tx, key)
    return touched
