"""The text and the attachments of a parsed message; nothing here raises, whatever was sent.

The earlier message that a reply quotes and the signature are removed, but something always
remains: a message that consists of a quotation only stays as it is.
"""

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
MAX_ATTRIBUTION_LINES: Final = 3
MAX_ATTRIBUTION_CHARS: Final = 400
SIGNATURE_LINES: Final = ("-- ", "--")
# The line above a quotation, in the languages of the large mail programs.
ATTRIBUTION: Final = re.compile(
    r"(?:on\b.*\bwrote|am\b.*\bschrieb\b.*|le\b.*\ba écrit|el\b.*\bescribió|il\b.*\bha scritto"
    r"|op\b.*\bschreef\b.*|em\b.*\bescreveu|den\b.*\bskrev\b.*)\s*:\s*",
    re.IGNORECASE | re.DOTALL,
)
SEPARATOR: Final = re.compile(
    r"\s*(?:-{3,}\s*(?:original message|ursprüngliche nachricht|message d'origine"
    r"|mensaje original|messaggio originale|original appointment)\s*-{3,}|_{20,})\s*",
    re.IGNORECASE,
)
SENDER_LINE: Final = re.compile(r"\s*\*?(?:from|von|de|da|van)\s?:\*?\s+\S.*", re.IGNORECASE)
DATE_LINE: Final = re.compile(
    r"\s*\*?(?:sent|date|gesendet|datum|envoyé|enviado|inviato|verzonden)\s?:\*?\s+\S.*",
    re.IGNORECASE,
)
DEVICE_LINE: Final = re.compile(
    r"(?:sent from my|sent from|get outlook for|von meinem|gesendet von|envoyé de mon) .{1,60}",
    re.IGNORECASE,
)


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


def without_quotations(text: str) -> str:
    """The new text of a reply."""
    lines = text.split("\n")
    lines = lines[: _separator_index(lines)]
    lines = _without_end(lines)
    lines = _without_start(lines)
    result = "\n".join(lines).strip()
    return without_signature(result) if result else text.strip()


def without_signature(text: str) -> str:
    """A text without its signature."""
    lines = text.split("\n")
    index = next((number for number, line in enumerate(lines) if line in SIGNATURE_LINES), None)
    result = "\n".join(lines[:index]).strip()
    *others, last = result.split("\n")
    if DEVICE_LINE.fullmatch(last.strip()):
        result = "\n".join(others).strip()
    return result or text.strip()


def _separator_index(lines: list[str]) -> int:
    """Where a quotation without `>` starts, as Outlook adds it."""
    for number, line in enumerate(lines):
        following = [item for item in lines[number + 1 : number + 4] if item.strip()]
        has_sender = bool(following) and SENDER_LINE.fullmatch(following[0]) is not None
        if SEPARATOR.fullmatch(line) and (has_sender or not line.strip().startswith("_")):
            return number
        is_header = SENDER_LINE.fullmatch(line) and following and DATE_LINE.fullmatch(following[0])
        if is_header:
            return number
    return len(lines)


def _is_quoted(line: str) -> bool:
    return line.startswith(">")


def _without_end(lines: list[str]) -> list[str]:
    """Without the quotation at the end and the line that introduces it."""
    end = len(lines)
    while end and (_is_quoted(lines[end - 1]) or not lines[end - 1].strip()):
        end -= 1
    if not any(map(_is_quoted, lines[end:])) and end == len(lines):
        return _without_attribution(lines)
    return _without_attribution(lines[:end])


def _without_attribution(lines: list[str]) -> list[str]:
    """Without a last line such as `On Monday, Ann wrote:`; programs wrap it."""
    for count in range(1, MAX_ATTRIBUTION_LINES + 1):
        text = " ".join(lines[-count:]).strip()
        if len(text) <= MAX_ATTRIBUTION_CHARS and ATTRIBUTION.fullmatch(text):
            return lines[:-count]
    return lines


def _without_start(lines: list[str]) -> list[str]:
    """Without a quotation above the answer; quotations between answers stay."""
    blocks = sum(
        _is_quoted(line) and not (number and _is_quoted(lines[number - 1]))
        for number, line in enumerate(lines)
    )
    first = next((number for number, line in enumerate(lines) if _is_quoted(line)), 0)
    introduction = [line for line in lines[:first] if line.strip()]
    if blocks != 1 or (introduction and _without_attribution(introduction)):
        return lines
    return [line for line in lines[first:] if not _is_quoted(line)]
