"""Splits a long reply into chunks that a platform accepts, each with valid Markdown.

A chunk ends between paragraphs if possible, else between lines, else between words. A code block
that has to be split is closed in one chunk and opened again in the next.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FENCE: Final = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
MIN_CHUNK_SHARE: Final = 0.5  # of the maximum: a better boundary is not worth a shorter chunk


def split_text(text: str, max_length: int, length: Callable[[str], int] = len) -> list[str]:
    """*text* in chunks of at most *max_length* by *length*; only whitespace at cuts is dropped."""
    if max_length < 1:
        raise ValueError("a chunk must have at least one character")
    chunks = _chunks(text.strip("\n"), max_length, length)
    return [chunk for chunk in chunks if chunk.strip()]


def utf16_length(text: str) -> int:
    """The length in UTF-16 units, as some platforms count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _chunks(text: str, max_length: int, length: Callable[[str], int]) -> Iterator[str]:
    opening = ""
    while text:
        remaining = opening + text
        if length(remaining) <= max_length:
            yield remaining
            return
        limit = _fitting_length(remaining, max_length, length)
        cut = max(_cut_position(remaining, limit), len(opening) + 1)
        chunk, rest = remaining[:cut], remaining[cut:]
        fence = _open_fence(chunk)
        if fence and length(chunk) + length(_closing(fence)) > max_length:
            limit = _fitting_length(remaining, max(max_length - length(_closing(fence)), 1), length)
            cut = max(_cut_position(remaining, limit), len(opening) + 1)
            chunk, rest = remaining[:cut], remaining[cut:]
            fence = _open_fence(chunk)
        fits = fence and length(chunk) + length(_closing(fence)) <= max_length
        yield chunk.rstrip("\n") + (_closing(fence) if fits else "")
        opening = f"{fence}\n" if fits else ""
        text = rest.lstrip("\n") if not fits else rest.removeprefix("\n")


def _fitting_length(text: str, max_length: int, length: Callable[[str], int]) -> int:
    """How many characters from the start fit."""
    low, high = 0, min(len(text), max_length)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[:middle]) <= max_length:
            low = middle
        else:
            high = middle - 1
    return max(low, 1)


def _cut_position(text: str, limit: int) -> int:
    """Where to cut within *limit* characters: after the best boundary that is far enough."""
    minimum = int(limit * MIN_CHUNK_SHARE)
    for boundary in ("\n\n", "\n", " "):
        result = text.rfind(boundary, minimum, limit)
        if result > 0:
            return result + len(boundary)
    return limit


def _open_fence(text: str) -> str:
    """The opening line of a code block that *text* does not close."""
    opened = ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if not match:
            continue
        if not opened:
            opened = line
        elif not match[3].strip() and match[2].startswith(_marks(opened)):
            opened = ""
    return opened


def _marks(line: str) -> str:
    match = FENCE.match(line)
    return match[2] if match else ""


def _closing(fence: str) -> str:
    match = FENCE.match(fence)
    return f"\n{match[1]}{match[2]}" if match else ""
