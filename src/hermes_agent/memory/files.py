"""The two files that show the agent's memory, for people and for hermes-agent.

MEMORY.md has facts about the work, USER.md about the user. Entries are separated by a line with a
single `§`. Entries that are not changed keep their bytes, also where they are not UTF-8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

BYTE_ORDER_MARK: Final = "\ufeff"  # which some editors write
SEPARATOR: Final = "\n§\n"
MARK: Final = re.compile(r"(?:\A|\r?\n)§[ \t]*(?=\r?\n|\Z)")


class MemoryKind(NamedTuple):
    """One of the two files."""

    name: str
    characters: int


MEMORY_KINDS: dict[str, MemoryKind] = {
    "memory": MemoryKind("MEMORY.md", 2_200),
    "user": MemoryKind("USER.md", 1_375),
}


class MemoryText:
    """The content of a file, as pieces and the separators between them."""

    def __init__(self, content: bytes) -> None:
        text = content.decode("utf-8", "surrogateescape")
        self._encoding_mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        text = text.removeprefix(BYTE_ORDER_MARK)
        self._pieces = [text]
        self._marks: list[str] = []
        for found in reversed(list(MARK.finditer(text))):
            first = self._pieces.pop(0)
            self._pieces[:0] = [first[: found.start()], first[found.end() :]]
            self._marks.insert(0, found.group())

    @property
    def entries(self) -> list[str]:
        """The entries as text."""
        return [entry for entry in map(_entry, self._pieces) if entry]

    def remove(self, entries: Collection[str]) -> None:
        """Remove entries."""
        for place in reversed(range(len(self._pieces))):
            if _entry(self._pieces[place]) in entries:
                del self._pieces[place]
                if self._marks:
                    del self._marks[max(place - 1, 0)]
                if place == 0 and self._pieces:
                    self._pieces[0] = self._pieces[0].lstrip("\r\n")

    def add(self, entries: Iterable[str]) -> None:
        """Add entries at the end."""
        for entry in entries:
            if self.entries:
                line_end = "\r\n" if self._pieces[-1].endswith("\r\n") else "\n"
                self._pieces[-1] = self._pieces[-1].rstrip()
                self._marks.append(f"{line_end}§")
                self._pieces.append(f"{line_end}{entry.replace(chr(10), line_end)}{line_end}")
            else:
                self._pieces, self._marks = [f"{entry}\n"], []

    def replace(self, entry: str, other: str) -> None:
        """Replace the text of an entry in its place."""
        for place, piece in enumerate(self._pieces):
            if _entry(piece) == entry:
                lead = piece[: len(piece) - len(piece.lstrip())]
                self._pieces[place] = lead + other + piece[len(piece.rstrip()) :]

    def arrange(self, order: Sequence[str]) -> None:
        """Bring the entries into an order; others stay at the end."""
        places = {entry: place for place, entry in enumerate(order)}
        arranged = sorted(self.entries, key=lambda entry: places.get(entry, len(places)))
        if arranged != self.entries:
            pieces = {_entry(piece): piece.strip() for piece in self._pieces}
            self._pieces = [pieces[arranged[0]], *(f"\n{pieces[entry]}" for entry in arranged[1:])]
            self._marks = ["\n§"] * (len(arranged) - 1)

    def content(self) -> bytes:
        """The bytes of the file."""
        parts = [self._pieces[0]] if self._pieces else []
        for mark, piece in zip(self._marks, self._pieces[1:], strict=True):
            parts += [mark, piece]
        text = "".join(parts)
        if text.strip() and not text.endswith("\n"):
            text += "\n"
        return (self._encoding_mark + text).encode("utf-8", "surrogateescape")


def _entry(piece: str) -> str:
    """The text of a piece; bytes that are not UTF-8 are replaced."""
    text = piece.strip().replace("\r\n", "\n")
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def used_characters(entries: list[str]) -> int:
    """The number of characters used by the entries."""
    return len(SEPARATOR.join(entries))


def fitting(entries: Iterable[str], limit: int, used: int = 0) -> list[str]:
    """The first entries that fit into a file or a prompt, which has *used* characters already."""
    taken = []
    for entry in entries:
        size = len(entry) + (len(SEPARATOR) if used else 0)
        if used + size <= limit:
            used += size
            taken.append(entry)
    return taken
