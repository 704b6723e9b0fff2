"""Messages in the shape that the model and every plugin know, and their text for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TypedDict

from hermes_core.errors import TitleError

PREVIEW_CHARACTERS = 60
TITLE_CHARACTERS = 100

Content = str | list[object] | dict[str, object] | None


class FunctionCall(TypedDict):
    """What a tool is asked to do; the arguments are JSON as text."""

    name: str
    arguments: str


class ToolCallDict(TypedDict, total=False):
    """One request of the model to run a tool."""

    id: str
    call_id: str
    response_item_id: str
    type: str
    function: FunctionCall


class Message(TypedDict, total=False):
    """One message of a conversation. Only `role` is always there."""

    role: str
    content: Content
    tool_calls: list[ToolCallDict] | None
    tool_call_id: str | None
    tool_name: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: object
    codex_reasoning_items: object
    codex_message_items: object
    finish_reason: str | None
    token_count: int | None
    platform_message_id: str | None
    observed: bool
    timestamp: float
    hermes_uid: str


_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "summary_text"})
_NAMES_OF_TYPES = {
    "image": "[image]",
    "image_url": "[image]",
    "input_image": "[image]",
    "audio": "[audio]",
    "input_audio": "[audio]",
    "video": "[video]",
    "video_url": "[video]",
    "input_video": "[video]",
    "file": "[file]",
    "input_file": "[file]",
    "document": "[file]",
}
_DEEPEST = 16
_INVISIBLE = frozenset(
    "\u00ad\u061c\u180e\ufeff"
    + "".join(map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F)]))
    + "".join(map(chr, [*range(0x2060, 0x2070), *range(0xFFF9, 0xFFFC)]))
)


def plain_text(content: object) -> str:
    """The words of a message's content; pictures and the like become `[image]` and so on."""
    return _plain(content, 0)


def preview(content: object, limit: int = PREVIEW_CHARACTERS) -> str:
    """The beginning of a content on one line, with '...' when something was cut off."""
    line = _one_line(plain_text(content), limit)
    if len(line) <= limit:
        return line
    return line[: _safe_cut(line, limit)].rstrip() + "..."


def sanitize_title(text: str | None) -> str | None:
    """*text* as a title: one line without invisible characters, or None if nothing is left."""
    if not text:
        return None
    title = " ".join("".join(filter(_is_visible, text)).split())
    if len(title) > TITLE_CHARACTERS:
        raise TitleError(
            f"The title is too long: {len(title)} characters, at most {TITLE_CHARACTERS} fit."
        )
    return title or None


def has_lone_surrogate(text: str) -> bool:
    """Whether *text* contains half of a surrogate pair, which UTF-8 cannot express."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _plain(content: object, depth: int) -> str:
    if isinstance(content, str):
        return content
    if content is None or depth > _DEEPEST:
        return ""
    if isinstance(content, (list, tuple)):
        texts = (_plain(part, depth + 1) for part in content)
        return "\n".join(text for text in texts if text)
    if isinstance(content, Mapping):
        return _plain_part(content, depth)
    return str(content)


def _plain_part(part: Mapping[str, object], depth: int) -> str:
    kind = part.get("type")
    if not isinstance(kind, str):
        kind = ""
    if kind in _NAMES_OF_TYPES:
        return _NAMES_OF_TYPES[kind]
    for field in ("text", "content", "text_summary"):
        if part.get(field) is not None:
            return _plain(part[field], depth + 1)
    if kind in _TEXT_TYPES:
        return ""
    return f"[{kind or 'data'}]"


def _one_line(text: str, limit: int) -> str:
    """Collapse whitespace, reading no more of a long text than the limit needs."""
    size = max(256, limit * 4)
    while size < len(text):
        line = " ".join(text[:size].split())
        if len(line) > limit + _DEEPEST:
            return line
        size *= 4
    return " ".join(text.split())


def _safe_cut(text: str, limit: int) -> int:
    """The last place up to *limit* where a cut leaves every character whole.

    A pile of combining marks longer than the limit is cut through all the same.
    """
    cut = limit
    while cut > 0 and _belongs_together(text, cut):
        cut -= 1
    return cut or limit


def _belongs_together(text: str, cut: int) -> bool:
    before, after = text[cut - 1], text[cut]
    return (
        before == "\u200d"
        or after in "\u200d\ufe0e\ufe0f"
        or unicodedata.category(after) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (_is_regional(after) and _flags_before(text, cut) % 2 == 1)
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, cut: int) -> int:
    count = 0
    while count < cut and _is_regional(text[cut - 1 - count]):
        count += 1
    return count


def _is_visible(character: str) -> bool:
    """Controls, zero-width and direction marks and surrogates are not; blanks are."""
    if character.isspace():
        return True
    return character not in _INVISIBLE and unicodedata.category(character) not in {"Cc", "Cs"}
