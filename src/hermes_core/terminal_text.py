"""Stored text on a terminal: made harmless, measured, cut to fit.

What people, models and tools wrote may contain escape sequences that move the cursor,
retitle the window or answer back as keystrokes. Nothing stored is printed before it went
through `clean`.
"""

from __future__ import annotations

from functools import cache

ELLIPSIS = "…"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@cache
def _harmless_table() -> dict[int, str]:
    """A visible sign for every character that acts instead of showing; built when needed."""
    table = {code: chr(0x2400 + code) for code in range(0x20)}  # control pictures: ␀ … ␟
    table[0x7F] = "\N{SYMBOL FOR DELETE}"
    acting = [
        *range(0x80, 0xA0),  # C1: some terminals read 0x9B as ESC [
        0x061C, 0x200B, 0x200E, 0x200F, 0xFEFF,  # marks that show nothing
        0x2028, 0x2029,  # line and paragraph separators
        *range(0x202A, 0x202F), *range(0x2066, 0x206A),  # text direction
        *range(0xD800, 0xE000),  # halves of surrogate pairs: cannot be encoded
        *range(0xE0000, 0xE0080),  # invisible copies of ASCII
    ]  # fmt: skip
    table.update(dict.fromkeys(acting, _REPLACEMENT))
    table[0x0A] = "\n"
    table[0x09] = "    "
    return table


def clean(text: str) -> str:
    """*text* with nothing in it that a terminal would obey; line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_harmless_table())


def one_line(text: str) -> str:
    """*text* on a single line, harmless."""
    return clean(" ".join(text.split()))


def width(text: str) -> int:
    """How many terminal cells *text* takes."""
    if text.isascii() or max(text) < "\u0300":  # before the first combining or wide one
        return len(text)
    # A table of all wide characters; most text never needs it.
    from wcwidth import wcswidth  # noqa: PLC0415

    return max(wcswidth(text), 0)


def fit(text: str, cells: int) -> str:
    """*text* in at most *cells* cells, ending in … when something was cut off."""
    if cells <= 0:
        return ""
    if width(text) <= cells:
        return text
    kept = text[: cells - 1]
    while kept and width(kept) > cells - 1:
        kept = kept[:-1]
    return kept.rstrip() + ELLIPSIS


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """*text* filled up with spaces to *cells* cells."""
    gap = " " * (cells - width(text))
    return gap + text if right else text + gap
