"""The differences of two texts: as a diff, and as the first characters that differ."""

from __future__ import annotations

import difflib
import unicodedata
from itertools import zip_longest
from typing import Final

from hermes_agent.tools.text_encoding import displayable_text

DIFF_CHARACTERS: Final = 20_000  # of a result for the model
LINE_CHARACTERS: Final = 600  # of a line of a diff
SHOWN_BEFORE: Final = 200  # characters of a long line before its first change


def unified_diff(before: str, after: str, name: str, limit: int = DIFF_CHARACTERS) -> str:
    """The differences of two texts, with the line numbers of `read_file`."""
    lines = difflib.unified_diff(
        split_lines(before), split_lines(after), f"a/{name}", f"b/{name}", lineterm=""
    )
    diff = displayable_text("\n".join(_with_short_lines(list(lines))))
    if len(diff) > limit:
        return f"{diff[:limit]}\n[… {len(diff) - limit:,} characters cut …]"
    return diff


def split_lines(text: str) -> list[str]:
    """The lines of a text without their ends; only a line feed ends one."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def _with_short_lines(diff: list[str]) -> list[str]:
    """A diff whose long lines are cut around what differs."""
    if all(len(line) <= LINE_CHARACTERS for line in diff):
        return diff
    result: list[str] = []
    removed: list[str] = []
    for line in diff:
        if line.startswith("-"):
            removed.append(line)
            continue
        if line.startswith("+") and removed:
            before = removed.pop(0)
            result += [_cut(before, line), _cut(line, before)]
            continue
        result += [_cut(each, "") for each in (*removed, line)]
        removed = []
    return result + [_cut(each, "") for each in removed]


def _cut(line: str, other: str) -> str:
    """A line of a diff; of a long one, what surrounds its first difference to another."""
    if len(line) <= LINE_CHARACTERS:
        return line
    start = max(0, _first_difference(line[1:], other[1:]) - SHOWN_BEFORE)
    end = start + LINE_CHARACTERS
    head, tail = "[…]" if start else "", "[…]" if end < len(line) - 1 else ""
    return f"{line[0]}{head}{line[1:][start:end]}{tail}"


def _first_difference(one: str, other: str) -> int:
    pairs = zip_longest(one, other)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), 0)


def describe_difference(wanted: str, found: str) -> str:
    """The first characters in which two texts differ that look the same, by name."""
    place = _first_difference(wanted, found)
    names = [_name(text[place : place + 1]) for text in (found, wanted)]
    return f"line {wanted.count(chr(10), 0, place) + 1}: the file has {names[0]}, not {names[1]}"


def _name(character: str) -> str:
    if not character:
        return "nothing"
    known = {"\t": "a tab", " ": "a space", "\n": "a line end", "\r": "a carriage return"}
    if character in known:
        return known[character]
    return f"{character} (U+{ord(character):04X} {unicodedata.name(character, 'unnamed')})"
