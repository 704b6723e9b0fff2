"""Removes what a mail program adds to a reply: the quoted earlier message and the signature.

Something always remains: a message that consists of a quotation only stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

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
