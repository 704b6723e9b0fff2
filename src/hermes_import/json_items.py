"""Reads a large JSON array one item at a time, so that memory depends on the largest item only."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Final

from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from hermes_core.json_values import JsonValue

CHUNK_BYTES: Final = 1 << 20
MAX_ITEM_CHARACTERS: Final = 1 << 28
MARGIN_CHARACTERS: Final = 16  # an error so close to the end may be one of a cut value
SPACE: Final = re.compile(r"[ \t\r\n]*")
UNTERMINATED: Final = "Unterminated string"


class DamagedJsonError(HermesError):
    """A file is not JSON, or ends too early."""


def items_of(file: IO[bytes]) -> Iterator[JsonValue]:
    """The items of the array in a file; a value that is not an array is the only item."""
    text = JsonText(file)
    if text.peek() != "[":
        yield text.take_value()
        return
    text.skip()
    while (following := text.peek()) != "]":
        if following == ",":
            text.skip()
        yield text.take_value()


class JsonText:
    """The text of a file behind what was taken of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._decoder = json.JSONDecoder(parse_constant=lambda _name: None)
        self._text = ""
        self._at = 0  # in the text
        self._dropped = 0  # characters before the text

    def peek(self) -> str:
        """The next character that is not white space."""
        while True:
            space = SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read(CHUNK_BYTES):
                raise self._damage()

    def skip(self) -> None:
        """Skip a character."""
        self._at += 1

    def take_value(self) -> JsonValue:
        """The value that begins here."""
        self.peek()
        while True:
            try:
                value: JsonValue
                value, self._at = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._read_more(error)
            except RecursionError as error:
                raise self._damage() from error
            else:
                return value

    def _read_more(self, error: json.JSONDecodeError) -> None:
        """Read more of a value, unless it is damaged; as much again, to parse it seldom."""
        is_cut = error.msg.startswith(UNTERMINATED)
        is_cut = is_cut or error.pos > len(self._text) - MARGIN_CHARACTERS
        length = len(self._text) - self._at
        if not is_cut or length > MAX_ITEM_CHARACTERS or not self._read(max(CHUNK_BYTES, length)):
            raise self._damage() from error

    def _read(self, size: int) -> bool:
        """Read on, and drop what was taken; False at the end of the file."""
        data = self._file.read(size)
        self._dropped += self._at
        self._text = self._text[self._at :] + self._decode(data, not data)
        self._at = 0
        return bool(data)

    def _damage(self) -> DamagedJsonError:
        return DamagedJsonError(f"not complete JSON after character {self._dropped + self._at}")
