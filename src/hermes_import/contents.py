"""Builds messages and times in the format of the history from those of other agents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hermes_core.errors import TitleError
from hermes_core.messages import MAX_TITLE_CHARACTERS, sanitize_title
from hermes_state.imports.values import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.json_values import JsonValue
    from hermes_core.messages import Content, ToolCallDict


INTERRUPTED: Final = "interrupted"  # the finish reason of an answer that the user stopped
FAILED: Final = "error"  # the finish reason of an answer that a provider's error ended


def tool_call(call_id: str, name: str, arguments: JsonValue) -> ToolCallDict:
    """A tool call; arguments that are not JSON text become it."""
    text = arguments if isinstance(arguments, str) else json_text(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def tool_result(text: str, *, is_error: bool = False, exit_code: int | None = None) -> str:
    """The content of a tool result; a failure is JSON, as the tools of Hermes report it."""
    if exit_code:
        return json_text({"output": text, "exit_code": exit_code})
    return json_text({"error": text}) if is_error else text


def joined(texts: Sequence[str]) -> str:
    """The texts of the parts of a message as one."""
    if len(texts) < 2:
        return texts[0] if texts else ""
    return "\n\n".join(text for text in texts if text)


def prompt_content(text: str, image_urls: Sequence[str] = ()) -> Content:
    """The content of a prompt: its text, or parts if it has pictures."""
    if not image_urls:
        return text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in image_urls]
    return [{"type": "text", "text": text}, *images]


def title_of(text: str | None) -> str | None:
    """A title that fits; None if nothing is left."""
    if not text:
        return None
    try:
        return sanitize_title(text)
    except TitleError:
        return sanitize_title(text[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…")


MAX_TIME: Final = 1e11  # seconds; what is larger is milliseconds


def seconds_of(value: JsonValue, default: float = 0.0) -> float:
    """Seconds since 1970 of a time: ISO text, seconds or milliseconds."""
    if isinstance(value, bool) or value is None:
        return default
    if isinstance(value, (int, float)):
        if not 0 <= value < MAX_TIME * 1000:  # also for what is not a number
            return default
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return default
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return default
