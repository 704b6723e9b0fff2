"""Scripted models: what they stream, and where their files are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_agent.events import Reply, TextDelta
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.scripted import ModelScript, ScriptedProvider
from hermes_agent.turn_control import Cancel
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.errors import ConfigError
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{calls: [{name: terminal}]}", []),
        ("{say: a b}", ["a ", "b"]),
        ("{say: 'a  b '}", ["a ", " ", "b "]),
    ],
)
def test_no_piece_of_an_answer_is_empty(step: str, expected: list[str]) -> None:
    provider = ScriptedProvider(ModelScript.parse(f"steps: [{step}]"))
    *events, last = provider.stream(ModelRequest([], []), Cancel())
    assert [event.text for event in events if isinstance(event, TextDelta)] == expected
    assert isinstance(last, Reply)


def test_a_script_is_looked_for_in_the_folder_of_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan.yaml").write_text("steps: [{say: As planned.}]")
    monkeypatch.chdir("/")  # as the daemon
    with SessionDB() as db:
        bundle = agent_factory.build_agent(
            db, FixedPrompter(), ConversationOptions(model="script:plan.yaml", cwd=tmp_path)
        )
        list(bundle.agent.turn("go"))
        texts = [row["content"] for row in db.get_messages(bundle.agent.session_id)]
        bundle.close()
    assert texts == ["go", "As planned."]


def test_a_script_that_is_missing_is_named(
    hermes: Hermes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="gone"):
        ModelScript.load(tmp_path / "gone.yaml")
    monkeypatch.chdir(tmp_path)
    done = hermes("chat", "-q", "hi", "--model", "script:gone.yaml")
    assert done.code == 2
    assert f"script not found: {tmp_path / 'gone.yaml'}" in done.err
