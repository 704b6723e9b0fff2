"""Conversations at hand: put together when a message comes, let go of when others come."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gateway.inbound.questions import ChatQuestions
    from gateway.routing.entries import SessionEntry
    from hermes_state import SessionDB

    Describe = Callable[[SessionEntry], "PlaceDescription"]

MOST: Final = 128
CHOSEN: Final = "_chosen_model"


class PlaceDescription(NamedTuple):
    """What a conversation is told about where it takes place."""

    about: str  # for the prompt
    scope_key: str  # the key of the place whose history alone may be searched; empty: all


class ConversationCache:
    """Desks by the id of their conversation; the least used is let go of first."""

    def __init__(
        self, db: SessionDB, cwd: Path, questions: ChatQuestions, describe: Describe
    ) -> None:
        self._db = db
        self._cwd = cwd
        self._questions = questions
        self._describe = describe
        self._desks: OrderedDict[str, Conversation] = OrderedDict()
        self._busy: set[str] = set()
        self._lock = threading.Lock()

    def take(self, entry: SessionEntry) -> Conversation:
        """The conversation of a place's conversation, which is busy until it is given back."""
        session_id = entry.session_id
        with self._lock:
            self._busy.add(session_id)
            conversation = self._desks.pop(session_id, None)
        try:
            conversation = conversation or self._made(entry)
        except BaseException:
            with self._lock:
                self._busy.discard(session_id)
            raise
        with self._lock:
            self._desks[session_id] = conversation
        return conversation

    def _made(self, entry: SessionEntry) -> Conversation:
        session_id = entry.session_id
        platform = entry.platform.value if entry.platform else "gateway"
        place = self._describe(entry)
        wish = ConversationOptions(
            session_id, self._chosen_model(session_id), platform, platform, self._cwd
        )
        wish = wish._replace(about=place.about, scope_key=place.scope_key)
        return Conversation(self._db, self._questions.of(entry.session_key), wish)

    def choose_model(self, session_id: str, name: str) -> None:
        """Note which model a conversation wants, for as long as it lasts."""
        self._db.update_session_meta(session_id, {CHOSEN: name})

    def _chosen_model(self, session_id: str) -> str:
        row = self._db.get_session(session_id) or {}
        try:
            found = json.loads(row.get("model_config") or "{}")
        except ValueError:
            return ""
        return str(found.get(CHOSEN) or "") if isinstance(found, dict) else ""

    def give_back(self, session_id: str) -> None:
        """Nothing runs in it any more."""
        with self._lock:
            self._busy.discard(session_id)
            idle = [one for one in self._desks if one not in self._busy]
            gone = [self._desks.pop(one) for one in idle[: max(len(self._desks) - MOST, 0)]]
        for conversation in gone:
            conversation.stop()

    def running(self, session_id: str) -> Conversation | None:
        """The conversation of a conversation in which a turn is at work."""
        with self._lock:
            return self._desks.get(session_id) if session_id in self._busy else None

    def all_running(self) -> list[Conversation]:
        """Every conversation at which a turn is at work."""
        with self._lock:
            return [self._desks[one] for one in self._busy if one in self._desks]

    def forget(self, session_id: str) -> None:
        """A conversation was left: nothing of it stays in memory."""
        with self._lock:
            conversation = self._desks.pop(session_id, None)
        if conversation is not None:
            conversation.stop()

    def close(self) -> None:
        """Let go of all."""
        with self._lock:
            desks, self._desks = list(self._desks.values()), OrderedDict()
        for conversation in desks:
            conversation.stop()
