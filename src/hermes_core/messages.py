"""The message format of models and plugins, and the readable text of messages.

Annotations are evaluated: typing would compile each one of a TypedDict that is a string, which
is a tenth of a millisecond per class at every start.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, TypedDict

from hermes_core.errors import TitleError

MAX_PREVIEW_CHARACTERS = 60
MAX_TITLE_CHARACTERS = 100

Content = str | list[object] | dict[str, object] | None


class FunctionCall(TypedDict):
    """Name and arguments of a tool call; the arguments are JSON text."""

    name: str
    arguments: str


class ToolCallDict(TypedDict, total=False):
    """A tool call of the model."""

    id: str
    call_id: str
    response_item_id: str
    type: str
    function: FunctionCall


class Message(TypedDict, total=False):
    """A message of a conversation. Only `role` is required."""

    role: str
    content: Content
    tool_calls: list[ToolCallDict] | None
    tool_call_id: str | None
    tool_name: str | None
    is_error: bool  # of a result in a request
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: object
    codex_reasoning_items: object
    codex_message_items: object
    finish_reason: str | None
    token_count: int | None
    platform_message_id: str | None
    message_id: str | None  # another name of it
    name: str | None  # another name of `tool_name`
    observed: bool
    timestamp: float | None
    hermes_uid: str
    effect_disposition: str | None
    api_content: object
    display_kind: str | None
    display_metadata: object


# The finish reason of a message with the role of a user that a hook has written for the model.
HOOK_FEEDBACK: Final = "hook_feedback"


def is_prompt(message: Message) -> bool:
    """Whether a message is of the user, not feedback of a hook."""
    return message.get("role") == "user" and message.get("finish_reason") != HOOK_FEEDBACK


_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "summary_text"})
_TYPE_PLACEHOLDERS = {
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
_MAX_DEPTH = 16
_INVISIBLE = frozenset(
    "\u00ad\u061c\u180e\ufeff"
    + "".join(map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F)]))
    + "".join(map(chr, [*range(0x2060, 0x2070), *range(0xFFF9, 0xFFFC)]))
)


MEMORY_BLOCK: Final = r"(?s)<memory-context>.*?</memory-context>\s*"


def without_memory_blocks(text: str) -> str:
    """A text without the blocks that hermes-agent adds to prompts for the model only."""
    return re.sub(MEMORY_BLOCK, "", text) if "<memory-context>" in text else text


def plain_text(content: object) -> str:
    """The text of a message's content; media become `[image]`, `[audio]` and so on."""
    return content if isinstance(content, str) else _plain(content, 0)


# Parts of a prompt that its sender did not write.
ATTACHED_PREFIX: Final = "[Attached "  # begins the part of a message that is an attached text
EARLIER_LINE: Final = "(earlier in this chat: {})"
REPLY_LINE: Final = "(in reply to {})"
_QUOTED_LINES: Final = (EARLIER_LINE.partition("{")[0], REPLY_LINE.partition("{")[0], ">", "&gt;")


def own_words(content: object) -> list[tuple[int, str]]:
    """The lines that the sender of a prompt wrote, with their places in its plain text.

    Attached texts, quoted messages and what other programs add are left out. Places are those in
    the composed form (NFC) of the text.
    """
    parts = content if isinstance(content, list) else [content]
    lines: list[tuple[int, str]] = []
    place = 0
    for part in parts:
        text = unicodedata.normalize("NFC", plain_text(part))
        if not text:
            continue
        if not (isinstance(content, list) and text.startswith(ATTACHED_PREFIX)):
            lines += _own_lines(text, place)
        place += len(text) + 1
    return lines


def _own_lines(text: str, place: int) -> list[tuple[int, str]]:
    blanked = re.sub(MEMORY_BLOCK, lambda block: re.sub(r"[^\n]", " ", block.group()), text)
    lines = []
    for line in blanked.split("\n"):
        if line.strip() and not line.lstrip().startswith(_QUOTED_LINES):
            lines.append((place, line))
        place += len(line) + 1
    return lines


def preview(content: object, limit: int = MAX_PREVIEW_CHARACTERS) -> str:
    """The beginning of a content on one line, with '...' if it is shortened."""
    line = _one_line(plain_text(content), limit)
    if len(line) <= limit:
        return line
    return line[: _safe_cut(line, limit)].rstrip() + "..."


def sanitize_title(text: str | None) -> str | None:
    """*text* as a title: one line without invisible characters, or None if nothing is left."""
    if not text:
        return None
    title = " ".join("".join(filter(_is_visible, text)).split())
    if len(title) > MAX_TITLE_CHARACTERS:
        raise TitleError(
            f"The title is too long: {len(title)} characters, at most {MAX_TITLE_CHARACTERS} fit."
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
    if content is None or depth > _MAX_DEPTH:
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
    if kind in _TYPE_PLACEHOLDERS:
        return _TYPE_PLACEHOLDERS[kind]
    for field in ("text", "content", "text_summary"):
        if part.get(field) is not None:
            return _plain(part[field], depth + 1)
    if kind in _TEXT_TYPES:
        return ""
    return f"[{kind or 'data'}]"


def _one_line(text: str, limit: int) -> str:
    """Collapse whitespace, processing only as much of a long text as needed."""
    size = max(256, limit * 4)
    while size < len(text):
        line = " ".join(text[:size].split())
        if len(line) > limit + _MAX_DEPTH:
            return line
        size *= 4
    return " ".join(text.split())


def _safe_cut(text: str, limit: int) -> int:
    """The last position up to *limit* that does not split a character.

    A sequence of combining marks longer than the limit is split.
    """
    cut = limit
    while cut > 0 and _splits_character(text, cut):
        cut -= 1
    return cut or limit


def _splits_character(text: str, cut: int) -> bool:
    before, after = text[cut - 1], text[cut]
    return (
        before == "\u200d"
        or after in "\u200d\ufe0e\ufe0f"
        or unicodedata.category(after) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (_is_regional(after) and _regional_before(text, cut) % 2 == 1)
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_before(text: str, cut: int) -> int:
    count = 0
    while count < cut and _is_regional(text[cut - 1 - count]):
        count += 1
    return count


def _is_visible(character: str) -> bool:
    """Whether a character is visible or a space; not control, zero-width or direction marks."""
    if character.isspace():
        return True
    return character not in _INVISIBLE and unicodedata.category(character) not in {"Cc", "Cs"}
