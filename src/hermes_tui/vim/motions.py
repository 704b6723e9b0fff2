"""Where the keys of normal mode lead to: motions and text objects in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

BRACKETS: Final = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}"} | {
    "B": "{}",
    "<": "<>",
    ">": "<>",
}
QUOTES: Final = "\"'`"


class TextRange(NamedTuple):
    """A part of the text, as offsets; with *is_lines* it stands for whole lines."""

    start: int
    end: int
    is_lines: bool = False


class Motion(NamedTuple):
    """Where a motion leads, and what an operator takes of it."""

    target: int
    is_inclusive: bool = False
    is_lines: bool = False


def line_start(text: str, cursor: int) -> int:
    """The offset of the first character of the line."""
    return text.rfind("\n", 0, cursor) + 1


def line_end(text: str, cursor: int) -> int:
    """The offset after the last character of the line."""
    end = text.find("\n", cursor)
    return len(text) if end < 0 else end


def clamp(text: str, cursor: int) -> int:
    """The cursor of normal mode: on a character, unless the line is empty."""
    cursor = max(0, min(cursor, len(text)))
    start, end = line_start(text, cursor), line_end(text, cursor)
    return max(start, min(cursor, end - 1))


def lines_around(text: str, start: int, end: int) -> TextRange:
    """The whole lines from *start* to *end*, without the last line break."""
    return TextRange(line_start(text, start), line_end(text, end), is_lines=True)


def first_text(text: str, cursor: int) -> int:
    """The first character of the line that is not a blank."""
    start, end = line_start(text, cursor), line_end(text, cursor)
    line = text[start:end]
    return start + len(line) - len(line.lstrip())


# Words


def _kind(character: str, *, is_big: bool) -> int:
    if character.isspace():
        return 0
    return 1 if is_big or character.isalnum() or character == "_" else 2


def _next_word(text: str, cursor: int, *, is_big: bool) -> int:
    kind = _kind(text[cursor], is_big=is_big) if cursor < len(text) else 0
    while kind and cursor < len(text) and _kind(text[cursor], is_big=is_big) == kind:
        cursor += 1
    while cursor < len(text) and text[cursor].isspace():
        cursor += 1
    return cursor


def _word_end(text: str, cursor: int, *, is_big: bool) -> int:
    cursor += 1
    while cursor < len(text) and text[cursor].isspace():
        cursor += 1
    if cursor >= len(text):
        return max(len(text) - 1, 0)
    kind = _kind(text[cursor], is_big=is_big)
    while cursor + 1 < len(text) and _kind(text[cursor + 1], is_big=is_big) == kind:
        cursor += 1
    return cursor


def _word_start(text: str, cursor: int, *, is_big: bool) -> int:
    while cursor > 0 and text[cursor - 1].isspace():
        cursor -= 1
    if cursor == 0:
        return 0
    kind = _kind(text[cursor - 1], is_big=is_big)
    while cursor > 0 and _kind(text[cursor - 1], is_big=is_big) == kind:
        cursor -= 1
    return cursor


# Lines


def _down(text: str, cursor: int, lines: int) -> int | None:
    """The same column, *lines* further down (up, if negative); None beyond the text."""
    column = cursor - line_start(text, cursor)
    for _ in range(abs(lines)):
        if lines > 0:
            following = line_end(text, cursor) + 1
            if following > len(text):
                return None
            cursor = following
        else:
            before = line_start(text, cursor) - 1
            if before < 0:
                return None
            cursor = line_start(text, before)
    return min(line_start(text, cursor) + column, line_end(text, cursor))


def line_number(text: str, number: int) -> int:
    """The start of a line, counted from 1; of the last line if there are fewer."""
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: min(number, len(lines)) - 1])


def find_character(text: str, cursor: int, key: str, character: str, count: int) -> Motion | None:
    """`f`, `F`, `t` and `T`: a character in this line."""
    start, end, found = line_start(text, cursor), line_end(text, cursor), cursor
    for _ in range(count):
        if key in "ft":
            found = text.find(character, found + 1, end)
        else:
            found = text.rfind(character, start, found)
        if found < 0:
            return None
    shift = {"t": -1, "T": 1}.get(key, 0)
    return Motion(found + shift, is_inclusive=key in "ft")


def _repeat(step: Callable[[str, int], int]) -> Callable[[str, int, int], Motion]:
    def move(text: str, cursor: int, count: int) -> Motion:
        for _ in range(count):
            cursor = step(text, cursor)
        return Motion(cursor)

    return move


def _to_word_end(*, is_big: bool) -> Callable[[str, int, int], Motion]:
    def move(text: str, cursor: int, count: int) -> Motion:
        for _ in range(count):
            cursor = _word_end(text, cursor, is_big=is_big)
        return Motion(cursor, is_inclusive=True)

    return move


def _by_lines(sign: int) -> Callable[[str, int, int], Motion | None]:
    def move(text: str, cursor: int, count: int) -> Motion | None:
        target = _down(text, cursor, sign * count)
        return None if target is None else Motion(target, is_lines=True)

    return move


MOTIONS: Final[dict[str, Callable[[str, int, int], Motion | None]]] = {
    "h": lambda text, cursor, count: Motion(max(line_start(text, cursor), cursor - count)),
    "l": lambda text, cursor, count: Motion(min(line_end(text, cursor), cursor + count)),
    "j": _by_lines(1),
    "k": _by_lines(-1),
    "0": lambda text, cursor, _count: Motion(line_start(text, cursor)),
    "^": lambda text, cursor, _count: Motion(first_text(text, cursor)),
    "$": lambda text, cursor, _count: Motion(line_end(text, cursor)),
    "w": _repeat(lambda text, cursor: _next_word(text, cursor, is_big=False)),
    "W": _repeat(lambda text, cursor: _next_word(text, cursor, is_big=True)),
    "b": _repeat(lambda text, cursor: _word_start(text, cursor, is_big=False)),
    "B": _repeat(lambda text, cursor: _word_start(text, cursor, is_big=True)),
    "e": _to_word_end(is_big=False),
    "E": _to_word_end(is_big=True),
}


# Text objects


def text_object(text: str, cursor: int, kind: str, name: str) -> TextRange | None:
    """`iw`, `a"`, `i(` and so on; None if there is none around the cursor."""
    is_around = kind == "a"
    if name in "wW":
        return _word_around(text, cursor, is_around=is_around, is_big=name == "W")
    if name in QUOTES:
        return _quoted(text, cursor, name, is_around=is_around)
    if name in BRACKETS:
        return _bracketed(text, cursor, BRACKETS[name], is_around=is_around)
    return None


def _word_around(text: str, cursor: int, *, is_around: bool, is_big: bool) -> TextRange | None:
    low, high = line_start(text, cursor), line_end(text, cursor)
    if low == high:
        return None
    start, end = cursor, cursor + 1
    kind = _kind(text[cursor], is_big=is_big)
    while start > low and _kind(text[start - 1], is_big=is_big) == kind:
        start -= 1
    while end < high and _kind(text[end], is_big=is_big) == kind:
        end += 1
    if is_around:
        following = end
        while following < high and text[following].isspace():
            following += 1
        if following == end:
            while start > low and text[start - 1].isspace():
                start -= 1
        end = following
    return TextRange(start, end)


def _quoted(text: str, cursor: int, quote: str, *, is_around: bool) -> TextRange | None:
    low, high = line_start(text, cursor), line_end(text, cursor)
    places = [index for index in range(low, high) if text[index] == quote]
    pairs = zip(places[::2], places[1::2], strict=False)
    pair = next(((start, end) for start, end in pairs if cursor <= end), None)
    if pair is None:
        return None
    return TextRange(pair[0], pair[1] + 1) if is_around else TextRange(pair[0] + 1, pair[1])


def _bracketed(text: str, cursor: int, pair: str, *, is_around: bool) -> TextRange | None:
    start, depth = cursor, 0
    while start >= 0 and not (text[start : start + 1] == pair[0] and depth == 0):
        if start != cursor and text[start] == pair[1]:
            depth += 1
        elif text[start : start + 1] == pair[0]:
            depth -= 1
        start -= 1
    if start < 0:
        return None
    end, depth = start + 1, 0
    while end < len(text) and not (text[end] == pair[1] and depth == 0):
        depth += {pair[0]: 1, pair[1]: -1}.get(text[end], 0)
        end += 1
    if end == len(text):
        return None
    return TextRange(start, end + 1) if is_around else TextRange(start + 1, end)
