"""The API: token counts, failures of the provider, and requests that cannot be honoured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from support.api_setup import COMPLETIONS, RESPONSES, ApiSetup, completion_text, session_headers
from support.gateways import conversation_texts

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

LOOK = "{name: terminal, arguments: {command: echo hi}}"
USER_HI = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


@pytest.fixture
def setup(db: SessionDB, tmp_path: Path) -> ApiSetup:
    return ApiSetup(db, tmp_path)


# Why an answer ends


@pytest.mark.parametrize(
    ("step", "reason", "incomplete"),
    [
        ("{say: One two, finish: length}", "length", "max_output_tokens"),
        ("{say: One, finish: content_filter}", "content_filter", "content_filter"),
        ("{finish: refusal}", "content_filter", "content_filter"),
        ("{say: One two.}", "stop", None),
    ],
)
async def test_the_reason_of_the_end_is_reported_with_and_without_a_stream(
    setup: ApiSetup, answering: Any, step: str, reason: str, incomplete: str | None
) -> None:
    answering(f"[{step}, {step}, {step}, {step}]")
    body = {"messages": [USER_HI]}
    async with setup.open() as client:
        asked = await client.ask("one", headers={"Idempotency-Key": "k"})
        repeated = await client.ask("one", headers={"Idempotency-Key": "k"})
        streamed = await client.stream(COMPLETIONS, body)
        response = await client.respond("three")
        events = await client.stream(RESPONSES, {"input": "four"})
        fetched = (await client.http.get(f"{RESPONSES}/{response['id']}")).json()
    for answer in (asked, repeated):
        assert answer.json()["choices"][0]["finish_reason"] == reason
    assert streamed[-2][1]["choices"][0]["finish_reason"] == reason
    details = {"reason": incomplete} if incomplete else None
    state = "incomplete" if incomplete else "completed"
    for given in (response, fetched, events[-1][1]["response"]):
        assert (given["status"], given["incomplete_details"]) == (state, details)
        assert given["output"][0]["status"] == state
    assert events[-1][0] == f"response.{state}"


async def test_a_turn_that_ends_at_the_step_limit_is_not_complete(
    setup: ApiSetup, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.max_steps", "1")
    answering(f"[{{say: Looking., calls: [{LOOK}]}}, {{say: I saw hi.}}]")
    async with setup.open() as client:
        answer = await client.ask("look")
    assert answer.json()["choices"][0]["finish_reason"] == "length"


# Usage


async def test_usage_counts_all_model_requests_of_the_turn(setup: ApiSetup, answering: Any) -> None:
    server = answering(f"[{{say: Let me look., calls: [{LOOK}]}}, {{say: It is there.}}]")
    async with setup.open() as client:
        answer = await client.ask("look")
        status = await client.ask("/status")
    sent = [
        sum(len(str(message.get("content") or "")) for message in request["messages"]) // 4 + 1
        for request in server.requests
    ]
    usage = answer.json()["usage"]
    output = len("Let me look.") // 4 + 1 + len("It is there.") // 4 + 1
    assert len(sent) == 2
    assert usage == {
        "prompt_tokens": sum(sent),
        "completion_tokens": output,
        "total_tokens": sum(sent) + output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert status.json()["usage"]["total_tokens"] == 0  # a command asks no model


async def test_a_repeated_request_and_a_fetched_response_have_the_same_usage(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    key = {"Idempotency-Key": "k"}
    async with setup.open() as client:
        first = (await client.ask("hi", headers=key)).json()
        result = await client.respond("hi")
    async with setup.open() as client:
        again = (await client.ask("hi", headers=key)).json()
        fetched = (await client.http.get(f"{RESPONSES}/{result['id']}")).json()
    assert first["usage"] == again["usage"]
    assert first["usage"]["total_tokens"] > 0
    assert result["usage"] == fetched["usage"]
    usage = result["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


@pytest.mark.parametrize("is_asked", [True, False])
async def test_a_stream_ends_with_the_usage_if_asked_for(
    setup: ApiSetup, answering: Any, is_asked: bool
) -> None:
    answering("[]")
    body = {"messages": [USER_HI], "stream_options": {"include_usage": is_asked}}
    async with setup.open() as client:
        chunks = [chunk for _, chunk in await client.stream(COMPLETIONS, body)][:-1]
        events = await client.stream(RESPONSES, {"input": "hi"})
    with_usage = [chunk for chunk in chunks if chunk.get("usage")]
    assert len(with_usage) == int(is_asked)
    if is_asked:
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["total_tokens"] > 0
    assert events[-1][1]["response"]["usage"]["total_tokens"] > 0


# Failures


@pytest.mark.parametrize(
    ("fail", "status", "code"),
    [
        ("{status: 401}", 401, "provider_key_rejected"),
        ("{status: 402}", 402, "insufficient_quota"),
        ("{status: 404}", 502, "provider_model_not_found"),
        ("{status: 422, message: no}", 502, "provider_rejected_request"),
        ("{status: 400, message: maximum context}", 400, "context_length_exceeded"),
    ],
)
async def test_a_failure_of_the_provider_is_an_error(
    setup: ApiSetup, answering: Any, fail: str, status: int, code: str
) -> None:
    answering(f"[{', '.join([f'{{fail: {fail}}}'] * 6)}]")
    async with setup.open() as client:
        results = [
            await client.ask("hi"),
            await client.ask("hi", stream=True),
            await client.http.post(RESPONSES, json={"input": "hi"}),
        ]
    for result in results:
        error = result.json()["error"]
        assert (result.status_code, error["code"]) == (status, code)
        assert error["message"]
        assert result.headers["x-should-retry"] == "false"


async def test_a_rate_limit_of_the_provider_says_when_to_come_back(
    setup: ApiSetup, answering: Any
) -> None:
    answering(f"[{', '.join(['{fail: {status: 429, retry_after: 0.1}}'] * 4)}]")
    async with setup.open() as client:
        result = await client.ask("hi")
    error = result.json()["error"]
    assert (result.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert error["type"] == "rate_limit_error"
    assert result.headers["retry-after"] == "1"


async def test_a_limit_of_hermes_is_an_error(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    ConfigFile.of_home().set("gateway.user_turns_per_minute", "1")
    async with setup.open() as client:
        first, second = [await client.ask("hi", user="ada") for _ in range(2)]
    assert first.status_code == 200
    assert (second.status_code, second.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(second.headers["retry-after"]) <= 60


async def test_a_stream_that_breaks_ends_with_an_error_event(
    setup: ApiSetup, answering: Any
) -> None:
    cut = "{say: one two three, pause: 0.1, cut: true}"
    refused = "{fail: {status: 401}}"
    answering(f"[{cut}, {refused}, {cut}, {refused}]")
    async with setup.open() as client:
        chunks = await client.stream(COMPLETIONS, {"messages": [USER_HI]})
        events = await client.stream(RESPONSES, {"input": "hi"})
        response = events[0][1]["response"]["id"]
        fetched = (await client.http.get(f"{RESPONSES}/{response}")).json()
    name, data = chunks[-1]
    assert (name, data["error"]["code"]) == ("error", "provider_key_rejected")
    assert [name for name, _ in events[-2:]] == ["response.failed", "error"]
    failed = events[-2][1]["response"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", "provider_key_rejected")
    assert events[-1][1]["error"]["code"] == "provider_key_rejected"
    assert (fetched["status"], fetched["output"]) == ("failed", [])


# Unknown paths


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/unknown", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", COMPLETIONS, 405, "method_not_allowed"),
        ("DELETE", f"{RESPONSES}/resp_1", 405, "method_not_allowed"),
        ("GET", "/v1/models/gpt-9", 404, "model_not_found"),
    ],
)
async def test_what_is_not_served_is_an_error_in_the_same_format(
    setup: ApiSetup, method: str, path: str, status: int, code: str
) -> None:
    async with setup.open() as client:
        answer = await client.http.request(method, path)
        refused = await client.http.request(method, path, headers={"Authorization": "Bearer x"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert error["type"] == "invalid_request_error"
    assert ("allow" in answer.headers) == (status == 405)
    assert refused.status_code == 401


async def test_the_model_can_be_retrieved(setup: ApiSetup) -> None:
    async with setup.open() as client:
        model = (await client.http.get("/v1/models/hermes")).json()
    assert (model["id"], model["object"]) == ("hermes", "model")


# Requests that cannot be honoured


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [TOOL]}, "tools"),
        ({"tools": [TOOL], "tool_choice": "required"}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": TOOL}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"messages": [USER_HI, {"role": "tool", "content": "4"}]}, "messages"),
        ({"messages": [USER_HI, {"role": "assistant", "content": "Well"}]}, "messages"),
        ({"input": [{"type": "function_call_output", "output": "4"}]}, "input"),
    ],
)
async def test_what_would_have_to_be_ignored_is_rejected(
    setup: ApiSetup, answering: Any, fields: dict[str, Any], param: str
) -> None:
    server = answering("[]")
    path = RESPONSES if param in {"input", "text.format"} else COMPLETIONS
    body = {"messages": [USER_HI], "input": "hi", **fields}
    async with setup.open() as client:
        answer = await client.http.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert error["code"] in {"unsupported_parameter", "unsupported_value"}
    assert server.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [], "tool_choice": "auto"},
        {"tools": [TOOL], "tool_choice": "none"},
        {"response_format": {"type": "text"}, "n": 1, "logprobs": False, "temperature": 0.1},
    ],
)
async def test_fields_that_ask_for_nothing_are_accepted(
    setup: ApiSetup, answering: Any, fields: dict[str, Any]
) -> None:
    answering("[]")
    async with setup.open() as client:
        assert completion_text(await client.ask("hi", **fields)) == "You said: hi"


# The field `user`


async def test_the_user_is_not_a_session(setup: ApiSetup, answering: Any) -> None:
    server = answering("[]")
    async with setup.open() as client:
        first = await client.ask("one", user="ada")
        second = await client.ask("two", user="ada")
        named = await client.ask("three", user="ada", headers=session_headers("s"))
    names = [item.headers["x-hermes-session"] for item in (first, second, named)]
    assert len(set(names)) == 3
    assert names[2] == "s"
    for name, text in zip(names, ("one", "two", "three"), strict=True):
        assert conversation_texts(setup.db, name, "api_server") == [text, f"You said: {text}"]
    texts = [message["content"] for message in server.requests[1]["messages"][1:]]
    assert texts == ["two"]
