"""Finding a text that differs only by white space or the form of its characters.

Models copy text with straight quotes for curly ones, plain spaces for no-break spaces, spaces
for tabs, composed for decomposed letters, or with the line numbers of `read_file`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 1_000_000  # of a file that is searched
LINE_NUMBER: Final = re.compile(r"^\s*\d+\|", re.MULTILINE)
# A line end, white space inside a line, or a character with the marks that belong to it.
PART: Final = re.compile(r"\r?\n|[^\S\n]+|[^\s][\u0300-\u036f]*")
SAME: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)


class LooseText(NamedTuple):
    """A text in a form that ignores such differences, and where each character stands in it."""

    form: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, text: str) -> LooseText:
        """The form of *text*: no white space around lines, one space inside them, NFC."""
        form: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for part in PART.finditer(text):
            shown = _form(part, text)
            form.append(shown)
            starts += [part.start()] * len(shown)
            ends += [part.end()] * len(shown)
        return cls("".join(form), starts, ends)


def _form(part: re.Match[str], text: str) -> str:
    """What a part of a text counts as."""
    piece, end = part[0], part.end()
    if piece.endswith("\n"):
        return "\n"
    if piece.isspace():
        is_inside = part.start() and text[part.start() - 1] != "\n"
        return " " if is_inside and end < len(text) and text[end] not in "\r\n" else ""
    return unicodedata.normalize("NFC", piece).translate(SAME)


def without_line_numbers(text: str) -> str:
    """A text that was copied with line numbers on each line, without them."""
    lines = text.removesuffix("\n").split("\n")
    return LINE_NUMBER.sub("", text) if all(map(LINE_NUMBER.match, lines)) else text


def find_loosely(content: str, wanted: str) -> list[tuple[int, int]]:
    """Where *wanted* stands in *content*, if such differences are ignored; whole lines keep
    their indentation.
    """
    if len(content) > MAX_CHARACTERS:
        return []
    text, form = LooseText.of(content), LooseText.of(wanted).form
    found: list[tuple[int, int]] = []
    place = text.form.find(form) if form.strip() else -1
    while place >= 0:
        last = place + len(form) - 1
        start, end = text.starts[place], text.ends[last]
        if wanted[0].isspace() and wanted[0] != "\n":  # its indentation is part of it
            start = len(content[:start].rstrip(" \t\u00a0"))
        found.append((start, end))
        place = text.form.find(form, last + 1)
    return found


def reindented(new: str, wanted: str, found: str) -> str:
    """A replacement of *found*, indented as that is where it is indented as *wanted*."""
    pairs = zip(wanted.split("\n"), found.split("\n"), strict=False)
    indents = {_indent(mine): _indent(theirs) for mine, theirs in pairs if mine.strip()}
    known = sorted(indents, key=len, reverse=True)

    def of_file(line: str) -> str:
        mine = _indent(line)
        base = next((each for each in known if mine.startswith(each)), None)
        return line if base is None else indents[base] + line[len(base) :]

    return "\n".join(line and of_file(line) for line in new.split("\n"))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
