"""Commands in a chat: those of every conversation, and what means something else here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_cli import slash
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from gateway.conversations import Conversations
    from gateway.entries import SessionEntry
    from gateway.platforms.base import MessageEvent
    from gateway.questions import ChatQuestions
    from gateway.session import SessionStore
    from hermes_state import SessionDB

RESET: Final = (
    "New session. The conversation before it is kept: /resume goes on with it, and I can "
    "search it for you."
)
AT_HOME: Final = frozenset({"save", "quit", "exit", "q"})  # what makes no sense in a chat
LISTED: Final = 10


class Commands:
    """What a message that begins with a slash does."""

    def __init__(
        self,
        db: SessionDB,
        places: SessionStore,
        conversations: Conversations,
        questions: ChatQuestions,
    ) -> None:
        self._db = db
        self._places = places
        self._conversations = conversations
        self._questions = questions

    def run(
        self, entry: SessionEntry, event: MessageEvent, *, is_done: bool = False
    ) -> slash.Outcome:
        """Carry out the command of a message.

        One that goes elsewhere and *is_done*, before a crash, is not carried out again.
        """
        name, words = event.get_command() or "", event.get_command_args()
        if name in {"new", "reset"}:
            return slash.Outcome(RESET) if is_done else self._new(entry, words)
        if name == "resume":
            return self._told(entry.session_id) if is_done else self._resume(entry, words)
        if name == "sessions":
            return slash.Outcome("\n".join(self._own(entry)) or "No conversations yet.")
        if name == "start":
            return slash.Outcome("Hello. Write to me; /help lists what else there is.")
        if name in AT_HOME:
            raise UsageError(f"/{name} is for the terminal")
        return self._at_desk(entry, name, words)

    def _at_desk(self, entry: SessionEntry, name: str, words: str) -> slash.Outcome:
        slash.find(name)
        desk = self._conversations.take(entry)
        before = desk.session_id
        try:
            outcome = slash.run(desk, f"/{name} {words}".rstrip())
            if desk.session_id != before:  # a branch: the place goes along with it
                self._places.switch_session(entry.session_key, desk.session_id, "branched")
        finally:
            self._conversations.give_back(before)
        return outcome

    def _new(self, entry: SessionEntry, title: str) -> slash.Outcome:
        self._conversations.forget(entry.session_id)
        new = self._places.reset_session(entry.session_key)
        if title and new is not None:
            self._db.set_session_title(new.session_id, title)
        return slash.Outcome(RESET)

    def _resume(self, entry: SessionEntry, words: str) -> slash.Outcome:
        """Go on with an earlier conversation of this place; of no other."""
        own = self._own_ids(entry)
        if not words:
            target = entry.prev_session_id or ""
            if target not in own:
                return slash.Outcome("\n".join(self._own(entry)) or "There is none before this.")
        else:
            target = self._db.resolve(words)
        if target not in own:
            raise UsageError(
                f"there is no conversation {words!r} of this chat; /sessions lists them"
            )
        self._conversations.forget(entry.session_id)
        self._places.switch_session(entry.session_key, target)
        return self._told(target)

    def _told(self, session_id: str) -> slash.Outcome:
        row = self._db.get_session(session_id) or {}
        return slash.Outcome(f"Going on with {row.get('title') or session_id}.")

    def _own_ids(self, entry: SessionEntry) -> set[str]:
        rows = self._db.list_sessions_rich(limit=-1, session_key=entry.session_key)
        return {str(row["id"]) for row in rows} | {entry.session_id}

    def _own(self, entry: SessionEntry) -> list[str]:
        rows = self._db.list_sessions_rich(
            limit=LISTED, session_key=entry.session_key, order_by_last_active=True
        )
        return [f"{row['id']}  {row.get('title') or row.get('preview') or ''}" for row in rows]

    # While a turn runs

    def meanwhile(self, entry: SessionEntry, event: MessageEvent) -> str | None:
        """Carry out at once what concerns the running turn; None when it has to wait."""
        waiting = self._questions.waits_for(entry.session_key)
        name = event.get_command()
        if name is None:
            if waiting == "clarify":
                self._questions.answer(entry.session_key, event.text)
                return ""
            return None
        desk = self._conversations.running(entry.session_id)
        if desk is None or name not in {"approve", "deny", "stop", "steer", "status", "usage"}:
            return None
        outcome = slash.run(desk, f"/{name} {event.get_command_args()}".rstrip())
        if outcome.answer:
            is_answered = self._questions.answer(entry.session_key, outcome.answer)
            return "" if is_answered else "Nothing is being asked."
        if outcome.stop:
            desk.agent.interrupt("/stop")
            self._questions.give_up(entry.session_key)
            return ""
        if outcome.steer:
            desk.agent.steer(outcome.steer)
        return outcome.text
