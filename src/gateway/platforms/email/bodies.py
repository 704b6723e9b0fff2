"""The text and the attachments of a parsed message; nothing here raises, whatever was sent."""

from __future__ import annotations

import binascii
import re
import unicodedata
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.html_text import html_to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT_CHARS: Final = 50_000
MAX_READ_CHARS: Final = 10 * MAX_TEXT_CHARS  # of all texts, before HTML is converted
MAX_HEADER_CHARS: Final = 5000  # before it is decoded
MAX_NAME_CHARS: Final = 120
MAX_ATTACHMENTS: Final = 50
CUT_NOTE: Final = "\n[The rest of the message was left out: it is too long.]"
UNNAMED: Final = "attachment"
MESSAGE_NAME: Final = "message.eml"
CONTROL_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


class MailFile(NamedTuple):
    """An attachment."""

    name: str
    mime: str
    data: bytes


class MailBody(NamedTuple):
    """The text of a message and its attachments."""

    text: str
    files: tuple[MailFile, ...]


def read_body(message: Message) -> MailBody:
    """The text of a message, plain text before HTML, and its attachments."""
    plain: list[str] = []
    html: list[str] = []
    files: list[MailFile] = []
    unread = MAX_READ_CHARS
    for part in _leaves(message):
        kind = part.get_content_type()
        if kind in {"text/plain", "text/html"} and not _is_attachment(part):
            text = _text_of(part, unread)
            unread -= len(text)
            (plain if kind == "text/plain" else html).append(text)
        elif len(files) < MAX_ATTACHMENTS:
            files.append(MailFile(_name_of(part), kind, _data_of(part)))
    texts = [text for text in plain if text.strip()] or [html_to_text(text) for text in html]
    return MailBody(_limited("\n\n".join(texts)), tuple(files))


def header_text(value: object) -> str:
    """A header value in one line, with encoded words decoded and without control characters."""
    text = str(value or "")[:MAX_HEADER_CHARS]
    try:
        parts = decode_header(text)
    except (HeaderParseError, binascii.Error, ValueError, LookupError):
        return one_line(text)  # it stays encoded
    return one_line(
        "".join(
            part if isinstance(part, str) else decode_bytes(part, charset)
            for part, charset in parts
        )
    )


def one_line(text: str, max_chars: int = 1000) -> str:
    """A text without line breaks and control characters."""
    clean = "".join(
        " " if unicodedata.category(item) in CONTROL_CATEGORIES else item for item in text
    )
    return " ".join(clean.split())[:max_chars]


def decode_bytes(data: bytes, charset: str | None) -> str:
    """Bytes as text; what the charset does not contain is replaced."""
    for name in (charset, "utf-8"):
        try:
            return data.decode(name or "utf-8")
        except (LookupError, ValueError):  # unknown, not a text encoding, or other bytes
            continue
    return data.decode("windows-1252", "replace")


def _leaves(message: Message) -> Iterator[Message]:
    """The parts of a message; an attached message is one part."""
    is_attached = message.get_content_type() == "message/rfc822"
    # Only the payload of a multipart message is a list; that of others would be decoded here.
    parts = message.get_payload() if message.is_multipart() and not is_attached else None
    if not isinstance(parts, list):
        yield message
        return
    for part in parts:
        if isinstance(part, Message):
            yield from _leaves(part)


def _is_attachment(part: Message) -> bool:
    disposition = str(part.get("Content-Disposition") or "").strip().lower()
    return disposition.startswith("attachment") or bool(part.get_filename())


def _data_of(part: Message) -> bytes:
    if part.is_multipart():  # an attached message
        inner = part.get_payload()
        return b"".join(bytes(item) for item in inner if isinstance(item, Message))
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text_of(part: Message, max_chars: int) -> str:
    text = decode_bytes(_data_of(part), _parameter(part, "charset"))[:max_chars]
    text = text.replace("\r\n", "\n")
    if part.get_content_type() == "text/plain" and _parameter(part, "format").lower() == "flowed":
        return unflow(text, is_space_deleted=_parameter(part, "delsp").lower() == "yes")
    return text


def _parameter(part: Message, name: str) -> str:
    value = part.get_param(name)
    text = value[2] if isinstance(value, tuple) else value
    return str(text or "").strip().strip("\"'")


def unflow(text: str, *, is_space_deleted: bool = False) -> str:
    """Join the lines that a mail program has wrapped (RFC 3676)."""
    result: list[str] = []
    is_open = False
    depth = 0
    for line in text.split("\n"):
        quote = re.match(r">*", line)
        level = len(quote[0]) if quote else 0
        content = line[level:]
        content = content.removeprefix(" ")
        if is_open and level == depth and content != "-- ":
            result[-1] += content
        else:
            result.append(f"{'>' * level} {content}" if level else content)
        depth = level
        is_open = content.endswith(" ") and content != "-- "
        if is_open and is_space_deleted:
            result[-1] = result[-1][:-1]
    return "\n".join(result)


def _name_of(part: Message) -> str:
    """The name of an attachment without any folder."""
    if part.get_content_type() == "message/rfc822" and not part.get_filename():
        return MESSAGE_NAME
    name = header_text(part.get_filename()).replace("\\", "/").rpartition("/")[2].strip(". ")
    return name[-MAX_NAME_CHARS:] or UNNAMED


def _limited(text: str) -> str:
    clean = text.replace("\0", "").encode("utf-8", "replace").decode()
    return clean if len(clean) <= MAX_TEXT_CHARS else clean[:MAX_TEXT_CHARS] + CUT_NOTE
