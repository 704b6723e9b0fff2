"""The encoding of a text file, found from its bytes, and whether a file is text at all."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hermes_agent.tools.base import ToolError

SNIFF_BYTES: Final = 8_192
UTF_16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
UTF_8_BOM: Final = b"\xef\xbb\xbf"
MAGIC_BYTES: Final = {
    b"\x89PNG\r\n": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"BM": "BMP image",
    b"%PDF-": "PDF document",
    b"PK\x03\x04": "ZIP archive",
    b"\x1f\x8b": "gzip archive",
    b"\x7fELF": "program",
    b"SQLite format 3": "SQLite database",
}
ASCII_LETTERS: Final = re.compile(rb"[A-Za-z]")
HIGH_BYTES: Final = re.compile(rb"[\x80-\xff]{2,}")
MIN_HIGH_BYTES: Final = 4
NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
WESTERN_SHARE: Final = 0.3  # of the letters: a Western text has fewer adjacent ones beyond ASCII
# Codecs of other texts, the characters that they are recognized by, and their minimum share.
OTHER_ENCODINGS: Final = (
    ("cp1251", re.compile("[\u0430-\u044f\u0451]"), 0.7),
    ("euc_kr", re.compile("[\uac00-\ud7a3]"), 0.8),
    ("cp932", re.compile("[\u3041-\u30ff]"), 0.3),
    ("gb18030", re.compile("[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"), 0.8),
)
NAMES: Final = {
    "cp1252": "windows-1252",
    "cp1251": "windows-1251",
    "euc_kr": "EUC-KR",
    "cp932": "Shift_JIS",
    "gb18030": "GB18030",
    "ascii": "unknown",
}
DAMAGED: Final = "UTF-8 with invalid bytes"
UNSUITABLE: Final = (
    "The file is not UTF-8 ({name}) and cannot hold {character!r} (U+{code:04X}). Convert it "
    "first, e.g. with `iconv`, or use other characters."
)


class TextFile(NamedTuple):
    """The text of a file; bytes that its encoding does not have are kept in it as surrogates."""

    text: str
    encoding: str
    name: str = ""  # of an encoding other than those of Unicode

    def encoded(self, text: str) -> bytes:
        """Another text in the same encoding."""
        try:
            return text.encode(self.encoding, errors="surrogateescape")
        except UnicodeEncodeError as error:
            character = text[error.start]
            if not self.name or "\ud800" <= character <= "\udfff":
                raise
            message = UNSUITABLE.format(name=self.name, character=character, code=ord(character))
            raise ToolError(message) from None

    def restyled(self, text: str) -> str:
        """Another text with the line ends and the mark at the beginning that this one has."""
        text = text.removeprefix("\ufeff")
        if self.has_windows_ends:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return f"\ufeff{text}" if self.text.startswith("\ufeff") else text

    @property
    def has_windows_ends(self) -> bool:
        """Whether all its lines end as those of Windows."""
        ends = self.text.count("\r\n")
        return ends > 0 and ends == self.text.count("\n")


def kind_of_binary(start: bytes) -> str | None:
    """The kind of a file that begins like this, if it is not text."""
    if start.startswith(UTF_16_BOMS):
        return None
    is_binary = b"\0" in start
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "WebP image"
    for mark, name in MAGIC_BYTES.items():
        if start.startswith(mark) and (is_binary or len(mark) > 2):
            return name
    return "binary file" if is_binary else None


def decode(data: bytes) -> TextFile:
    """The text of a whole file, such that it can be written back byte for byte.

    Without a mark it is UTF-8 if it is valid, or if most of its other characters are. Otherwise
    it is of a script that its bytes are typical of, or windows-1252, or unknown: then only ASCII
    can be added.
    """
    if data.startswith(UTF_16_BOMS):
        codec = "utf-16-le" if data[:1] == b"\xff" else "utf-16-be"
        return TextFile(data.decode(codec), codec)
    codec = "utf-8-sig" if data.startswith(UTF_8_BOM) else "utf-8"
    text = data.decode(codec, errors="surrogateescape")
    if text.isascii():
        return TextFile(text, codec)
    invalid = len(re.findall("[\udc80-\udcff]", text))
    if not invalid:
        return TextFile(text, codec)
    if len(NOT_ASCII.findall(text)) >= 2 * invalid:
        return TextFile(text, codec, DAMAGED)
    codec = _codec_of(data)
    return TextFile(data.decode(codec, errors="surrogateescape"), codec, NAMES[codec])


def displayable_text(text: str) -> str:
    """A text that can be shown and stored: bytes that are not UTF-8 become question marks."""
    return text.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def _codec_of(data: bytes) -> str:
    """The codec of a text that is not Unicode; `ascii` if it is unknown."""
    letters, high = len(ASCII_LETTERS.findall(data)), sum(map(len, HIGH_BYTES.findall(data)))
    if high >= max(MIN_HIGH_BYTES, WESTERN_SHARE * (letters + high)):
        for codec, typical, share in OTHER_ENCODINGS:
            text = _decoded(data, codec)
            characters = len(NOT_ASCII.findall(text))
            if characters and len(typical.findall(text)) >= share * characters:
                return codec
    return "cp1252" if _decoded(data, "cp1252") else "ascii"


def _decoded(data: bytes, codec: str) -> str:
    """The text of all the bytes; empty if it would not be written back as they are."""
    try:
        text = data.decode(codec)
        return text if text.encode(codec) == data else ""
    except UnicodeError:
        return ""
