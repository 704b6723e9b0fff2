"""From text to the words that are searched for.

Every character is folded to exactly one character, so positions in the folded text are
positions in the text. Letters, digits and marks are kept, without case and, in Latin,
Greek and Cyrillic, without accents; everything else separates words. Scripts that are
written without spaces, and pictographs, give one word per character: a phrase of such
words finds any run of them, one or two characters included.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_TOKEN: Final = 40

# Scripts without spaces between words, Hangul (whose words carry their particles) and
# pictographs: each character is a word.
_ALONE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_PICTURES: Final = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


@functools.cache
def _token() -> re.Pattern[str]:
    """Made when first needed: it takes longer than opening the store."""
    return re.compile(f"[{_ALONE}]|[^ {_ALONE}]+")


@functools.cache
def _alone() -> re.Pattern[str]:
    return re.compile(f"[{_ALONE}]")


class Token(NamedTuple):
    """A word and where it stands in the text."""

    text: str
    start: int
    end: int


class _Folding(dict[int, str]):
    """Character by character, computed once each."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if _PICTURES.match(character):
        return character
    if category[0] not in "LNM":
        return " "
    code = ord(character)
    if code < 0x1100 or 0x1E00 <= code < 0x2000 or 0xFF00 <= code < 0xFF66:
        base = unicodedata.normalize("NFKD", character)[0]
        if unicodedata.category(base)[0] in "LN":
            character = base
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


_TABLE: Final = _Folding()
_ASCII: Final = "".join(_TABLE[code] for code in range(128)).encode().ljust(256)


def composed(text: str) -> str:
    """The text whose positions tokens refer to: accents joined to their letters."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """*text* with the same length, in which searching is done; words are apart by blanks."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode()
    return text.translate(_TABLE)


def tokens(text: str) -> Iterator[Token]:
    """The words of a composed text, with their places."""
    for match in _token().finditer(fold(text)):
        yield Token(match.group()[:LONGEST_TOKEN], match.start(), match.end())


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    folded = fold(composed(text))
    found = folded.split() if folded.isascii() else _token().findall(folded)
    return [word[:LONGEST_TOKEN] for word in found]
