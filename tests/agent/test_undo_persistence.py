"""Undone and compacted messages stay that way when a session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEPS = "[{say: A1}, {say: A2}, {say: A3}, {say: A4}]"


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
    conversation.leave("tui_close")
    assert texts(conversation) == expected
