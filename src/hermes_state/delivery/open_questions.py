"""Questions of running turns that wait for an answer, so that other processes can give it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Tx

TABLE: Final = "hermes_open_question"
DELETE_EXPIRED = "DELETE FROM hermes_open_question WHERE expires_at < ?"
INSERT = """
    INSERT INTO hermes_open_question
        (question_id, session_key, session_id, kind, text, choices, asked_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SELECT_OPEN = """
    SELECT number, question_id, session_key, session_id, kind, text, choices, asked_at
    FROM hermes_open_question WHERE expires_at >= ? AND answer IS NULL ORDER BY number
"""
SET_ANSWER = """
    UPDATE hermes_open_question SET answer = ?
    WHERE question_id = ? AND answer IS NULL AND expires_at >= ?
"""
SELECT_ANSWER = "SELECT answer FROM hermes_open_question WHERE question_id = ?"
DELETE = "DELETE FROM hermes_open_question WHERE question_id = ?"


class WaitingQuestion(NamedTuple):
    """A question that waits."""

    number: int
    question_id: str
    session_key: str
    session_id: str
    kind: str  # `approval` or `clarify`
    text: str
    choices: tuple[str, ...]
    asked_at: float


class OpenQuestionRepository(Repository):
    """Open questions; each expires, so those of a dead process vanish."""

    def add(
        self,
        question_id: str,
        session_key: str,
        session_id: str,
        kind: str,
        text: str,
        choices: Sequence[str],
        seconds: float,
    ) -> None:
        """Store a question that waits for some seconds."""

        def add(tx: Tx) -> None:
            now = tx.clock.now()
            tx.run(DELETE_EXPIRED, (now,))
            row = (question_id, session_key, session_id, kind, text, json.dumps(list(choices)))
            tx.run(INSERT, (*row, now, now + seconds))

        self.engine.write(add)

    def all(self) -> list[WaitingQuestion]:
        """The questions without an answer, oldest first."""
        if TABLE not in self.engine.columns.tables:
            return []
        now = self.clock.now()
        rows = self.engine.read(lambda reader: reader.rows(SELECT_OPEN, (now,)))
        return [
            WaitingQuestion._make([*row[:6], tuple(json.loads(row[6])), row[7]]) for row in rows
        ]

    def answer(self, question_id: str, text: str) -> bool:
        """Answer a question; False if it is not open."""
        values = (text, question_id, self.clock.now())
        return self.engine.write(lambda tx: tx.execute(SET_ANSWER, values).rowcount > 0)

    def answer_of(self, question_id: str) -> str | None:
        """The answer that another process has given."""
        value = self.engine.read(lambda reader: reader.value(SELECT_ANSWER, (question_id,)))
        return None if value is None else str(value)

    def remove(self, question_id: str) -> None:
        """Delete a question that no longer waits."""
        self.engine.write(lambda tx: tx.run(DELETE, (question_id,)))
