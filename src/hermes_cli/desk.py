"""The desk: the conversation a person has before them, and what can be done with it.

Terminal, terminal UI and chat apps sit at the same desk. What changes a conversation is
a method here; how it is asked for and shown is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.events import Failed
from hermes_cli import talking
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.agent import AIAgent
    from hermes_agent.compaction import Compacted
    from hermes_agent.events import Event
    from hermes_agent.tools.base import Asks
    from hermes_cli.talking import Talk, Wish
    from hermes_state import SessionDB

NOTHING_SAID = "nothing has been said in this conversation yet"


class Desk:
    """One conversation at a time, of one store."""

    def __init__(self, db: SessionDB, asks: Asks, wish: Wish) -> None:
        self.db = db
        self._asks = asks
        self._wish = wish
        self._talk: Talk = talking.begin(db, asks, wish)

    @property
    def agent(self) -> AIAgent:
        """The agent of the conversation."""
        return self._talk.agent

    @property
    def session_id(self) -> str:
        """The conversation's id."""
        return self.agent.session_id

    @property
    def exists(self) -> bool:
        """Whether anything was said yet."""
        return self.db.get_session(self.session_id) is not None

    def say(self, text: str) -> Iterator[Event]:
        """Say something; the events of the turn."""
        return self.agent.turn(text)

    # Which conversation

    def new(self, reason: str = "new_session") -> str:
        """End this conversation and begin another; its id."""
        self._leave(reason)
        self._sit_down(None)
        return self.session_id

    def resume(self, text: str) -> str:
        """Take up another conversation: an id, the beginning of one, a title, or `last`."""
        found = self.db.resolve_resume_session_id(self.db.resolve(text))
        if found == self.session_id:
            return found
        self._leave("resumed_other")
        self._sit_down(found)
        return found

    def branch(self, title: str = "") -> str:
        """Go on in a second conversation that begins as this one; its id."""
        self._require()
        found = self.db.branch_session(self.session_id, title=title or None)
        self._leave("branched")
        self._sit_down(found)
        return found

    def use_model(self, name: str) -> str:
        """Let another model answer from now on; its name."""
        wish = self._wish._replace(model=name)
        talk = talking.begin(self.db, self._asks, wish._replace(session_id=self.session_id))
        self._talk.close()
        self._wish, self._talk = wish, talk
        if self.exists:
            self.db.update_session_model(self.session_id, self.agent.model)
        return self.agent.model

    def stop(self) -> None:
        """Stop everything that runs for the conversation; its row stays as it is."""
        self._talk.close()

    def leave(self, reason: str) -> None:
        """Get up: whatever runs is stopped, the conversation's row is ended."""
        self._leave(reason)

    def _leave(self, reason: str) -> None:
        self._talk.close()
        if self.exists:
            self.db.end_session(self.session_id, reason)

    def _sit_down(self, session_id: str | None) -> None:
        self._talk = talking.begin(self.db, self._asks, self._wish._replace(session_id=session_id))

    # What was said

    def undo(self, exchanges: int = 1) -> int:
        """Take back the last exchanges; how many rows."""
        self._require()
        return len(self.db.undo(self.session_id, exchanges))

    def redo(self) -> int:
        """Bring back what the last undo took; how many rows."""
        self._require()
        return len(self.db.redo(self.session_id))

    def take_back_last(self) -> str:
        """Take back the last exchange, to ask again; what was asked."""
        self._require()
        rows = self.db.get_messages(self.session_id)
        asked = next((row["content"] for row in reversed(rows) if row["role"] == "user"), None)
        if asked is None:
            raise UsageError(NOTHING_SAID)
        self.db.undo(self.session_id, 1)
        return str(asked)

    def compress(self, focus: str = "") -> Compacted:
        """Sum up what was said before, so that there is room to go on."""
        self._require()
        result = self.agent.compress(focus)
        if isinstance(result, Failed):
            raise UsageError(str(result))
        return result

    def title(self, text: str) -> str:
        """Give the conversation a title; with no text, the one it has."""
        self._require()
        if text:
            self.db.set_session_title(self.session_id, text)
        return self.db.get_session_title(self.session_id) or ""

    def row(self) -> dict[str, Any]:
        """What the store knows about the conversation."""
        return self.db.get_session(self.session_id) or {}

    def _require(self) -> None:
        if not self.exists:
            raise UsageError(NOTHING_SAID)
