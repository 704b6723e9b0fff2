"""The messages of an open conversation are kept between turns, and read again after a change."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.context.window import PreparedMessages, as_sent, message_tokens
from hermes_state.messages.history import MessageRepository
from support.waiting import wait_until

if TYPE_CHECKING:
    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent

STEPS = "steps: [{say: A1}, {say: A2}, {say: A3}, {say: A4}]"


def talk(agent: AIAgent, *prompts: str) -> None:
    for prompt in prompts:
        list(agent.turn(prompt))


def sent_texts(scene: Scene) -> list[str]:
    """The texts of the last request, without the system prompt."""
    return [str(message["content"]) for message in scene.servers[-1].requests[-1]["messages"][1:]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions whose messages were read for the model."""
    found: list[str] = []
    real = MessageRepository.get_messages_as_conversation

    def counted(self: MessageRepository, session_id: str, *arguments: Any, **options: Any) -> Any:
        found.append(session_id)
        return real(self, session_id, *arguments, **options)

    monkeypatch.setattr(MessageRepository, "get_messages_as_conversation", counted)
    return found


def test_the_history_is_read_once(scene: Scene, reads: list[str]) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1", "Q2", "Q3")
    assert len(reads) == 1
    assert sent_texts(scene) == ["Q1", "A1", "Q2", "A2", "Q3"]
    assert [text for _, text in scene.messages(agent)] == ["Q1", "A1", "Q2", "A2", "Q3", "A3"]


def test_a_turn_commits_twice(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1")
    before = scene.db.engine.commits
    talk(agent, "Q2")
    assert scene.db.engine.commits == before + 2  # lease and prompt; answer, usage and release
    assert len(scene.db.usage.answers(agent.session_id)) == 2


def test_the_lease_is_free_after_the_turn(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1", "Q2")
    scene.db.leases.release(scene.db.leases.acquire(agent.session_id))


@pytest.mark.parametrize("change", ["undo", "undo and redo"])
def test_an_undo_elsewhere_in_the_process_is_seen(scene: Scene, change: str) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1", "Q2")
    scene.db.edits.undo(agent.session_id)
    if change == "undo":
        talk(agent, "Q3")
        assert sent_texts(scene) == ["Q1", "A1", "Q3"]
        return
    scene.db.edits.redo(agent.session_id)
    talk(agent, "Q3")
    assert sent_texts(scene) == ["Q1", "A1", "Q2", "A2", "Q3"]


def test_a_redo_after_a_kept_turn_is_seen(scene: Scene) -> None:
    """The number of rows and of rewinds is the same before and after a redo."""
    agent = scene.agent(STEPS)
    talk(agent, "Q1", "Q2")
    scene.db.edits.undo(agent.session_id)
    agent.conversation_store._messages = agent.conversation_store.history()
    scene.db.engine.write(agent.conversation_store.read_version)  # kept in the undone state
    scene.db.edits.redo(agent.session_id)
    talk(agent, "Q3")
    assert sent_texts(scene) == ["Q1", "A1", "Q2", "A2", "Q3"]


def test_a_change_by_another_program_is_seen(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1", "Q2")
    with closing(sqlite3.connect(scene.db.db_path)) as other:
        other.execute("UPDATE messages SET active = 0 WHERE content IN ('Q2', 'A2')")
        other.commit()
    talk(agent, "Q3")
    assert sent_texts(scene) == ["Q1", "A1", "Q3"]


def test_a_message_of_another_program_is_seen(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1")
    scene.db.append_message(agent.session_id, "user", "from elsewhere")
    talk(agent, "Q2")
    assert sent_texts(scene) == ["Q1", "A1", "from elsewhere\n\nQ2"]


def test_a_conversation_that_was_ended_is_reopened(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    talk(agent, "Q1")
    scene.db.end_session(agent.session_id, "done")
    talk(agent, "Q2")
    row = scene.db.get_session(agent.session_id)
    assert row is not None
    assert row["ended_at"] is None
    assert sent_texts(scene) == ["Q1", "A1", "Q2"]


def test_the_next_turn_after_a_failure_reads_the_history(scene: Scene, reads: list[str]) -> None:
    agent = scene.agent("steps: [{say: A1}, {fail: {status: 400}}, {say: A3}]")
    talk(agent, "Q1", "Q2", "Q3")
    assert len(reads) == 2
    assert sent_texts(scene) == ["Q1", "A1", "Q2\n\nQ3"]


def test_requests_use_one_connection(scene: Scene) -> None:
    agent = scene.agent(STEPS)
    pool = agent._provider.current._client._transport._pool
    for prompt in ("Q1", "Q2", "Q3", "Q4"):
        talk(agent, prompt)
        # Another thread reads the end of a body; only then is the connection used again.
        wait_until(lambda: all(connection.is_idle() for connection in pool.connections))
    # The window of the model is asked for on a connection of its own.
    assert scene.servers[-1].connections <= 2


@pytest.mark.parametrize("characters", [400, 1000])
def test_prepared_messages_are_those_of_a_fresh_preparation(characters: int) -> None:
    messages: list[dict[str, Any]] = []
    prepared = PreparedMessages()
    for number in range(30):
        messages.append({"role": "tool", "content": "x" * 100 * number, "tool_call_id": "1"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
        prepared.update(messages, characters)
        fresh = [as_sent(message, characters) for message in messages]
        assert prepared.messages == fresh
        assert prepared.tokens == sum(map(message_tokens, fresh))
    prepared.update(messages[:7], characters)  # after an undo
    assert prepared.messages == [as_sent(message, characters) for message in messages[:7]]
    prepared.update(messages, characters // 2)  # in a smaller window
    assert prepared.messages == [as_sent(message, characters // 2) for message in messages]
