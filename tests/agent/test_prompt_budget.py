"""The token cost of an empty request."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from hermes_agent.context.system_prompt import Situation, system_prompt
from hermes_agent.providers.scripted import ModelScript
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.clock

BYTES = 4  # to a token, roughly, of English and of JSON


def tokens(value: object) -> float:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return len(text.encode()) / BYTES


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
    assert sent["messages"][1:] == [{"role": "user", "content": "hello"}]
    assert tokens(sent["messages"][0]["content"]) + tokens(sent["tools"]) <= 1500


def test_the_prompt_contains_the_memory_within_its_limit(tmp_path: Path) -> None:
    memory = ["likes tea", *["x"] * 9_000]
    situation = Situation(datetime.now(UTC), tmp_path, memory=memory, user=["is called Kim"])
    text = system_prompt(situation)
    assert "likes tea" in text
    assert "is called Kim" in text
    assert str(tmp_path) in text
    assert len(text) < 10_000
