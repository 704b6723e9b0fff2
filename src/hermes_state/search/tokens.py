"""Tokenizer of the search index.

Every character is folded to exactly one character, so positions in the folded text are
positions in the text. Letters, digits and marks are part of tokens, case-insensitively
and, in Latin, Greek and Cyrillic, without accents; everything else separates tokens.
Scripts that are written without spaces, and pictographs, give one token per character: a
phrase of such tokens matches any sequence of them, even of one or two characters.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TOKEN_CHARACTERS: Final = 40

# Scripts without spaces between words, Hangul (whose words include particles) and
# pictographs: each character is a token.
_SINGLE_CHARACTER_TOKENS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_PICTOGRAPHS: Final = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    """Compiled at first use, because it takes longer than opening the store."""
    return re.compile(f"[{_SINGLE_CHARACTER_TOKENS}]|[^ {_SINGLE_CHARACTER_TOKENS}]+")


@functools.cache
def _single_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_SINGLE_CHARACTER_TOKENS}]")


class Token(NamedTuple):
    """A token and its position in the text."""

    text: str
    start: int
    end: int


class _Folding(dict[int, str]):
    """Folded characters by code point, computed on demand."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if _PICTOGRAPHS.match(character):
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


_FOLDING: Final = _Folding()
_ASCII_FOLDING: Final = "".join(_FOLDING[code] for code in range(128)).encode().ljust(256)


def composed(text: str) -> str:
    """*text* in composed form (NFC), to which token positions refer."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """*text* folded for search, with the same length; tokens are separated by spaces."""
    if text.isascii():
        return text.encode().translate(_ASCII_FOLDING).decode()
    return text.translate(_FOLDING)


def tokens_of(folded: str, start: int = 0) -> Iterator[Token]:
    """Tokens of a folded text from a token's start, with their positions."""
    for match in _token_pattern().finditer(folded, start):
        yield Token(match.group()[:MAX_TOKEN_CHARACTERS], match.start(), match.end())


def token_texts(text: str) -> list[str]:
    """Texts of the tokens of a text, in order."""
    return folded_texts(fold(composed(text)))


class IndexWords(NamedTuple):
    """The tokens of a text separated by spaces, and their number."""

    text: str
    number: int


def index_words(text: str, vocabulary: set[str]) -> IndexWords:
    """The tokens of a text, as the index takes them; they are added to a *vocabulary*."""
    folded = fold(composed(text))
    is_plain = folded.isascii()
    tokens = folded.split() if is_plain else _token_pattern().findall(folded)
    if not is_plain or max(map(len, tokens), default=0) > MAX_TOKEN_CHARACTERS:
        tokens = [token[:MAX_TOKEN_CHARACTERS] for token in tokens]
        folded = " ".join(tokens)
    vocabulary.update(tokens)
    return IndexWords(folded, len(tokens))


def folded_texts(folded: str) -> list[str]:
    """Texts of the tokens of a folded text, in order."""
    texts = folded.split() if folded.isascii() else _token_pattern().findall(folded)
    return [text[:MAX_TOKEN_CHARACTERS] for text in texts]


def is_single_character_token(token: str) -> bool:
    """Whether a token is a character of a script without spaces, or a pictograph."""
    return _single_pattern().fullmatch(token) is not None


def sequence_pattern(sequence: tuple[str, ...], *, is_prefix: bool) -> re.Pattern[str]:
    """Matches consecutive tokens in a folded text; the last may be a prefix."""
    word = f"[^ {_SINGLE_CHARACTER_TOKENS}]"
    parts = []
    for number, token in enumerate(sequence, 1):
        if is_single_character_token(token):
            parts.append(re.escape(token))
            continue
        is_open = len(token) == MAX_TOKEN_CHARACTERS or (is_prefix and number == len(sequence))
        end = f"{word}*" if is_open else f"(?!{word})"
        parts.append(f"(?<!{word}){re.escape(token)}{end}")
    return re.compile(" *".join(parts))
