"""What a person says while a turn runs, until somebody has read it.

Steering goes to the agent, which reads it behind the next tool result. What it has not read
when the turn is over, and what was meant for later, is said then, in its order. Until it is
said, it stands in the store: whatever happens to the process, it goes back to the person.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_state import SessionDB

NOTE: Final = "hermes_unread:"


class After(NamedTuple):
    """After a turn: what is said next, and what goes back to the person instead."""

    following: str = ""
    back: str = ""


class Unread:
    """Words that wait; used by the turn's thread and by those of requests."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._name = ""
        self._is_noted = False
        self._steering: list[str] = []
        self._later: deque[str] = deque()
        self._instead = ""
        self._is_held = False
        self._lock = threading.Lock()

    def of(self, session_id: str) -> str:
        """These are words to this conversation; what a process that died had not said."""
        with self._lock:
            self._name = NOTE + session_id
            found = self._db.get_meta(self._name)
            if found:
                self._db.delete_meta(self._name)
        return "\n\n".join(json.loads(found)) if found else ""

    def _note(self) -> None:
        waiting = [*self._steering, *self._later]
        if waiting:
            self._db.set_meta(self._name, json.dumps(waiting))
        elif self._is_noted:
            self._db.delete_meta(self._name)
        self._is_noted = bool(waiting)

    def steer(self, text: str) -> None:
        """Handed to the agent, which has not read it yet."""
        with self._lock:
            self._steering.append(text)
            self._note()

    def add(self, text: str) -> None:
        """To be said when the turn is over."""
        with self._lock:
            self._later.append(text)
            self._note()

    def read(self) -> None:
        """The agent has read what it was given."""
        with self._lock:
            if self._steering:
                self._steering = []
                self._note()

    def hold(self, instead: str = "") -> None:
        """The turn is being stopped: nothing is said after it but what is to be said *instead*."""
        with self._lock:
            self._is_held = True
            self._instead = instead

    def waiting(self) -> list[str]:
        """All that waits."""
        with self._lock:
            return [*self._steering, *self._later]

    def after(self, *, is_well: bool) -> After:
        """The turn is over."""
        with self._lock:
            if is_well and not self._is_held:
                found = After(self._next())
            else:
                back = "\n\n".join([*self._steering, *self._later])
                found = After(self._instead, back)
                self._steering, self._later = [], deque()
            self._instead, self._is_held = "", False
            self._note()
            return found

    def _next(self) -> str:
        if self._steering:
            steering, self._steering = "\n\n".join(self._steering), []
            return steering
        return self._later.popleft() if self._later else ""
