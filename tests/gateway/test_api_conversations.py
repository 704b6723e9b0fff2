"""The API: which conversation a request continues, and the instructions of clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.api_server.requests import token_of
from support.api_setup import (
    COMPLETIONS,
    RESPONSES,
    ApiClient,
    ApiSetup,
    completion_text,
    session_headers,
)
from support.gateways import conversation_texts
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

RETRY = {"x-stainless-retry-count": "1"}
GUARDED = "[{calls: [{name: terminal, arguments: {command: rm -rf x}}]}, {say: Done.}]"
LOOK = "{name: terminal, arguments: {command: echo hi}}"


@pytest.fixture
def setup(db: SessionDB, tmp_path: Path) -> ApiSetup:
    return ApiSetup(db, tmp_path)


class StatelessClient:
    """A client that sends its whole transcript each time."""

    def __init__(self, client: ApiClient, system: str = "") -> None:
        self.client = client
        self.messages: list[dict[str, Any]] = []
        self.system = [{"role": "system", "content": system}] if system else []
        self.session = ""

    async def say(self, text: str, **fields: Any) -> str:
        self.messages.append({"role": "user", "content": text})
        messages = [*self.system, *self.messages]
        answer = await self.client.ask("", messages=messages, **fields)
        result = completion_text(answer)
        self.session = answer.headers["x-hermes-session"]
        self.messages.append({"role": "assistant", "content": result})
        return result

    async def stream(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        stream = await self.client.stream(COMPLETIONS, {"messages": self.messages})
        result = "".join(
            chunk["choices"][0]["delta"].get("content", "") for _, chunk in stream[:-1]
        )
        self.messages.append({"role": "assistant", "content": result})
        return result

    def copy(self, count: int) -> StatelessClient:
        """Another chat of the client, with the first messages of this one."""
        other = StatelessClient(self.client)
        other.messages, other.system = self.messages[:count], self.system
        return other

    def stored(self) -> list[str]:
        return conversation_texts(self.client.service._db, self.session, "api_server")


def session_count(setup: ApiSetup) -> int:
    return setup.db.session_count()


def texts_of(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] != "system"]


# Growing transcripts


async def test_a_growing_transcript_is_one_conversation(setup: ApiSetup, answering: Any) -> None:
    server = answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client, "Be brief.")
        for number in range(10):
            await chat.say(f"number {number}")
    async with setup.open() as client:  # also after a restart
        chat.client = client
        for number in range(10, 20):
            await chat.say(f"number {number}")
    assert session_count(setup) == 1
    assert chat.stored() == texts_of(chat.messages)
    assert len(chat.messages) == 40
    sent = [texts_of(request["messages"]) for request in server.requests]
    assert texts_of(chat.messages[:-1]) in sent  # besides the reviews of the memory


async def test_a_streamed_answer_with_text_before_a_tool_call_is_recognised(
    setup: ApiSetup, answering: Any
) -> None:
    answering(f"[{{say: Let me look., calls: [{LOOK}], pause: 0.1}}, {{say: It is there.}}]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        assert await chat.stream("look") == "Let me look.\n\nIt is there."
        await chat.say("and now?")
    assert session_count(setup) == 1


async def test_an_edited_message_continues_a_branch(setup: ApiSetup, answering: Any) -> None:
    server = answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        for text in ("one", "two", "three"):
            await chat.say(text)
        edited = chat.copy(2)
        await edited.say("two, edited")
        await chat.say("four")
        await edited.say("five")
    assert session_count(setup) == 2
    assert chat.stored() == texts_of(chat.messages)
    assert edited.stored() == texts_of(edited.messages)
    assert texts_of(server.requests[-1]["messages"]) == texts_of(edited.messages[:-1])
    row = setup.db.lists.sessions(limit=1, order_by_last_active=True)[0]
    assert row.session.parent_session_id  # nothing is counted twice


async def test_a_regenerated_answer_is_a_branch_of_its_own(setup: ApiSetup, answering: Any) -> None:
    answering("[{say: A.}, {say: B.}, {say: C.}]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("one")
        again = chat.copy(2)
        await chat.say("two")
        await again.say("two")
    assert chat.session != again.session
    assert (chat.stored(), again.stored()) == (
        ["one", "A.", "two", "B."],
        ["one", "A.", "two", "C."],
    )


async def test_chats_with_the_same_beginning_are_not_mixed(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    async with setup.open() as client:
        first, second = StatelessClient(client), StatelessClient(client)
        for chat in (first, second):
            await chat.say("hi")
        for number in range(3):
            await first.say(f"first {number}")
            await second.say(f"second {number}")
    assert session_count(setup) == 2
    for chat in (first, second):
        assert chat.stored() == texts_of(chat.messages)


async def test_requests_that_continue_a_chat_at_once_do_not_share_it(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("hi")
        chats = [chat.copy(2) for _ in range(4)]
        await asyncio.gather(*(item.say(f"go {number}") for number, item in enumerate(chats)))
    assert len({item.session for item in chats}) == 4
    for item in chats:
        assert item.stored() == texts_of(item.messages)


async def test_a_conversation_of_another_key_is_not_continued(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    key = setup.db.people.add_api_key("ada", "member")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("hi")
        other = chat.copy(2)
        await other.say("go on", headers={"Authorization": f"Bearer {key}"})
    assert session_count(setup) == 2
    assert chat.stored() == ["hi", "You said: hi"]


async def test_a_transcript_from_elsewhere_is_quoted_once(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        chat.messages = [
            {"role": "user", "content": "My colour is blue."},
            {"role": "assistant", "content": "Noted."},
        ]
        await chat.say("Which is it?")
        await chat.say("Sure?")
    assert session_count(setup) == 1
    texts = chat.stored()
    assert "> user: My colour is blue." in texts[0]
    assert texts[2] == "Sure?"


async def test_a_partly_known_transcript_quotes_only_the_rest(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[{say: One.}, {say: A long answer.}, {say: Three.}]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("one")
        await chat.say("two")
        chat.messages[-1]["content"] = "A long"  # the user has stopped it
        await chat.say("three")
    texts = chat.stored()
    assert texts[:2] == ["one", "One."]
    assert "> assistant: A long" in texts[2]
    assert "> user: one" not in texts[2]
    assert texts[2].endswith("three")


async def test_a_deleted_conversation_does_not_come_back(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("one")
        (row,) = setup.db.lists.sessions(limit=2)
        setup.db.delete_session(row.id)
        await chat.say("two")
    assert "> user: one" in chat.stored()[0]
    assert setup.db.lists.sessions(limit=1)[0].id != row.id


async def test_a_failed_request_that_is_sent_again_continues_its_conversation(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[{say: One.}, {fail: {status: 401}}, {say: Two.}]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("one")
        messages = [*chat.messages, {"role": "user", "content": "two"}]
        failed = await client.ask("", messages=messages)
        await chat.say("two")
    assert failed.status_code == 401
    assert session_count(setup) == 1
    assert chat.stored() == ["one", "One.", "two", "Two."]


async def test_a_chat_that_was_idle_for_long_keeps_its_context(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client)
        await chat.say("one")
        routes = client.service._routes
        (entry,) = routes.list_sessions()
        routes.update_session(
            entry.session_key, updated_at=entry.updated_at.replace(year=entry.updated_at.year - 1)
        )
        await chat.say("two")
    assert chat.stored() == texts_of(chat.messages)


async def test_a_question_is_answered_in_the_conversation_of_its_transcript(
    setup: ApiSetup, answering: Any
) -> None:
    answering(GUARDED)
    async with setup.open() as client:
        chat = StatelessClient(client)
        assert "/approve" in await chat.say("clean up")
        assert await chat.say("/deny") == "Done."
        await chat.say("thanks")
    assert session_count(setup) == 1


async def test_responses_with_a_transcript_are_one_conversation(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[]")
    async with setup.open() as client:
        items: list[dict[str, Any]] = []
        for number in range(3):
            items.append({"role": "user", "content": f"number {number}"})
            result = await client.respond(items)
            items += result["output"]
    assert session_count(setup) == 1


# Instructions


@pytest.mark.parametrize("headers", [{}, session_headers("s")])
async def test_the_instructions_of_a_client_reach_the_model_and_can_change(
    setup: ApiSetup, answering: Any, headers: dict[str, str]
) -> None:
    server = answering("[]")
    async with setup.open() as client:
        chat = StatelessClient(client, "Answer in rhymes.")
        await chat.say("one", headers=headers)
        chat.system = [{"role": "developer", "content": "Answer in prose."}]
        await chat.say("two", headers=headers)
    async with setup.open() as client:
        chat.client, chat.system = client, []
        await chat.say("three", headers=headers)
    prompts = [str(request["messages"][0]["content"]) for request in server.requests]
    assert ["Answer in rhymes." in prompt for prompt in prompts] == [True, False, False]
    assert ["Answer in prose." in prompt for prompt in prompts] == [False, True, True]
    assert chat.stored() == texts_of(chat.messages)


async def test_the_instructions_of_a_response_reach_the_model(
    setup: ApiSetup, answering: Any
) -> None:
    server = answering("[]")
    async with setup.open() as client:
        await client.respond("hi", instructions="Answer in rhymes.")
    system, prompt = server.requests[0]["messages"]
    assert "Answer in rhymes." in system["content"]
    assert prompt["content"] == "hi"


# Retries of clients


async def test_the_retry_of_a_client_is_the_same_request(setup: ApiSetup, answering: Any) -> None:
    server = answering("[{say: one two three, pause: 0.2}]")
    async with setup.open() as client:
        task = asyncio.create_task(client.ask("count"))
        await async_wait_until(client.service.conversations.all_running)
        task.cancel()  # the client has lost its connection
        await asyncio.gather(task, return_exceptions=True)
        again = await client.ask("count", headers=RETRY)
        later = await client.ask("count", headers={"x-stainless-retry-count": "2"})
    assert completion_text(again) == completion_text(later) == "one two three"
    assert len(server.requests) == 1
    assert session_count(setup) == 1


async def test_a_retry_count_that_is_not_one_is_ignored(setup: ApiSetup) -> None:
    async with setup.open() as client:
        answer = await client.ask("/help", headers={"x-stainless-retry-count": "1" * 5000})
    assert answer.status_code == 200


async def test_a_retry_after_a_crash_is_the_same_request(setup: ApiSetup, answering: Any) -> None:
    server = answering("[{say: one two three, pause: 0.3}, {say: After all.}]")
    async with setup.open(drain=0) as client:
        task = asyncio.create_task(client.ask("count"))
        await async_wait_until(lambda: server.requests)
        await client.service.stop(0)
        assert (await task).status_code == 503
    async with setup.open() as client:
        again = await client.ask("count", headers=RETRY)
    assert "After all." in completion_text(again)
    assert session_count(setup) == 1


async def test_equal_requests_without_a_retry_are_two(setup: ApiSetup, answering: Any) -> None:
    server = answering("[]")
    async with setup.open() as client:
        answers = [
            await client.ask("hi"),
            await client.ask("hi"),
            await client.ask("ho", headers=RETRY),  # the first one has not arrived
        ]
        retries = [await client.ask("hi", headers=RETRY) for _ in range(2)]
    assert len(server.requests) == 3
    ids = [answer.json()["id"] for answer in answers]
    assert len(set(ids)) == 3
    assert [answer.json()["id"] for answer in retries] == ids[:2]  # each joins one


async def test_a_retry_of_a_failed_request_is_a_new_attempt(
    setup: ApiSetup, answering: Any
) -> None:
    answering("[{fail: {status: 401}}, {say: Better.}]")
    async with setup.open() as client:
        failed = await client.ask("hi")
        again = await client.ask("hi", headers=RETRY)
    assert failed.status_code == 401
    assert completion_text(again) == "Better."


async def test_an_idempotency_key_is_stronger_than_a_retry(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    async with setup.open() as client:
        await client.ask("hi", headers={"Idempotency-Key": "a"})
        other = await client.ask("hi", headers={"Idempotency-Key": "b", **RETRY})
        result = (await client.http.get(f"{RESPONSES}/resp_{token_of('b')}")).json()
    assert completion_text(other) == "You said: hi"
    assert result["status"] == "completed"
    assert session_count(setup) == 2


async def test_old_requests_are_deleted(setup: ApiSetup, answering: Any) -> None:
    answering("[]")
    async with setup.open() as client:
        await client.ask("hi")
    assert setup.db.api_requests.prune(1) == 0
    assert setup.db.api_requests.prune(-1) == 1
