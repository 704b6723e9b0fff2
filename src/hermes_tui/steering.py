"""What is typed while a turn runs: read after the next tool result, or said when the turn is over.

The agent takes what it is given after tool results only. So words wait here until one comes,
and none is left behind in a turn that has no tools.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Waiting:
    """Words that nobody has read yet; used by the screen and by the turn's thread."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._is_held = False
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """Keep something for the next moment it can be read."""
        with self._lock:
            self._texts.append(text)

    def hold(self) -> None:
        """The turn is being stopped: nothing is handed to it any more."""
        with self._lock:
            self._is_held = True

    def hand_over(self, steer: Callable[[str], object]) -> int:
        """A tool has finished: the agent gets everything; how many texts that was."""
        with self._lock:
            if self._is_held:
                return 0
            texts, self._texts = self._texts, []
            for text in texts:
                steer(text)
        return len(texts)

    def take(self) -> str:
        """The turn is over: everything that was not read, as one text."""
        with self._lock:
            texts, self._texts, self._is_held = self._texts, [], False
        return "\n\n".join(texts)
