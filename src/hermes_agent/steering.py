"""What is said to a turn that runs: it waits here until the model reads it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple


class Steered(NamedTuple):
    """Something said to a turn; with an identity, where it is kept elsewhere, too."""

    text: str
    uid: str | None = None


class Steering:
    """What waits, in the order in which it was said."""

    def __init__(self) -> None:
        self._waiting: list[Steered] = []
        self._lock = threading.Lock()

    def add(self, text: str, uid: str | None = None) -> None:
        """Say something."""
        with self._lock:
            self._waiting.append(Steered(text, uid))

    def take(self) -> list[Steered]:
        """All that waits; it is read now."""
        with self._lock:
            found, self._waiting = self._waiting, []
        return found


def in_words(steered: list[Steered]) -> str:
    """What was said, as one text."""
    return "\n\n".join(one.text for one in steered)


def identity(steered: list[Steered]) -> dict[str, Any]:
    """What the store is to know it by: the first identity, and the others as well."""
    uids = [one.uid for one in steered if one.uid]
    return {"uid": uids[0], "aliases": uids[1:]} if uids else {}
