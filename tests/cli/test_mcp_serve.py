"""`hermes mcp serve`, through the official MCP client: over stdio, and over HTTP with keys."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from hermes_core import __version__
from hermes_core.media_store import of_home
from hermes_state import SessionDB
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client.session import ClientSession

READING = {
    "conversations_list", "conversations_search", "history_ask", "history_fixes", "why_line",
    "conversation_get",
    "messages_read", "attachments_fetch", "channels_list", "events_poll", "events_wait",
    "permissions_list_open",
}  # fmt: skip
WRITING = {"messages_send", "permissions_respond"}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50


@pytest.fixture
def conversation_id(hermes_home: Path) -> str:
    with SessionDB() as db:
        db.create_session("s1", "telegram", is_owned=False)
        db.append_message("s1", "user", "where are the kumquats?")
        db.append_message("s1", "assistant", "In the bowl.")
        db.set_session_title("s1", "Fruit")
        db.create_session("s2", "cli", is_owned=False)
        db.append_message("s2", "user", "something else")
    return "s1"


def arguments_of(*more: str) -> list[str]:
    return ["-m", "hermes_cli", "mcp", "serve", *more]


@asynccontextmanager
async def mcp_session(*extra_arguments: str) -> AsyncIterator[ClientSession]:
    # Half a second to import: not in every test process, at collection.
    from mcp.client.session import ClientSession  # noqa: PLC0415
    from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415

    server = StdioServerParameters(
        command=sys.executable, args=arguments_of(*extra_arguments), env=dict(os.environ)
    )
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def http_server(*extra_arguments: str) -> AsyncIterator[str]:
    """The URL of a server over HTTP."""
    command = arguments_of("--http", "127.0.0.1:0", *extra_arguments)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        match = re.search(r"http://\S+/mcp", line)
        assert match is not None, line
        yield match[0]
    finally:
        process.terminate()
        assert await process.wait() == 0


@asynccontextmanager
async def http_session(url: str, key: str) -> AsyncIterator[ClientSession]:
    from mcp.client.session import ClientSession  # noqa: PLC0415 - as above
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - as above

    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield session


async def call_tool(session: ClientSession, name: str, **arguments: Any) -> Any:
    answer = await session.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    texts = [json.loads(item.text) for item in answer.content]  # type: ignore[union-attr]
    return texts if len(texts) != 1 else texts[0]


async def refusal(session: ClientSession, name: str, **arguments: Any) -> str:
    answer = await session.call_tool(name, arguments)
    assert answer.is_error, answer.content
    return str(answer.content)


async def test_another_agent_lists_searches_and_reads(conversation_id: str) -> None:
    async with mcp_session() as session:
        tools = (await session.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        listed = await call_tool(session, "conversations_list")
        assert {item["id"] for item in listed} == {"s1", "s2"}
        only = await call_tool(session, "conversations_list", source="telegram")
        assert only["title"] == "Fruit"
        result = await call_tool(session, "conversations_search", query="kumquats")
        assert result["conversation"] == conversation_id
        question = "where did we put those kumquats?"
        cited = await call_tool(session, "history_ask", question=question, use_model=False)
        assert [each["session_id"] for each in cited["quotations"]] == [conversation_id]
        assert await call_tool(session, "history_fixes", error="no such error") == []
        described = await call_tool(session, "conversation_get", conversation="Fruit")
        assert (described["id"], described["message_count"]) == ("s1", 2)
        read = await call_tool(session, "messages_read", conversation="Fruit", limit=1)
        assert [message["text"] for message in read["messages"]] == ["where are the kumquats?"]
        rest = await call_tool(session, "messages_read", conversation="s1", after=read["next"])
        assert [message["text"] for message in rest["messages"]] == ["In the bowl."]
        assert rest["next"] is None
        assert "nothing" in await refusal(session, "messages_read", conversation="nothing")
        assert await refusal(session, "messages_send", channel="telegram:1", text="x")


async def test_writing_has_to_be_switched_on(conversation_id: str) -> None:
    async with mcp_session("--allow-send", "--allow-approve") as session:
        server = session.initialize_result
        assert server is not None
        assert server.server_info.version == __version__
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == READING | WRITING
        for name in WRITING:
            annotations = tools[name].annotations
            assert annotations is not None
            assert annotations.read_only_hint is False
        for _ in range(2):
            sent = await call_tool(
                session, "messages_send", channel="telegram:1", text="hi", key="k"
            )
        assert sent["channel"] == "telegram:1"
    with SessionDB(is_recovering=False) as db:
        (number,) = sent["outbox_ids"]
        reply = db.chats.reply(number)
        assert reply is not None
        assert reply.payload == {"text": "hi"}


async def test_events_and_attachments_and_questions(conversation_id: str) -> None:
    with SessionDB(is_recovering=False) as db:
        async with mcp_session("--allow-approve") as session:
            start = await call_tool(session, "events_poll")
            assert start["events"] == []
            quiet = await call_tool(
                session, "events_wait", cursor=start["cursor"], timeout_seconds=0
            )
            assert quiet["events"] == []
            waiting = asyncio.create_task(
                call_tool(session, "events_wait", cursor=start["cursor"], timeout_seconds=60)
            )
            reference = of_home().reference(of_home().keep(PNG, "a.png").path)
            picture = {"type": "image_url", "image_url": {"url": reference}}
            text = {"type": "text", "text": "look"}
            message = db.append_message("s1", "user", [text, picture])
            result = await waiting
            (event,) = result["events"]
            assert (event["kind"], event["conversation"]) == ("message", "s1")
            assert (event["message"], event["attachments"]) == (message, 1)
            again = await call_tool(session, "events_poll", cursor=start["cursor"])
            assert again["events"] == result["events"]  # until the cursor moves
            file = await call_tool(session, "attachments_fetch", conversation="s1", message=message)
            assert base64.b64decode(file["data"].partition(",")[2]) == PNG

            db.open_questions.add("q1", "key", "s1", "approval", "rm -rf x?", ["/deny"], 300)
            asked = await call_tool(session, "events_wait", cursor=result["cursor"])
            assert [event["question"] for event in asked["events"]] == ["q1"]
            listed = await call_tool(session, "permissions_list_open")
            assert (listed["question"], listed["text"]) == ("q1", "rm -rf x?")
            respond = {"question": "q1", "decision": "deny", "reason": "too risky"}
            assert "once" in await refusal(
                session, "permissions_respond", question="q1", decision="perhaps"
            )
            await call_tool(session, "permissions_respond", **respond)
            assert "q1" in await refusal(session, "permissions_respond", **respond)
            assert "cursor" in await refusal(session, "events_poll", cursor="x")
        assert db.open_questions.answer_of("q1") == "deny too risky"


async def test_over_http_each_key_has_the_rights_of_its_role(conversation_id: str) -> None:
    with SessionDB(is_recovering=False) as db:
        keys = {role: db.people.add_api_key(role, role) for role in ("owner", "member", "guest")}
        db.create_session("s3", "api_server", is_owned=False, chat_id="key:member/notes")
        db.append_message("s3", "user", "kumquats of a member")
    async with http_server("--allow-send", "--allow-approve") as url:
        async with httpx2.AsyncClient(timeout=PATIENCE_SECONDS) as http:
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                answer = await http.post(url, headers=headers, json={})
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        async with http_session(url, str(keys["owner"])) as session:
            listed = await call_tool(session, "conversations_list")
            assert {item["id"] for item in listed} == {"s1", "s2", "s3"}
            await call_tool(session, "messages_send", channel="telegram:1", text="hi")
            with SessionDB(is_recovering=False) as db:
                db.open_questions.add("q1", "key", "s1", "approval", "rm?", [], 300)
            await call_tool(session, "permissions_respond", question="q1", decision="once")
        async with http_session(url, str(keys["member"])) as session:
            start = await call_tool(session, "events_poll")
            listed = await call_tool(session, "conversations_list")
            assert listed["id"] == "s3"
            hits = await call_tool(session, "conversations_search", query="kumquats")
            assert hits["conversation"] == "s3"
            for name in ("messages_read", "conversation_get"):
                assert "s1" in await refusal(session, name, conversation="s1")
            with SessionDB(is_recovering=False) as db:
                db.append_message("s1", "user", "of the owner")
                db.append_message("s3", "user", "of the member")
            result = await call_tool(session, "events_poll", cursor=start["cursor"])
            assert [event["text"] for event in result["events"]] == ["of the member"]
            respond = {"question": "q", "decision": "once"}
            assert "role" in await refusal(session, "permissions_respond", **respond)
            assert "role" in await refusal(session, "permissions_list_open")
            assert "role" in await refusal(session, "channels_list")
            assert "role" in await refusal(
                session, "messages_send", channel="telegram:1", text="hi"
            )
        async with http_session(url, str(keys["guest"])) as session:
            assert "role" in await refusal(session, "conversations_list")
            assert "role" in await refusal(session, "events_poll")
            assert await refusal(session, "messages_read", conversation="s3")


def test_a_wrong_address_is_reported(hermes: Any) -> None:
    result = hermes("mcp", "serve", "--http", "8650")
    assert result.code == 2
    assert "HOST:PORT" in result.err


def test_the_library_is_there_or_fetched(hermes: Any) -> None:
    assert "already installed" in hermes("mcp", "add").out
