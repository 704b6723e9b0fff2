"""Stored text for the terminal: sanitized, measured and shortened.

Text of users, models and tools may contain escape sequences that move the cursor, change
the window title or send keystrokes. All stored text is passed through `clean` before it
is printed.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ELLIPSIS = "…"
# First and last character of ranges without combining characters, by their width in cells: Latin
# letters, dashes, quotation marks and the ellipsis; Chinese, Japanese and Korean.
NARROW_RANGES = (("\0", "\u02ff"), ("\u2010", "\u2027"))
WIDE_RANGES = (
    ("\u4e00", "\u9fff"), ("\u3000", "\u3029"), ("\u3041", "\u3096"), ("\u309b", "\u30ff"),
    ("\u3400", "\u4dbf"), ("\uac00", "\ud7a3"), ("\uff01", "\uff60"),
)  # fmt: skip
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@cache
def _replacement_table() -> dict[int, str]:
    """Visible replacements for control characters, built at first use."""
    table = {code: chr(0x2400 + code) for code in range(0x20)}  # control pictures: ␀ … ␟
    table[0x7F] = "\N{SYMBOL FOR DELETE}"
    controls = [
        *range(0x80, 0xA0),  # C1: some terminals read 0x9B as ESC [
        0x061C, 0x200B, 0x200E, 0x200F, 0xFEFF,  # invisible marks
        0x2028, 0x2029,  # line and paragraph separators
        *range(0x202A, 0x202F), *range(0x2066, 0x206A),  # text direction
        *range(0xD800, 0xE000),  # halves of surrogate pairs: cannot be encoded
        *range(0xE0000, 0xE0080),  # invisible copies of ASCII
    ]  # fmt: skip
    table.update(dict.fromkeys(controls, _REPLACEMENT))
    table[0x0A] = "\n"
    table[0x09] = "    "
    return table


def clean(text: str) -> str:
    """*text* without terminal control characters; line breaks are kept."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_replacement_table())


def one_line(text: str) -> str:
    """*text* on a single line, without control characters."""
    return clean(" ".join(text.split()))


def width(text: str) -> int:
    """Width of *text* in terminal cells."""
    if text.isascii():
        return len(text)
    cells = list(map(_cells, text))
    if 0 not in cells:
        return sum(cells)
    # A table of all characters, which takes longer to load than a list to print.
    from rich.cells import cell_len  # noqa: PLC0415

    return cell_len(text)


@lru_cache(maxsize=4096)
def _cells(character: str) -> int:
    """The width of a common character; 0 for others."""
    if any(first <= character <= last for first, last in NARROW_RANGES):
        return 1
    return 2 if any(first <= character <= last for first, last in WIDE_RANGES) else 0


def fit(text: str, cells: int) -> str:
    """*text* in at most *cells* cells, ending with … if it is shortened."""
    if cells <= 0:
        return ""
    if width(text) <= cells:
        return text
    shortened = text[: cells - 1]
    while shortened and width(shortened) > cells - 1:
        shortened = shortened[:-1]
    return shortened.rstrip() + ELLIPSIS


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """*text* padded with spaces to *cells* cells."""
    gap = " " * (cells - width(text))
    return gap + text if right else text + gap


def wrap(text: str, cells: int) -> str:
    """*text* with its lines broken between words at *cells*.

    A word that is longer than a line stays where it is: the terminal breaks it.
    """
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, cells))


def _wrapped(line: str, cells: int) -> Iterator[str]:
    """The parts of a line; each begins with the spaces of the first."""
    if width(line) <= cells:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip(" "))]
    part = ""
    for word in line[len(indent) :].split(" "):
        longer = f"{part} {word}" if part else indent + word
        if part and width(longer) > cells >= width(indent + word):
            yield part.rstrip(" ")
            part = indent + word
        else:
            part = longer
    yield part
