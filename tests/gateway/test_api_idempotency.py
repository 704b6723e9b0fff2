"""Repeated API requests: after a restart, a kill, a disconnect; and while a turn runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from gateway import status
from gateway.platforms.api_server.adapter import ApiAdapter
from gateway.platforms.api_server.exchanges import AnswerCache, StoredAnswer
from gateway.platforms.api_server.requests import token_of
from gateway.platforms.base import OutgoingMessage
from gateway.process.runner import AdapterMemory
from hermes_core.config.file import ConfigFile
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
from support.gateway_process import GatewayProcess
from support.gateways import conversation_texts, outbox_texts
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

GUARDED = "[{calls: [{name: terminal, arguments: {command: rm -rf x}}]}, {say: Done.}]"


@pytest.fixture
def setup(db: SessionDB, tmp_path: Path) -> ApiSetup:
    return ApiSetup(db, tmp_path)


# Asking again


async def test_a_repeated_request_gets_the_same_answer_without_a_second_turn(
    setup: ApiSetup, answering: Any
) -> None:
    server = answering("[{say: First.}, {say: Second.}]")
    key = {"Idempotency-Key": "k 1"}
    async with setup.open() as client:
        results = [await client.ask("hi", headers=key) for _ in range(3)]
        joined = await asyncio.gather(
            *(
                client.ask("yo", headers=session_headers("s", **{"Idempotency-Key": "k 2"}))
                for _ in range(3)
            )
        )
        other = await client.ask("something else", headers=key)
    assert [completion_text(item) for item in results] == ["First."] * 3
    assert [completion_text(item) for item in joined] == ["Second."] * 3
    assert len({item.json()["id"] for item in results}) == 1
    assert len(server.requests) == 2
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")


async def test_after_a_restart_a_repeated_request_gets_the_answer_it_got(
    setup: ApiSetup, answering: Any
) -> None:
    server = answering("[{say: First.}, {say: Second.}]")
    key = {"Idempotency-Key": "k1"}
    async with setup.open() as client:
        before = await client.ask("hi", headers=key)
    async with setup.open() as client:
        after = await client.ask("hi", headers=key)
    assert completion_text(before) == completion_text(after) == "First."
    assert before.headers["x-hermes-session"] == after.headers["x-hermes-session"]
    assert len(server.requests) == 1


async def test_a_turn_cut_off_by_a_restart_answers_a_repeated_request(
    setup: ApiSetup, answering: Any
) -> None:
    server = answering("[{say: one two three four five six, pause: 0.3}, {say: After all.}]")
    key = {"Idempotency-Key": "k1"}
    async with setup.open(drain=0) as client:
        request_task = asyncio.create_task(client.ask("hi", headers=key))
        await async_wait_until(lambda: server.requests)
        await client.service.stop(0)
        cut = await request_task
    async with setup.open() as client:
        after = await client.ask("hi", headers=key)
    assert (cut.status_code, cut.json()["error"]["code"]) == (503, "restarting")
    assert cut.headers["retry-after"]
    assert "After all." in completion_text(after)
    texts = conversation_texts(setup.db, after.headers["x-hermes-session"], "api_server")
    assert texts.count("hi") == 1


async def test_an_answer_waits_for_a_disconnected_client(setup: ApiSetup, answering: Any) -> None:
    server = answering(SLOW_STEPS)
    key = {"Idempotency-Key": "k1"}
    body = {"messages": [{"role": "user", "content": "count"}], "stream": True}
    async with setup.open() as client:
        async with client.http.stream("POST", COMPLETIONS, json=body, headers=key) as answer:
            async for line in answer.aiter_lines():
                if "one" in line:
                    break
        await async_wait_until(lambda: not client.service.conversations.all_running())
        again = await client.ask("count", headers=key)
    assert completion_text(again) == "one two three four five six"
    assert len(server.requests) == 1


async def test_a_complete_answer_waits_for_a_disconnected_client(
    setup: ApiSetup, answering: Any
) -> None:
    server = answering(SLOW_STEPS)
    key = {"Idempotency-Key": "k1"}
    async with setup.open() as client:
        request_task = asyncio.create_task(client.ask("count", headers=key))
        await async_wait_until(client.service.conversations.all_running)
        request_task.cancel()
        await asyncio.gather(request_task, return_exceptions=True)
        again = await client.ask("count", headers=key)
    assert completion_text(again) == "one two three four five six"
    assert len(server.requests) == 1


async def test_an_answer_that_takes_too_long_is_stored(setup: ApiSetup, answering: Any) -> None:
    setup.extra["answer_seconds"] = 0.2
    answering("[{say: At last., hang: 1}]")
    async with setup.open() as client:
        late = await client.ask("hi", headers={"Idempotency-Key": "k1"})
        error = late.json()["error"]
        response = f"{RESPONSES}/resp_{token_of('k1')}"
        waiting = (await client.http.get(response)).json()
        await async_wait_until(
            lambda: outbox_texts(setup.db) and not setup.db.chats.mail_counts()["outbox"]
        )
        data = (await client.http.get(response)).json()
    assert (late.status_code, error["type"], error["code"]) == (504, "server_error", "timeout")
    assert waiting["status"] == "in_progress"
    assert data["output"][0]["content"][0]["text"] == "At last."


async def test_the_latest_answers_are_stored_and_the_oldest_dropped(db: SessionDB) -> None:
    memory = AdapterMemory(db, "api_server")
    answers = AnswerCache(memory, max_answers=3)
    for name in ("a", "b", "c", "a", "d"):
        await answers.keep(StoredAnswer(name, "chat", f"text {name}"))
    for cache in (answers, AnswerCache(memory, max_answers=3)):
        results = [await cache.find(name) for name in ("a", "b", "c", "d")]
        assert [item and item.text for item in results] == [None, "text b", "text c", "text d"]


async def test_an_answer_without_a_waiting_client_is_accepted_and_stored(setup: ApiSetup) -> None:
    adapter = ApiAdapter(setup.context())
    result = await adapter.send(OutgoingMessage("c1", "Here.", "inbox:1:0", reply_to="m1"))
    assert result.success
    assert (await adapter.send(OutgoingMessage("c1", "A note.", "note:1"))).success
    results = await AnswerCache(AdapterMemory(setup.db, "api_server")).find(token_of("m1"))
    assert results is not None
    assert (results.text, results.chat_id) == ("Here.", "c1")


async def request_until_answered(number: int) -> str:
    """Repeat a request until it is answered, across restarts of the gateway."""
    headers = {"Authorization": f"Bearer {API_KEY}", **session_headers(f"s{number}")}
    headers["Idempotency-Key"] = f"k{number}"
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http,
    ):
        while True:
            url = (status.read_runtime_status() or {}).get("http_url") or "http://127.0.0.1:9"
            try:
                answer = await ApiClient(http, None).ask(
                    f"number {number}", url=f"{url}{COMPLETIONS}"
                )
            except httpx2.HTTPError:
                answer = None
            if answer is not None and answer.status_code == 200:
                return completion_text(answer)
            await asyncio.sleep(0.05)


async def test_a_gateway_that_is_killed_again_and_again_answers_each_request_once(
    db: SessionDB, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_SERVER_KEY", API_KEY)
    ConfigFile.of_home().set("gateway.http_port", "0")
    ConfigFile.of_home().set("gateway.attempts", "10")
    server = answering(f"[{', '.join(['{say: A slow answer., pause: 0.2}'] * 20)}]")
    gateway = GatewayProcess()
    request_task = [asyncio.create_task(request_until_answered(number)) for number in range(8)]
    for kill in range(3):
        gateway.start()
        await async_wait_until(lambda kill=kill: len(server.requests) > kill * 4)
        gateway.kill()
    gateway.start()
    result = await asyncio.gather(*request_task)
    again = [await request_until_answered(number) for number in range(8)]
    gateway.stop()
    assert result == again
    assert all("slow answer" in item or item.startswith("You said: number") for item in result)
    for number in range(8):
        assert conversation_texts(db, f"s{number}", "api_server").count(f"number {number}") == 1


# While a turn runs


async def test_a_question_of_the_agent_is_the_answer_and_the_next_request_answers_it(
    setup: ApiSetup, answering: Any
) -> None:
    answering(GUARDED)
    async with setup.open() as client:
        approval_prompt = await client.ask(
            "clean up", headers=session_headers("s", **{"Idempotency-Key": "k1"})
        )
        denied = await client.ask("/deny", headers=session_headers("s"))
        after = await client.ask(
            "clean up", headers=session_headers("s", **{"Idempotency-Key": "k1"})
        )
    assert "/approve" in completion_text(approval_prompt)
    assert completion_text(denied) == completion_text(after) == "Done."


async def test_stop_stops_the_turn_of_its_session(setup: ApiSetup, answering: Any) -> None:
    answering("[{say: one two three four five six seven eight, pause: 0.3}]")
    async with setup.open() as client:
        request_task = asyncio.create_task(client.ask("count", headers=session_headers("s")))
        await async_wait_until(client.service.conversations.all_running)
        stopped = await client.ask("/stop", headers=session_headers("s"))
        answer = await request_task
    assert "(Stopped.)" in completion_text(answer)
    assert completion_text(stopped) == completion_text(answer)
