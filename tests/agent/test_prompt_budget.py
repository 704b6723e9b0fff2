"""The token cost of an empty request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.context.window import system_prompt
from hermes_agent.providers.scripted import ModelScript
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.clock

CHARACTERS = 4  # to a token, roughly, of English and of JSON


def tokens(value: object) -> float:
    return len(value if isinstance(value, str) else json.dumps(value)) / CHARACTERS


def test_a_greeting_is_a_small_request(tmp_path: Path) -> None:
    with (
        ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server,
        SessionDB() as db,
    ):
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=tmp_path)
        bundle = agent_factory.build_agent(db, None, options)  # type: ignore[arg-type]
        list(bundle.agent.turn("hello"))
        bundle.close()
    sent = server.requests[0]
    assert tokens(sent["tools"]) < 1500
    assert tokens(sent["messages"][0]["content"]) < 1000
    assert tokens(sent) < 2500


def test_the_prompt_contains_the_memory_within_its_limit(tmp_path: Path) -> None:
    text = system_prompt(
        tmp_path, memory="likes tea\n" + "x\n" * 9_000, user="is called Kim", today="today"
    )
    assert "likes tea" in text
    assert "is called Kim" in text
    assert str(tmp_path) in text
    assert len(text) < 10_000
