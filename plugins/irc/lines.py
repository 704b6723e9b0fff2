"""Lines of the IRC protocol: parsing, formatting, and splitting of long texts."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_LINE_BYTES: Final = 512  # with the line end, without tags
MAX_PREFIX_BYTES: Final = 110  # the nick, user and host that the server adds for the receivers
NO_TAGS: Final[Mapping[str, str]] = MappingProxyType({})
TAG_ESCAPES: Final = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}
ESCAPED: Final = re.compile(r"\\(.?)", re.DOTALL)
LINE_BREAKS: Final = re.compile(r"[\r\n]+")
UNSENDABLE: Final = re.compile(r"[\x00\x01]")  # the second would make a text a CTCP request
# Bold, color with its numbers, hexadecimal color, reset, and so on.
FORMATTING: Final = re.compile(
    r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6})?|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
)


class MalformedLineError(ValueError):
    """A line does not follow the protocol, or would not if it was sent."""


class IrcLine(NamedTuple):
    """One line."""

    command: str
    params: tuple[str, ...] = ()
    source: str = ""  # nick!user@host, or a server
    tags: Mapping[str, str] = NO_TAGS

    @property
    def nick(self) -> str:
        """The nick of the sender."""
        return self.source.partition("!")[0]

    def param(self, number: int) -> str:
        """A parameter; empty if the line has fewer."""
        return self.params[number] if number < len(self.params) else ""


def parse_line(data: bytes) -> IrcLine:
    """The line in *data*; bytes that are not UTF-8 are replaced."""
    text = data.decode("utf-8", "replace").rstrip("\r\n")
    tags: Mapping[str, str] = NO_TAGS
    source = ""
    if text.startswith("@"):
        written, _, text = text[1:].partition(" ")
        tags = _parse_tags(written)
    text = text.lstrip(" ")
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    text, has_trailing, trailing = text.lstrip(" ").partition(" :")
    command, *params = text.split(" ") if text else [""]
    if not command.isascii() or not command.isalnum():
        raise MalformedLineError(f"line without a command: {data[:80]!r}")
    middle = [param for param in params if param]
    return IrcLine(
        command.upper(), (*middle, trailing) if has_trailing else tuple(middle), source, tags
    )


def _parse_tags(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.split(";") if item)
    return {key: ESCAPED.sub(_unescape, value) for key, _, value in pairs}


def _unescape(match: re.Match[str]) -> str:
    return TAG_ESCAPES.get(match[1], match[1])


def format_line(command: str, *params: str, label: str = "") -> bytes:
    """A line to send; MalformedLineError if a parameter would change its structure."""
    *middle, last = params or ("",)
    for param in middle:
        if not param or " " in param or param.startswith(":"):
            raise MalformedLineError(f"invalid parameter of {command}: {param[:80]!r}")
    if any(character in param for param in params for character in "\0\r\n"):
        raise MalformedLineError(f"parameter of {command} with a line break")
    text = " ".join((command, *middle, f":{last}")) if params else command
    data = f"{text}\r\n".encode("utf-8", "replace")
    if len(data) > MAX_LINE_BYTES:
        raise MalformedLineError(f"{command} is longer than {MAX_LINE_BYTES} bytes")
    return f"@label={label} ".encode() + data if label else data


def split_message(text: str, target: str) -> list[str]:
    """The texts of the lines that a message takes; no character is cut in two."""
    frame = len(format_line("PRIVMSG", target, ""))
    max_bytes = MAX_LINE_BYTES - MAX_PREFIX_BYTES - frame
    return [
        part.rstrip()
        for line in LINE_BREAKS.split(UNSENDABLE.sub("", text))
        for part in _split(line, max_bytes)
        if part.strip()
    ]


def _split(text: str, max_bytes: int) -> Iterator[str]:
    """Parts of at most *max_bytes*, cut at spaces where that leaves no short part."""
    while len(data := text.encode("utf-8", "replace")) > max_bytes:
        head = data[:max_bytes].decode("utf-8", "ignore")  # without a part of a character
        cut = head.rfind(" ") + 1
        cut = cut if cut > len(head) // 2 else len(head)
        yield text[:cut]
        text = text[cut:]
    yield text


def without_formatting(text: str) -> str:
    """A received text without colors and other control codes of IRC clients."""
    return FORMATTING.sub("", text)
