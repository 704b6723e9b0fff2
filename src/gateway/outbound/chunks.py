"""A long answer in pieces that a platform takes, with its Markdown whole in each.

A piece ends between paragraphs if it can, else between lines, else between words. A block
of code that has to be cut is closed in the one piece and opened again in the next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FENCE: Final = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
LEAST_SHARE: Final = 0.5  # of a piece: a better place to cut is not worth more than that


def pieces(text: str, longest: int, length: Callable[[str], int] = len) -> list[str]:
    """*text* in pieces of at most *longest* by *length*; nothing is lost but space at cuts."""
    if longest < 1:
        raise ValueError("a piece has room for one character at least")
    return [piece for piece in _pieces(text.strip("\n"), longest, length) if piece.strip()]


def utf16_length(text: str) -> int:
    """The length as some platforms count it: characters beyond the first plane are two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _pieces(text: str, longest: int, length: Callable[[str], int]) -> Iterator[str]:
    opening = ""
    while text:
        whole = opening + text
        if length(whole) <= longest:
            yield whole
            return
        room = _most(whole, longest, length)
        cut = max(_place(whole, room), len(opening) + 1)
        piece, rest = whole[:cut], whole[cut:]
        fence = _open_fence(piece)
        if fence and length(piece) + length(_closing(fence)) > longest:
            room = _most(whole, max(longest - length(_closing(fence)), 1), length)
            cut = max(_place(whole, room), len(opening) + 1)
            piece, rest = whole[:cut], whole[cut:]
            fence = _open_fence(piece)
        fits = fence and length(piece) + length(_closing(fence)) <= longest
        yield piece.rstrip("\n") + (_closing(fence) if fits else "")
        opening = f"{fence}\n" if fits else ""
        text = rest.lstrip("\n") if not fits else rest.removeprefix("\n")


def _most(text: str, longest: int, length: Callable[[str], int]) -> int:
    """How many characters from the beginning fit."""
    low, high = 0, min(len(text), longest)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[:middle]) <= longest:
            low = middle
        else:
            high = middle - 1
    return max(low, 1)


def _place(text: str, room: int) -> int:
    """Where to cut within *room* characters: behind the best boundary that is far enough."""
    least = int(room * LEAST_SHARE)
    for boundary in ("\n\n", "\n", " "):
        found = text.rfind(boundary, least, room)
        if found > 0:
            return found + len(boundary)
    return room


def _open_fence(text: str) -> str:
    """The line that opened a block of code which *text* does not close."""
    opened = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if not found:
            continue
        if not opened:
            opened = line
        elif not found[3].strip() and found[2].startswith(_marks(opened)):
            opened = ""
    return opened


def _marks(line: str) -> str:
    found = FENCE.match(line)
    return found[2] if found else ""


def _closing(fence: str) -> str:
    found = FENCE.match(fence)
    return f"\n{found[1]}{found[2]}" if found else ""
