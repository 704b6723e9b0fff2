"""The display of a conversation: stored messages, and output of a turn not stored yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_conversation.attachments import text_of
from hermes_conversation.tool_results import status_of
from hermes_core import media_store
from hermes_state.messages.rows import DELETED_TEXT
from tui_gateway.protocol import (
    AnswerUsageInfo,
    InflightTurn,
    MessageDelta,
    StatusUpdate,
    ToolComplete,
    ToolStart,
    UsageView,
)

if TYPE_CHECKING:
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.records import SessionRow
    from hermes_state.sessions.usage import AnswerUsage
    from tui_gateway.protocol import ClientEvent, DisplayedMessage

MAX_INLINE_CHARACTERS: Final = 100_000  # larger images that are not in the media store are not sent


class TurnView:
    """The unstored output of a running turn; the owner guards it with a lock."""

    def __init__(self) -> None:
        self._prompt = ""
        self._text = ""
        self._tools: dict[str, ToolStart] = {}

    def begin(self, text: str) -> None:
        """Start a turn."""
        self._prompt, self._text, self._tools = text, "", {}

    def add(self, event: ClientEvent) -> None:
        """Add an event."""
        if isinstance(event, MessageDelta):
            self._text += event.text
        elif isinstance(event, StatusUpdate) and event.drops_text:
            self._text = ""
        elif isinstance(event, ToolStart):
            self._tools[event.tool_id] = event
        elif isinstance(event, ToolComplete):
            self._tools.pop(event.tool_id, None)

    def stored(self, role: str) -> None:
        """Drop the output that a stored message contains."""
        if role == "user":
            self._prompt = ""
        elif role == "assistant":
            self._text = ""

    def end(self) -> None:
        """End the turn; all its messages are stored."""
        self._prompt, self._text, self._tools = "", "", {}

    def inflight(self, messages: list[DisplayedMessage]) -> InflightTurn:
        """The output to show after *messages*, without what they already contain."""
        return InflightTurn(
            asked="" if _ends_with(messages, "user", self._prompt) else self._prompt,
            text="" if _ends_with(messages, "assistant", self._text) else self._text,
            tools=list(self._tools.values()),
        )


def _ends_with(messages: list[DisplayedMessage], role: str, text: str) -> bool:
    last = next((message for message in reversed(messages) if message["role"] == role), None)
    return bool(text) and last is not None and text_of(last["content"]).strip() == text.strip()


def display_message(row: MessageRow, usage: AnswerUsage | None = None) -> DisplayedMessage:
    """A stored message for display; large images are replaced by their size."""
    content = DELETED_TEXT if row.is_deleted else row.content
    return {
        "id": row.id,
        "role": row.shown_role,
        "content": list(map(_part, content)) if isinstance(content, list) else content,
        "reasoning": row.reasoning,
        "tool_name": row.tool_name,
        "tool_calls": row.tool_calls,
        "tool_call_id": row.tool_call_id,
        "tool_status": status_of(row.tool_name, text_of(content)) if row.role == "tool" else None,
        "timestamp": row.timestamp,
        "finish_reason": row.finish_reason,
        "usage": usage_view(usage),
    }


def usage_view(usage: AnswerUsage | None) -> AnswerUsageInfo | None:
    """What an answer took, for clients."""
    return None if usage is None else AnswerUsageInfo(*usage)


def _part(part: object) -> object:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    url = media_store.url_of(part)
    if not media_store.is_reference(part):
        shown = {"url": url} if len(url) <= MAX_INLINE_CHARACTERS else {}
        return {"type": "image", "bytes": len(url) * 3 // 4, "text": "[image]", **shown}
    size, name = media_store.of_home().size_of(url), url.rpartition("/")[2]
    return {"type": "image", "bytes": size, "text": "[image]", "media": name}


def usage(session: SessionRow | None) -> UsageView:
    """The tokens of a conversation, and their cost if known."""
    if session is None:
        return UsageView()
    cost = session.actual_cost_usd
    return UsageView(
        input=session.input_tokens,
        output=session.output_tokens,
        cache_read=session.cache_read_tokens,
        cache_write=session.cache_write_tokens,
        reasoning=session.reasoning_tokens,
        cost_usd=session.estimated_cost_usd if cost is None else cost,
    )
