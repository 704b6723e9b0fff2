"""Sed scripts that run no program: every command of them is one that is known here.

GNU sed runs programs by the command `e` and by the flag `e` of `s`, after any address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_agent.permissions.shell_words import UNKNOWN_PART

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FLAGS: Final = "nErsuzb"
LONG_FLAGS: Final = re.compile(
    r"--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|sandbox|debug"
    r"|follow-symlinks|in-place(?:=.*)?|line-length=\d+)"
)
_PATTERN: Final = r"/(?:[^/\\\n]|\\[^\n])*/[IM]*"
_ADDRESS: Final = rf"(?:\d+(?:~\d+)?|\$|{_PATTERN})"
_COMMAND: Final = re.compile(
    rf"""(?:{_ADDRESS}(?:,(?:[+~]\d+|{_ADDRESS}))?[ ]*)?[ ]*!*[ ]*
    (?:
        [{{}}=dDgGhHlnNpPxzF]
        | [qQ][ ]*\d*
        | [aic](?:\\\n?)?[^\n\\]*
        | [btT:][ ]*[A-Za-z0-9_]*
        | [rRwW][ ]+[^\n]+
        | s(?P<mark>[/|,#@%!:])(?:(?!(?P=mark))[^\\\n]|\\[^\n])*
            (?P=mark)(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)[gpiIMm\d]*
        | y(?P<to>[/|,#])(?:(?!(?P=to))[^\\\n])*(?P=to)(?:(?!(?P=to))[^\\\n])*(?P=to)
    )
    [ ]*(?:$|[;\n]|(?=\}})|(?<=\{{))""",
    re.VERBOSE,
)
_BETWEEN: Final = re.compile(r"[\s;]*")


def is_plain(words: Sequence[str]) -> bool:
    """Whether the arguments of sed contain only scripts that run nothing."""
    if any(UNKNOWN_PART in word for word in words):
        return False
    try:
        return all(map(_runs_nothing, _scripts(words)))
    except ValueError:
        return False


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """The scripts among the arguments; ValueError if they are not certain."""
    rest, operands, has_script = list(words), list[str](), False
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        if word.startswith("--expression="):
            has_script = True
            yield word.partition("=")[2]
            continue
        if LONG_FLAGS.fullmatch(word):
            continue
        letters = word[1:].lstrip(FLAGS)
        if letters.startswith("e"):
            has_script = True
            yield letters[1:] or (rest.pop(0) if rest else "")
        elif letters and letters[0] != "i":
            raise ValueError(word)  # a script in a file, or an unknown option
    if not has_script and operands:
        yield operands[0]


def _runs_nothing(script: str) -> bool:
    place = 0
    while (place := _end(_BETWEEN.match(script, place), place)) < len(script):
        match = _COMMAND.match(script, place)
        if match is None or match.end() == place:
            return False
        place = match.end()
    return True


def _end(match: re.Match[str] | None, place: int) -> int:
    return place if match is None else match.end()
