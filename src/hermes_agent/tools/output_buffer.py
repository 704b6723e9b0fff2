"""What a program prints: decoded as it comes, its beginning and its end kept."""

from __future__ import annotations

import codecs
from collections import deque

DEFAULT_CHARACTERS = 30_000


class Output:
    """Text of any length in bounded memory: the head and the tail stay."""

    def __init__(self, limit: int = DEFAULT_CHARACTERS) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._head_limit = limit // 2
        self._tail_limit = limit - self._head_limit
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.total = 0  # characters printed so far

    def feed(self, data: bytes, *, is_last: bool = False) -> str:
        """Take what was printed; gives back the text of it that is complete."""
        text = self._decoder.decode(data, is_last)
        self.total += len(text)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += text[:room]
        self._keep_end(text[max(room, 0) :])
        return text

    def _keep_end(self, text: str) -> None:
        if not text:
            return
        self._tail.append(text[-self._tail_limit :])
        self._tail_length += len(self._tail[-1])
        while self._tail_length - len(self._tail[0]) >= self._tail_limit:
            self._tail_length -= len(self._tail.popleft())

    def _end(self) -> str:
        return "".join(self._tail)[-self._tail_limit :] if self._tail else ""

    def text(self) -> str:
        """All of it, or its head and tail with a line that says how much was cut."""
        end = self._end()
        cut = self.total - len(self._head) - len(end)
        if cut <= 0:
            return self._head + end
        return f"{self._head}\n\n[… {cut:,} characters cut …]\n\n{end}"

    def tail(self, characters: int) -> str:
        """The newest of it."""
        end = self._end()
        if len(end) < characters and self.total <= len(self._head) + len(end):
            end = self._head + end
        return end[-characters:]
