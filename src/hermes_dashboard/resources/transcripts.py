"""The messages of a conversation, in pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from hermes_conversation.tool_results import DONE, status_of
from hermes_core import media_store
from hermes_core.messages import plain_text, without_memory_blocks
from hermes_dashboard.models.text import Identifier, MessageId, Text, View, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_state.messages.rows import DELETED_TEXT

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_dashboard.context import DashboardContext
    from hermes_state.messages.rows import MessageRow
    from hermes_state.sessions.usage import AnswerUsage

IMAGE_TYPES: Final = ("image_url", "input_image", "image")
MEDIA_PATH: Final = "/api/media/"
MAX_MATCHES: Final = 1000


class ToolCallView(BaseModel):
    """A tool call; the arguments are JSON text."""

    id: Text
    name: Text
    arguments: Text


class AnswerUsageView(View):
    """What an answer took."""

    model: Text
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None = Field(description="Null if no price is known.")
    cost_status: Text = Field(description="actual, estimated, included or unknown")
    seconds: float


class MessageView(BaseModel):
    """One message of a conversation."""

    id: int
    session_id: Text
    role: Text
    text: Text
    reasoning: Text | None
    tool_calls: list[ToolCallView]
    tool_call_id: Text | None
    tool_name: Text | None
    is_failure: bool | None
    timestamp: float
    finish_reason: Text | None
    token_count: int | None
    usage: AnswerUsageView | None = Field(
        description="Of answers since this is recorded; that of a copy is its origin's."
    )
    state: Literal["active", "undone", "compacted"]
    images: list[Text]


class MessagePageView(BaseModel):
    """Messages in order, and whether there are more on either side."""

    items: list[MessageView]
    has_before: bool
    has_after: bool


class PromptView(View):
    """The beginning of a user message, on one line."""

    id: int
    timestamp: float
    text: Text


class OutlineView(BaseModel):
    """The user messages of a conversation, in order."""

    items: list[PromptView]


class MatchesView(BaseModel):
    """Messages of a conversation that match, oldest first."""

    message_ids: list[int]
    is_capped: bool = Field(description="There are more than these 1,000.")


def message_of(row: MessageRow, usage: AnswerUsage | None = None) -> MessageView:
    """A row of the store for the page."""
    text = text_of(row.content)
    if row.role == "assistant":
        text = without_memory_blocks(text)
    if row.is_deleted:
        text = f"{text}\n\n{DELETED_TEXT}"
    return MessageView.model_validate(
        {
            **row._asdict(),
            "role": row.shown_role or "unknown",
            "text": text,
            "reasoning": row.reasoning or row.reasoning_content,
            "tool_calls": calls_of(row.tool_calls),
            "is_failure": status_of(row.tool_name, text) != DONE if row.role == "tool" else None,
            "timestamp": row.timestamp or 0.0,
            "usage": usage,
            "state": state_of(row),
            "images": images_of(row.content),
        }
    )


def state_of(row: MessageRow) -> Literal["active", "undone", "compacted"]:
    """Whether the message is active, undone or compacted."""
    if row.compacted:
        return "compacted"
    return "active" if row.is_live else "undone"


def text_of(content: Any) -> str:
    """The text of a message, without its images."""
    if isinstance(content, list):
        content = [part for part in content if not _is_image(part)]
    return plain_text(content)


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in IMAGE_TYPES and bool(_image_url(part))


def images_of(content: Any) -> list[str]:
    """The URLs of the images of a message: inline data or stored media."""
    context = content if isinstance(content, list) else [content]
    urls = [_image_url(part) for part in context if isinstance(part, dict)]
    return [url for url in urls if url]


def _image_url(part: JsonObject) -> str:
    """The URL of an image if the page may load it; never of other hosts."""
    image = part.get("image_url")
    url = image if isinstance(image, str) else media_store.url_of(part)
    if url.startswith(media_store.REFERENCE_SCHEME):
        return MEDIA_PATH + url.removeprefix(media_store.REFERENCE_SCHEME).rpartition("/")[2]
    return url if url.startswith("data:image/") else ""


def calls_of(value: object) -> list[ToolCallView]:
    """The tool calls of a message, in any of the stored formats."""
    calls = value if isinstance(value, list) else []
    return [_call(call) for call in calls if isinstance(call, dict)]


def _call(call: JsonObject) -> ToolCallView:
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    return ToolCallView(
        id=str(call.get("id") or call.get("call_id") or ""),
        name=str(function.get("name") or "unnamed tool"),
        arguments=arguments,
    )


Inactive = Annotated[bool, Query(description="Include undone messages.")]


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the messages."""
    routes = ResourceRouter("/api/sessions", tag="sessions")
    db = context.db

    @routes.get("/{session_id}/messages", responses=problems(400, 404, 409, 503))
    def list_messages(
        session_id: Identifier,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        before: MessageId | None = None,
        after: MessageId | None = None,
        around: MessageId | None = None,
        inactive: Inactive = True,
    ) -> MessagePageView:
        """Messages in order: before or after one, around one, or the last ones.

        All rows of a conversation read as one. A page holds about 4 MB at most, so it may
        be shorter than `limit`; `has_before` and `has_after` tell whether there is more.
        """
        page = db.transcripts.page(
            db.lookup.resolve(session_id),
            limit,
            before=before,
            after=after,
            around=around,
            with_undone=inactive,
        )
        return MessagePageView(
            items=[message_of(row, page.usage.get(row.id)) for row in page.rows],
            has_before=page.has_before,
            has_after=page.has_after,
        )

    @routes.get("/{session_id}/outline", responses=problems(400, 404, 409, 503))
    def show_outline(session_id: Identifier) -> OutlineView:
        """The user messages of a conversation in order, each on one line; at most 5,000."""
        prompts = db.transcripts.prompts(db.lookup.resolve(session_id))
        return OutlineView.model_validate({"items": prompts})

    @routes.get("/{session_id}/find", responses=problems(400, 404, 409, 503))
    def find_messages(
        session_id: Identifier, q: Annotated[str, Query(max_length=500)]
    ) -> MatchesView:
        """The messages of a conversation that contain the words, oldest first.

        Words, "phrases", one OR two, -not; parts of words match. Tool calls and their results
        are searched, too.
        """
        resolved = db.lookup.resolve(session_id)
        found = db.search.ids_in_conversation(resolved, q, MAX_MATCHES + 1)
        return MatchesView(message_ids=found[:MAX_MATCHES], is_capped=len(found) > MAX_MATCHES)

    return routes
