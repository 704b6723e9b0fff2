"""The API: requests as OpenAI's clients make them, over a real server and a scripted model."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from gateway.inbound.turn_runner import RunningTurns
from gateway.platforms.api_server.adapter import ApiAdapter, make
from gateway.platforms.registry import PlatformRegistry
from gateway.platforms.webhook.adapter import WebhookAdapter
from gateway.process.connections import Connections
from gateway.process.health import GatewayMetrics, HealthEndpoints
from gateway.process.http_server import HttpServer
from gateway.process.live_facts import LiveFacts
from gateway.supervision import Supervisor
from hermes_core.errors import PlatformRefusedError
from hermes_core.paths import hermes_home
from support.api_setup import (
    API_KEY,
    COMPLETIONS,
    RESPONSES,
    SLOW_STEPS,
    ApiClient,
    ApiSetup,
    completion_text,
    session_headers,
)
from support.gateways import conversation_texts

if TYPE_CHECKING:
    from gateway.platforms.base import MessageEvent
    from hermes_state import SessionDB

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
PAGE = Path(__file__).parents[2] / "docs/reference/api.md"


@pytest.fixture
def setup(db: SessionDB, tmp_path: Path) -> ApiSetup:
    return ApiSetup(db, tmp_path)


# Complete answers


async def test_a_chat_completion_has_the_documented_format(setup: ApiSetup, answering: Any) -> None:
    answering("[{say: Hello there.}]")
    async with setup.open() as client:
        answer = await client.ask("hi", model="gpt-unheard-of")
        data = answer.json()
    assert data["object"] == "chat.completion"
    assert data["id"].startswith("chatcmpl-")
    assert data["model"] == "gpt-unheard-of"
    assert isinstance(data["created"], int)
    (choice,) = data["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["message"] == {"role": "assistant", "content": "Hello there.", "refusal": None}
    assert conversation_texts(setup.db, answer.headers["x-hermes-session"], "api_server")[0] == "hi"


async def test_a_response_is_answered_and_can_be_fetched_again(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[{say: Hello there.}]")
    async with setup.open() as client:
        result = await client.respond("hi", metadata={"a": "b"})
        again = (await client.http.get(f"{RESPONSES}/{result['id']}")).json()
    assert (result["object"], result["status"]) == ("response", "completed")
    assert result["id"].startswith("resp_")
    (message,) = result["output"]
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["content"] == [
        {"type": "output_text", "text": "Hello there.", "annotations": []}
    ]
    assert result["metadata"] == {"a": "b"}
    assert result["error"] is None
    assert again["output"] == result["output"]


async def test_a_response_continues_the_previous_one(setup: ApiSetup, answering: Any) -> None:
    server = answering("[{say: One.}, {say: Two.}]")
    async with setup.open() as client:
        first = await client.respond("first")
        second = await client.respond("second", previous_response_id=first["id"])
        third = await client.respond("third", previous_response_id=second["id"])
        body = {"input": "x", "previous_response_id": "resp_unknown"}
        unknown = await client.http.post(RESPONSES, json=body)
    assert second["previous_response_id"] == first["id"]
    assert third["output"][0]["content"][0]["text"] == "You said: third"
    texts = [
        message["content"]
        for message in server.requests[-1]["messages"]
        if message["role"] != "system"
    ]
    assert texts == ["first", "One.", "second", "Two.", "third"]
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (
        404,
        "previous_response_not_found",
    )


async def test_models_names_the_agent(setup: ApiSetup) -> None:
    async with setup.open() as client:
        data = (await client.http.get("/v1/models")).json()
    assert data["object"] == "list"
    assert [(item["id"], item["object"]) for item in data["data"]] == [("hermes", "model")]


# Sessions


async def test_in_a_session_only_the_last_message_is_sent(setup: ApiSetup, answering: Any) -> None:
    answering("[{say: One.}, {say: Two.}]")
    options: dict[str, Any] = {"headers": session_headers("ada")}
    async with setup.open() as client:
        await client.ask("first", **options)
        messages_sent = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "One."},
            {"role": "user", "content": "second"},
        ]
        answer = await client.ask("", messages=messages_sent, **options)
    assert completion_text(answer) == "Two."
    assert answer.headers["x-hermes-session"] == "ada"
    assert conversation_texts(setup.db, "ada", "api_server") == ["first", "One.", "second", "Two."]


async def test_without_a_session_the_transcript_reaches_the_model(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[{say: Blue.}]")
    messages_sent = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My colour is blue.\nassistant: it is red"},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": [{"type": "text", "text": "Which is it?"}]},
    ]
    async with setup.open() as client:
        item, two = [await client.ask("", messages=messages_sent) for _ in range(2)]
    assert item.headers["x-hermes-session"] != two.headers["x-hermes-session"]
    texts = conversation_texts(setup.db, item.headers["x-hermes-session"], "api_server")[0]
    assert texts.splitlines()[2:] == [
        "> user: My colour is blue.",
        "> assistant: it is red",
        "",
        "> assistant: Noted.",
        "",
        "Which is it?",
    ]


async def test_twenty_sessions_are_answered_at_once_each_with_its_own(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    async with setup.open() as client:
        request_task = [
            client.ask(f"number {number}", headers=session_headers(f"s{number}"))
            for number in range(20)
        ]
        result = await asyncio.gather(*request_task)
    assert [completion_text(item) for item in result] == [
        f"You said: number {number}" for number in range(20)
    ]


async def test_requests_in_one_session_are_answered_one_after_the_other(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    async with setup.open() as client:
        request_task = [
            client.ask(f"number {number}", headers=session_headers("s")) for number in range(5)
        ]
        result = await asyncio.gather(*request_task)
    assert [completion_text(item) for item in result] == [
        f"You said: number {number}" for number in range(5)
    ]


# Streams


async def test_a_completion_streams_while_it_is_written(setup: ApiSetup, answering: Any) -> None:
    answering(SLOW_STEPS)
    body = {"messages": [{"role": "user", "content": "count"}]}
    async with setup.open() as client:
        stream = await client.stream(COMPLETIONS, body)
    assert stream[-1] == ("", "[DONE]")
    chunks = [item for _, item in stream[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    assert "".join(delta.get("content", "") for delta in deltas) == "one two three four five six"
    assert len([delta for delta in deltas if delta.get("content")]) > 2
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == [None, "stop"]


async def test_a_response_streams_while_it_is_written(setup: ApiSetup, answering: Any) -> None:
    answering(SLOW_STEPS)
    async with setup.open() as client:
        stream = await client.stream(RESPONSES, {"input": "count"})
    assert [name for name, _ in stream] == [item["type"] for _, item in stream]
    assert [item["sequence_number"] for _, item in stream] == list(range(len(stream)))
    names = [name for name, _ in stream if name != "response.output_text.delta"]
    assert names == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [item["delta"] for name, item in stream if name == "response.output_text.delta"]
    assert len(deltas) > 2
    last = stream[-1][1]["response"]
    assert last["status"] == "completed"
    assert last["output"][0]["content"][0]["text"] == "".join(deltas)
    assert "".join(deltas) == "one two three four five six"


async def test_text_before_a_tool_call_streams_as_a_separate_paragraph(
    setup: ApiSetup, answering: Any
) -> None:
    call = "{name: terminal, arguments: {command: sleep 0.3}}"
    answering(f"[{{say: Let me look., calls: [{call}]}}, {{say: It is there.}}]")
    body = {"messages": [{"role": "user", "content": "look"}]}
    headers = {"Idempotency-Key": "k"}
    async with setup.open() as client:
        stream = await client.stream(COMPLETIONS, {**body, "metadata": {"message_id": "k"}})
        again = await client.http.post(COMPLETIONS, json=body, headers=headers)
    deltas = [item["choices"][0]["delta"].get("content", "") for _, item in stream[:-1]]
    assert "".join(deltas) == "Let me look.\n\nIt is there."
    assert completion_text(again) == "It is there."


# Files


async def test_a_picture_is_received(setup: ApiSetup, answering: Any) -> None:
    server = answering("[{say: A picture.}]")
    data = "data:image/png;base64," + base64.b64encode(PNG).decode()
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}},
    ]
    async with setup.open() as client:
        answer = await client.ask("", messages=[{"role": "user", "content": parts}])
    assert completion_text(answer) == "A picture."
    assert data in json.dumps(server.requests[-1])
    assert "[Attached file, download failed: http://127.0.0.1:9/x.png]" in json.dumps(
        server.requests[-1]
    )
    (result,) = [path for path in (hermes_home() / "media").rglob("*") if path.is_file()]
    assert result.read_bytes() == PNG


async def test_a_picture_may_be_larger_than_a_text(setup: ApiSetup, answering: Any) -> None:
    answering("[{say: Large.}]")
    data = "data:image/png;base64," + base64.b64encode(PNG + b"\0" * 2_000_000).decode()
    content = [{"type": "input_image", "image_url": data}, {"type": "input_text", "text": "?"}]
    async with setup.open() as client:
        result = await client.respond([{"role": "user", "content": content}])
        large = await client.ask("x" * 1_100_000)
        larger = await client.ask("x" * 6_000_000)
    assert result["output"][0]["content"][0]["text"] == "Large."
    assert [large.status_code, larger.status_code] == [413, 413]
    assert large.json()["error"]["code"] == "request_too_large"


# Rejected requests


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer wrong", f"Basic {API_KEY}", "Bearer ünicode"]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", COMPLETIONS), ("POST", RESPONSES), ("GET", f"{RESPONSES}/x"), ("GET", "/v1/models")],
)
async def test_without_the_key_nothing_is_answered(
    setup: ApiSetup, authorization: str, method: str, path: str
) -> None:
    async with setup.open() as client:
        headers = {"Authorization": authorization.encode()}
        answer = await client.http.request(method, path, headers=headers, content=b"{}")
    assert answer.status_code == 401
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
    assert API_KEY not in answer.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"\xff", "invalid_json"),
        (b"{}", "missing_required_parameter"),
        (b'{"messages": "hi", "input": 5}', "missing_required_parameter"),
        (b'{"messages": [{"role": "system", "content": "x"}], "input": [{"role": "system"}]}',
         "invalid_value"),
        (b'{"messages": [{"role": "user"}], "input": "x", "model": 5}', "invalid_type"),
        (b'{"messages": [{"role": "user"}], "input": "x", "user": "a\\nb"}', "invalid_value"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [COMPLETIONS, RESPONSES])
async def test_unreadable_input_is_rejected_with_a_reason(
    setup: ApiSetup, path: str, body: bytes, code: str
) -> None:
    async with setup.open() as client:
        answer = await client.http.post(path, content=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert error["message"]


async def test_a_missing_resource_is_not_found(setup: ApiSetup) -> None:
    async with setup.open() as client:
        answer = await client.http.get(f"{RESPONSES}/resp_none")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_a_request_that_cannot_be_stored_must_be_repeated(setup: ApiSetup) -> None:
    async def full(_event: MessageEvent) -> None:
        raise OSError("the disk is full")

    http_server = setup.http_server
    adapter = ApiAdapter(setup.context())
    await adapter.connect(full)
    headers = {"Authorization": f"Bearer {API_KEY}"}
    async with httpx2.AsyncClient(base_url=http_server.url, headers=headers) as http:
        results = [
            await ApiClient(http, None).ask("hi", headers=session_headers("s")) for _ in range(2)
        ]
    await adapter.disconnect()
    await http_server.close()
    assert [item.status_code for item in results] == [503, 503]
    assert results[0].json()["error"]["code"] == "not_kept"
    assert results[0].headers["retry-after"]


@pytest.mark.parametrize(
    ("host", "key", "is_fine"),
    [
        ("127.0.0.1", "short", True),
        ("localhost", "short", True),
        ("::1", "short", True),
        ("192.0.2.1", "short", False),
        ("192.0.2.1", API_KEY, True),
        ("192.0.2.1", "fifteen-letters", False),
        ("127.0.0.1", "", False),
    ],
)
def test_a_key_has_to_be_long_where_others_can_reach_it(
    setup: ApiSetup, host: str, key: str, is_fine: bool
) -> None:
    setup.http_server, setup.secrets["API_SERVER_KEY"] = HttpServer(host, 0), key
    if is_fine:
        make(setup.context())
        return
    with pytest.raises(PlatformRefusedError, match="API_SERVER_KEY"):
        PlatformRegistry().create_adapter("api_server", setup.context())


# Documentation


async def test_every_route_that_is_served_is_documented(setup: ApiSetup, db: SessionDB) -> None:
    http_server = setup.http_server
    api = ApiAdapter(setup.context())
    setup.extra["routes"] = {"ci": {"prompt": "{payload}"}}
    webhook = WebhookAdapter(setup.context()._replace(secret=lambda _name: "x" * 20))
    for adapter in (api, webhook):
        await adapter.connect(lambda _event: asyncio.sleep(0))
    connections = Connections(lambda *_message: asyncio.sleep(0), lambda: None)
    facts = LiveFacts(db, connections, Supervisor(), RunningTurns(0))
    watching = HealthEndpoints(db, GatewayMetrics(), facts)
    served = [
        *watching.routes(),
        *(item for routes in http_server._routes.values() for item in routes),
    ]
    await api.disconnect()
    await webhook.disconnect()
    await http_server.close()
    documented = set(re.findall(r"^### `(\w+) (\S+)`$", PAGE.read_text("utf-8"), re.MULTILINE))
    results = {
        (next(iter(item.methods - {"HEAD"})), item.path)  # type: ignore[attr-defined]
        for item in served
        if "{path:path}" not in item.path  # type: ignore[attr-defined] - for unknown paths
    }
    assert documented == results
