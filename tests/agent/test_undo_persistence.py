"""Undone and compacted messages stay that way when a session ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.tools.base import Tool, success
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter
from support.model_servers import model_argument, model_servers
from tui_gateway.finalization import finalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent.conftest import Scene

STEPS = "[{say: A1}, {say: A2}, {say: A3}, {say: A4}]"
HELLO = "steps: [{say: Hello.}, {say: Again.}]"


@pytest.fixture
def conversation(tmp_path: Path) -> Iterator[Conversation]:
    with model_servers() as start, SessionDB() as db:
        result = Conversation(
            db,
            FixedPrompter(),
            ConversationOptions(model=model_argument(start(STEPS)), cwd=tmp_path),
        )
        yield result
        result.leave("cli_close")


def texts(conversation: Conversation) -> list[str]:
    return [row["content"] for row in conversation.db.get_messages(conversation.session_id)]


def close_session(conversation: Conversation) -> None:
    """End the session as the daemon does."""
    session: dict[str, Any] = {
        "agent": conversation.agent,
        "history": conversation.db.get_messages(conversation.session_id),
        "history_lock": threading.Lock(),
        "session_key": conversation.session_id,
    }
    assert finalize(session, "tui_close", lambda: conversation.db) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Conversation.undo, ["one", "A1"]),
        (Conversation.undo_last_prompt, ["one", "A1"]),
        (
            lambda conversation: (conversation.undo(), conversation.redo()),
            ["one", "A1", "two", "A2"],
        ),
        (
            lambda conversation: (conversation.undo(), list(conversation.send("two"))),
            ["one", "A1", "two", "A3"],
        ),
        (
            lambda conversation: conversation.branch("", conversation.prompts()[-1].message_id),
            ["one", "A1"],
        ),
    ],
)
def test_a_session_ends_with_the_rendered_messages(
    conversation: Conversation, change: Callable[[Conversation], object], expected: list[str]
) -> None:
    for text in ("one", "two"):
        list(conversation.send(text))
    change(conversation)
    close_session(conversation)
    assert texts(conversation) == expected


def test_a_snapshot_from_before_an_undo_restores_nothing(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    list(agent.turn("one"))
    list(agent.turn("two"))
    snapshot = list(agent._session_messages or [])
    scene.db.edits.undo(agent.session_id)
    agent._persist_session(snapshot)
    assert scene.messages(agent) == [("user", "one"), ("assistant", "Hello.")]


def test_repeated_messages_are_stored_twice(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    twice = [{"role": "user", "content": "again"}, {"role": "user", "content": "again"}]
    agent._persist_session(twice[:1])
    agent._persist_session(twice)
    agent._persist_session(twice)
    assert scene.messages(agent) == [("user", "again")] * 2


def test_rows_of_a_front_end_are_recognized(scene: Scene) -> None:
    """Such rows have no tool call ID."""
    tool = Tool(
        "look", "Look.", {"type": "object", "properties": {}}, lambda *_: success(output="")
    )
    agent = scene.agent("steps: [{calls: [{name: look}, {name: look}]}, {say: Done.}]", tool)
    list(agent.turn("go"))
    before = scene.rows(agent)
    rendered = [{name: row[name] for name in ("id", "role", "content")} for row in before]
    agent._persist_session(rendered)
    assert scene.rows(agent) == before


def test_a_row_with_a_known_id_and_other_text_is_a_new_message(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    list(agent.turn("one"))
    row_id = scene.rows(agent)[0]["id"]
    agent._persist_session([{"id": row_id, "role": "user", "content": "something else"}])
    assert scene.messages(agent)[-1] == ("user", "something else")
