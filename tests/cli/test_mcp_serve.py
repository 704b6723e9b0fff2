"""`hermes mcp serve`, through a real MCP client."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

READING = {"conversations_list", "conversations_search", "conversation_read", "channels_list"}


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


@asynccontextmanager
async def mcp_session(home: Path, *extra_arguments: str) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hermes_cli", "mcp", "serve", *extra_arguments],
        env={**os.environ, "HERMES_HOME": str(home)},
    )
    async with stdio_client(server) as pipes, ClientSession(*pipes) as session:
        await session.initialize()
        yield session


async def call_tool(session: ClientSession, name: str, **arguments: Any) -> Any:
    answer = await session.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    texts = [json.loads(item.text) for item in answer.content]  # type: ignore[union-attr]
    return texts if len(texts) != 1 else texts[0]


async def test_another_agent_lists_searches_and_reads(
    hermes_home: Path, conversation_id: str
) -> None:
    async with mcp_session(hermes_home) as session:
        tools = (await session.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        listed = await call_tool(session, "conversations_list")
        assert {item["id"] for item in listed} == {"s1", "s2"}
        only = await call_tool(session, "conversations_list", source="telegram")
        assert only["title"] == "Fruit"
        result = await call_tool(session, "conversations_search", query="kumquats")
        assert result["conversation"] == conversation_id
        read = await call_tool(session, "conversation_read", conversation="Fruit", limit=1)
        assert [message["text"] for message in read["messages"]] == ["where are the kumquats?"]
        rest = await call_tool(session, "conversation_read", conversation="s1", after=read["next"])
        assert [message["text"] for message in rest["messages"]] == ["In the bowl."]
        assert rest["next"] is None


async def test_missing_requirements_are_reported(hermes_home: Path, conversation_id: str) -> None:
    async with mcp_session(hermes_home) as session:
        answer = await session.call_tool("conversation_read", {"conversation": "nothing"})
        assert answer.is_error
        assert "nothing" in str(answer.content)
        refused = await session.call_tool("message_send", {"channel": "telegram:1", "text": "x"})
        assert refused.is_error


async def test_sending_has_to_be_switched_on(hermes_home: Path, conversation_id: str) -> None:
    async with mcp_session(hermes_home, "--allow-send") as session:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == READING | {"message_send"}
        for _ in range(2):
            sent = await call_tool(
                session, "message_send", channel="telegram:1", text="hi", key="k"
            )
        assert sent["channel"] == "telegram:1"
    with SessionDB(is_recovering=False) as db:
        (number,) = sent["kept_as"]
        reply = db.chats.reply(number)
        assert reply is not None
        assert reply.payload == {"text": "hi"}


def test_the_library_is_there_or_fetched(hermes: Any) -> None:
    assert "already installed" in hermes("mcp", "add").out
