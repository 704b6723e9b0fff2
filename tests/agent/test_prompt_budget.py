"""What every request costs before anything is said: little, and measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.context.system_prompt import system_prompt
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.providers.scripted_server import ScriptServer
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB

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
        wish = ConversationOptions(model=f"{server.base_url}#m", cwd=tmp_path)
        talk = agent_factory.build_agent(db, None, wish)  # type: ignore[arg-type]
        list(talk.agent.turn("hello"))
        talk.close()
    sent = server.requests[0]
    assert tokens(sent["tools"]) < 1500
    assert tokens(sent["messages"][0]["content"]) < 1000
    assert tokens(sent) < 2500


def test_the_prompt_holds_what_is_known_and_no_more_than_it_should(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n" + "x" * 20_000)
    text = system_prompt(tmp_path, memory="likes tea", user="is called Kim", today="today")
    assert "Use tabs." in text
    assert "likes tea" in text
    assert "is called Kim" in text
    assert str(tmp_path) in text
    assert len(text) < 10_000
    assert text == system_prompt(tmp_path, memory="likes tea", user="is called Kim", today="today")
