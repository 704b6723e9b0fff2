"""Places whose messages wait until a budget is free again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.delivery.inbox import INBOX_TOPIC, RELEASE_PLACE
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.delivery.rows import IncomingMessage
    from hermes_state.engine.transaction import Tx

PAUSE = """
    INSERT INTO hermes_paused_place (session_key, until_at, platform, user_id)
    VALUES (?, ?, ?, ?)
    ON CONFLICT (session_key) DO UPDATE SET until_at = excluded.until_at,
        platform = excluded.platform, user_id = excluded.user_id
"""
SELECT_PAUSED = "SELECT session_key, until_at, platform, user_id FROM hermes_paused_place"
RELEASE = "DELETE FROM hermes_paused_place WHERE session_key = ?"


class PausedPlace(NamedTuple):
    """A place whose messages wait, and the person whose budget is used up."""

    session_key: str
    until_at: float
    platform: str
    user_id: str


class PausedPlaceRepository(Repository):
    """Places whose messages no process claims before a time."""

    def pause(self, message: IncomingMessage, place: PausedPlace) -> None:
        """Requeue a claimed message; all messages of its place wait."""
        process_id = self.identity.process_id

        def pause(tx: Tx) -> None:
            tx.run(RELEASE_PLACE, (process_id, message.session_key))
            tx.run(PAUSE, place)

        self.engine.write(pause)

    def all(self) -> list[PausedPlace]:
        """All paused places."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_PAUSED))
        return [PausedPlace._make(row) for row in rows]

    def release(self, session_key: str) -> None:
        """Let the messages of a place be processed."""

        def release(tx: Tx) -> None:
            tx.run(RELEASE, (session_key,))
            tx.wake(INBOX_TOPIC)

        self.engine.write(release)
