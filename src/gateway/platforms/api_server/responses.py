"""API responses in the formats of OpenAI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import JSONResponse

from gateway.platforms.api_server.exchanges import Answer
from gateway.platforms.api_server.failures import failure_error
from hermes_agent.events import AnswerProblem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from starlette.responses import Response

    from gateway.platforms.api_server.exchanges import Exchange
    from gateway.platforms.api_server.failures import ApiError
    from hermes_core.json_values import JsonData
    from hermes_state.delivery.rows import StoredFailure, StoredUsage

DONE_EVENT: Final = "data: [DONE]\n\n"
KEEP_ALIVE_COMMENT: Final = ": keep-alive\n\n"
ERROR_TYPES: Final = {
    401: "authentication_error",
    402: "insufficient_quota",
    429: "rate_limit_error",
}
FIRST_SERVER_STATUS: Final = 500
# By the problem of an answer; a turn that ends at the step limit is unfinished, too.
FINISH_REASONS: Final[dict[str, str]] = {
    AnswerProblem.LENGTH: "length",
    AnswerProblem.STEP_LIMIT: "length",
    AnswerProblem.FILTERED: "content_filter",
}
INCOMPLETE_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
NO_USAGE: Final[StoredUsage] = {
    "input": 0,
    "output": 0,
    "cache_read": 0,
    "cache_write": 0,
    "reasoning": 0,
}


class AnswerMetadata(NamedTuple):
    """The fields shared by all parts of one answer."""

    token: str
    model: str
    created: int
    previous: str = ""
    metadata: Mapping[str, JsonData] = {}
    includes_usage: bool = False  # in a last chunk


def error(found: ApiError) -> Response:
    """An error response."""
    return JSONResponse(error_body(found), found.status, found.headers)


def error_body(found: ApiError) -> dict[str, JsonData]:
    """The body of an error."""
    is_server = found.status >= FIRST_SERVER_STATUS
    other = "server_error" if is_server else "invalid_request_error"
    kind = ERROR_TYPES.get(found.status, other)
    fields = {"message": found.message, "type": kind, "param": found.param, "code": found.code}
    return {"error": fields}


def models(name: str, created: int) -> dict[str, JsonData]:
    """The list of models: only the agent."""
    return {"object": "list", "data": [model(name, created)]}


def model(name: str, created: int) -> dict[str, JsonData]:
    """A model."""
    return {"id": name, "object": "model", "created": created, "owned_by": name}


# Chat completions


def completion(shape: AnswerMetadata, answer: Answer) -> dict[str, JsonData]:
    """A complete answer."""
    choice: dict[str, JsonData] = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text, "refusal": None},
        "logprobs": None,
        "finish_reason": finish_reason(answer),
    }
    return {
        **_completion(shape, "chat.completion"),
        "choices": [choice],
        "usage": completion_usage(answer.usage),
    }


async def completion_events(
    shape: AnswerMetadata, exchange: Exchange, seconds: float
) -> AsyncIterator[str]:
    """The events of a streamed answer; after a failure the last one is an error."""
    yield _chunk(shape, {"role": "assistant", "content": ""}, None)
    async for piece in exchange.pieces(seconds):
        yield _chunk(shape, {"content": piece}, None) if piece else KEEP_ALIVE_COMMENT
    answer = exchange.answer
    if answer is not None and answer.failure is not None:
        yield sse_event(error_body(failure_error(answer.failure)), "error")
        return
    yield _chunk(shape, {}, finish_reason(answer))
    if shape.includes_usage:
        usage = completion_usage(answer.usage if answer else None)
        chunk = _completion(shape, "chat.completion.chunk")
        yield sse_event({**chunk, "choices": [], "usage": usage})
    yield DONE_EVENT


def finish_reason(answer: Answer | None) -> str:
    """Why the answer ends. Hermes runs tools itself, so it never is `tool_calls`."""
    return FINISH_REASONS.get(answer.problem, "stop") if answer is not None else "stop"


def completion_usage(usage: StoredUsage | None) -> dict[str, JsonData]:
    """The tokens of a turn; none of a command."""
    used = usage or NO_USAGE
    prompt = used["input"] + used["cache_read"] + used["cache_write"]
    return {
        "prompt_tokens": prompt,
        "completion_tokens": used["output"],
        "total_tokens": prompt + used["output"],
        "prompt_tokens_details": {"cached_tokens": used["cache_read"]},
        "completion_tokens_details": {"reasoning_tokens": used["reasoning"]},
    }


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
    usage: dict[str, JsonData] = {"usage": None} if shape.includes_usage else {}
    chunk = _completion(shape, "chat.completion.chunk")
    return sse_event({**chunk, "choices": [choice], **usage})


def sse_event(content: dict[str, JsonData], event: str = "") -> str:
    """A Server-Sent Event."""
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(content)}\n\n"


# Responses


def response(shape: AnswerMetadata, answer: Answer | None) -> dict[str, JsonData]:
    """A response; without an answer it is in progress."""
    failure = answer.failure if answer else None
    is_done = answer is not None and failure is None
    reason = INCOMPLETE_REASONS.get(finish_reason(answer))
    final_state = "incomplete" if reason else "completed"
    output = [_message(shape, answer.text, final_state)] if answer and is_done else []
    state = final_state if is_done else "failed" if failure else "in_progress"
    return {
        "id": f"resp_{shape.token}",
        "object": "response",
        "created_at": shape.created,
        "status": state,
        "error": _response_error(failure) if failure else None,
        "incomplete_details": {"reason": reason} if reason and is_done else None,
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
        "usage": response_usage(answer.usage) if answer else None,
    }


def _response_error(failure: StoredFailure) -> dict[str, JsonData]:
    found = failure_error(failure)
    return {"code": found.code, "message": found.message}


def response_usage(usage: StoredUsage | None) -> dict[str, JsonData]:
    """The tokens of a turn; none of a command."""
    used = usage or NO_USAGE
    prompt = used["input"] + used["cache_read"] + used["cache_write"]
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": used["cache_read"]},
        "output_tokens": used["output"],
        "output_tokens_details": {"reasoning_tokens": used["reasoning"]},
        "total_tokens": prompt + used["output"],
    }


async def response_events(
    shape: AnswerMetadata, exchange: Exchange, seconds: float
) -> AsyncIterator[str]:
    """The events of a streamed response; after a failure the last one is an error."""
    number, texts = 0, []
    for number, item in enumerate(_opening(shape)):
        yield _event(item, number)
    async for piece in exchange.pieces(seconds):
        if not piece:
            yield KEEP_ALIVE_COMMENT
            continue
        texts.append(piece)
        number += 1
        kind = "response.output_text.delta"
        yield _event({"type": kind, **_where(shape), "delta": piece, "logprobs": []}, number)
    answer = exchange.answer or Answer("")
    closing = _failing if answer.failure is not None else _closing
    for item in closing(shape, answer._replace(text="".join(texts))):
        number += 1
        yield _event(item, number)


def _opening(shape: AnswerMetadata) -> Iterator[dict[str, JsonData]]:
    begun, empty = response(shape, None), {**_message(shape, "", "in_progress"), "content": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
    yield {"type": "response.content_part.added", **_where(shape), "part": _part("")}


def _failing(shape: AnswerMetadata, answer: Answer) -> Iterator[dict[str, JsonData]]:
    yield {"type": "response.failed", "response": response(shape, answer)}
    if answer.failure is not None:
        found = failure_error(answer.failure)
        fields: dict[str, JsonData] = {"code": found.code, "message": found.message, "param": None}
        yield {"type": "error", **fields, **error_body(found)}


def _closing(shape: AnswerMetadata, answer: Answer) -> Iterator[dict[str, JsonData]]:
    text = answer.text
    state = "incomplete" if finish_reason(answer) in INCOMPLETE_REASONS else "completed"
    message = _message(shape, text, state)
    where = _where(shape)
    yield {"type": "response.output_text.done", **where, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **where, "part": _part(text)}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}
    yield {"type": f"response.{state}", "response": response(shape, answer)}


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
