"""API responses in the formats of OpenAI.

Token counts are not available here: `usage` is omitted from chat completions and null in
responses, as both allow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from hermes_core.json_values import JsonData

DONE_EVENT: Final = "data: [DONE]\n\n"
KEEP_ALIVE_COMMENT: Final = ": keep-alive\n\n"
ERROR_TYPES: Final = {
    401: "authentication_error",
    404: "invalid_request_error",
    503: "server_error",
    504: "server_error",
}


class AnswerMetadata(NamedTuple):
    """The fields shared by all parts of one answer."""

    token: str
    model: str
    created: int
    previous: str = ""
    metadata: Mapping[str, JsonData] = {}


def error(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Any:
    """An error response."""
    return JSONResponse(error_body(status, message, code), status, headers)


def error_body(status: int, message: str, code: str) -> dict[str, JsonData]:
    """The body of an error."""
    kind = ERROR_TYPES.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def models(name: str, created: int) -> dict[str, JsonData]:
    """The list of models: only the agent."""
    model: dict[str, JsonData] = {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": name,
    }
    return {"object": "list", "data": [model]}


# Chat completions


def completion(shape: AnswerMetadata, text: str) -> dict[str, JsonData]:
    """A complete answer."""
    choice: dict[str, JsonData] = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    return {**_completion(shape, "chat.completion"), "choices": [choice]}


async def completion_events(
    shape: AnswerMetadata, pieces: AsyncIterator[str]
) -> AsyncIterator[str]:
    """The events of a streamed answer."""
    yield _chunk(shape, {"role": "assistant", "content": ""}, None)
    async for piece in pieces:
        yield _chunk(shape, {"content": piece}, None) if piece else KEEP_ALIVE_COMMENT
    yield _chunk(shape, {}, "stop")
    yield DONE_EVENT


def _completion(shape: AnswerMetadata, kind: str) -> dict[str, JsonData]:
    return {
        "id": f"chatcmpl-{shape.token}",
        "object": kind,
        "created": shape.created,
        "model": shape.model,
    }


def _chunk(shape: AnswerMetadata, delta: dict[str, JsonData], reason: str | None) -> str:
    choice: dict[str, JsonData] = {
        "index": 0,
        "delta": delta,
        "logprobs": None,
        "finish_reason": reason,
    }
    return sse_event({**_completion(shape, "chat.completion.chunk"), "choices": [choice]})


def sse_event(content: dict[str, JsonData], event: str = "") -> str:
    """A Server-Sent Event."""
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(content)}\n\n"


# Responses


def response(shape: AnswerMetadata, text: str | None) -> dict[str, JsonData]:
    """A response; without a text it is in progress."""
    output = [] if text is None else [_message(shape, text, "completed")]
    return {
        "id": f"resp_{shape.token}",
        "object": "response",
        "created_at": shape.created,
        "status": "in_progress" if text is None else "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": shape.metadata,
        "model": shape.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": shape.previous or None,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


async def response_events(shape: AnswerMetadata, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """The events of a streamed response."""
    number, texts = 0, []
    for number, item in enumerate(_opening(shape)):
        yield _event(item, number)
    async for piece in pieces:
        if not piece:
            yield KEEP_ALIVE_COMMENT
            continue
        texts.append(piece)
        number += 1
        kind = "response.output_text.delta"
        yield _event({"type": kind, **_where(shape), "delta": piece, "logprobs": []}, number)
    for item in _closing(shape, "".join(texts)):
        number += 1
        yield _event(item, number)


def _opening(shape: AnswerMetadata) -> Iterator[dict[str, JsonData]]:
    begun, empty = response(shape, None), {**_message(shape, "", "in_progress"), "content": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
    yield {"type": "response.content_part.added", **_where(shape), "part": _part("")}


def _closing(shape: AnswerMetadata, text: str) -> Iterator[dict[str, JsonData]]:
    message = _message(shape, text, "completed")
    where = _where(shape)
    yield {"type": "response.output_text.done", **where, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": _part(text)}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}
    yield {"type": "response.completed", "response": response(shape, text)}


def _where(shape: AnswerMetadata) -> dict[str, JsonData]:
    return {"item_id": f"msg_{shape.token}", "output_index": 0, "content_index": 0}


def _message(shape: AnswerMetadata, text: str, status: str) -> dict[str, JsonData]:
    return {
        "id": f"msg_{shape.token}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [_part(text)],
    }


def _part(text: str) -> dict[str, JsonData]:
    return {"type": "output_text", "text": text, "annotations": []}


def _event(content: dict[str, JsonData], number: int) -> str:
    return sse_event({**content, "sequence_number": number}, str(content["type"]))
