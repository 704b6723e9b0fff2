"""A model is sent exactly what the user was shown, whatever happened to the conversation.

What was shown is taken from the events of the turns, what was sent from the requests that
a real server recorded; in between lie a real store and, for each question, a new agent.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.events import TextDelta, ToolFinished, TurnFinished
from hermes_agent.tools.base import Tool, success
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter
from support.model_servers import model_argument, model_servers
from support.rendered_history import (
    Messages,
    after_interruption,
    assert_extends,
    rendered_turn,
    reopen_agent,
    sent_messages,
    serialised,
    user_message,
)
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.conftest import Scene
    from hermes_agent.events import Event
    from support.scripted_server import ScriptServer

STEPS = "[{say: A1}, {say: A2}, {say: A3}, {say: A4}]"


class ReopenedConversation:
    """A conversation that is closed after every step and reopened for the next."""

    def __init__(self, server: ScriptServer, folder: Path) -> None:
        self.server = server
        self._options = ConversationOptions(model=model_argument(server), cwd=folder)
        self.session_id: str | None = None

    def run(self, action: Any) -> Any:
        """Open the conversation, run an action, close it."""
        with SessionDB() as db:
            conversation = Conversation(
                db, FixedPrompter(), self._options._replace(session_id=self.session_id)
            )
            result = action(conversation)
            self.session_id = conversation.session_id
            conversation.leave("cli_close")
        return result

    def ask(self, text: str) -> Messages:
        """Send a prompt; return the rendered turn."""
        return list(self.run(lambda conversation: rendered_turn(text, conversation.send(text))))

    def sent(self, number: int = -1) -> Messages:
        return list(self.server.requests[number]["messages"])

    def assert_sent(self, *messages: dict[str, Any]) -> None:
        """Assert that the last request has the first system prompt, then *messages*."""
        prompt = self.sent(0)[0]
        assert prompt["role"] == "system"
        assert serialised(self.sent()) == serialised([prompt, *messages])


@pytest.fixture
def reopened(tmp_path: Path) -> Iterator[ReopenedConversation]:
    with model_servers() as start:
        yield ReopenedConversation(start(STEPS), tmp_path)


def test_after_an_orderly_end(reopened: ReopenedConversation) -> None:
    answer = reopened.ask("one")
    two = reopened.ask("two")
    reopened.ask("three")
    reopened.assert_sent(*answer, *two, user_message("three"))
    assert_extends(reopened.sent(0), reopened.sent(1))
    assert_extends(reopened.sent(1), reopened.sent(2))


def test_undone_messages_are_not_sent(reopened: ReopenedConversation) -> None:
    answer = reopened.ask("one")
    reopened.ask("two")
    reopened.run(Conversation.undo)
    reopened.ask("three")
    reopened.assert_sent(*answer, user_message("three"))


def test_after_undo_and_redo_it_is_as_before(reopened: ReopenedConversation) -> None:
    answer = reopened.ask("one")
    two = reopened.ask("two")
    reopened.run(Conversation.undo)
    reopened.run(Conversation.redo)
    reopened.ask("three")
    reopened.assert_sent(*answer, *two, user_message("three"))
    assert_extends(reopened.sent(1), reopened.sent(2))


def test_after_a_retry_the_old_answer_is_not_sent(reopened: ReopenedConversation) -> None:
    answer = reopened.ask("one")
    reopened.ask("two")
    again = reopened.ask(reopened.run(Conversation.undo_last_prompt))
    reopened.assert_sent(*answer, user_message("two"))
    assert serialised(reopened.sent(1)) == serialised(reopened.sent(2))
    reopened.ask("three")
    reopened.assert_sent(*answer, *again, user_message("three"))


def test_a_branch_starts_with_its_parents_history_and_leaves_the_parent_unchanged(
    reopened: ReopenedConversation,
) -> None:
    answer = reopened.ask("one")
    parent = reopened.session_id
    reopened.run(Conversation.branch)
    assert reopened.session_id != parent
    two = reopened.ask("two, in the branch")
    reopened.assert_sent(*answer, user_message("two, in the branch"))
    reopened.ask("three, in the branch")
    reopened.assert_sent(*answer, *two, user_message("three, in the branch"))
    reopened.session_id = parent
    reopened.ask("two, in the parent")
    reopened.assert_sent(*answer, user_message("two, in the parent"))
    assert_extends(reopened.sent(0), reopened.sent(3))


def test_a_branch_from_the_middle_has_only_earlier_messages(reopened: ReopenedConversation) -> None:
    answer = reopened.ask("one")
    reopened.ask("two")
    reopened.run(
        lambda conversation: conversation.branch("", conversation.prompts()[-1].message_id)
    )
    reopened.ask("another two")
    reopened.assert_sent(*answer, user_message("another two"))


def test_tool_calls_and_results_are_sent_as_they_were_shown(tmp_path: Path) -> None:
    call = "{name: terminal, arguments: {command: echo ä}}"
    steps = f"[{{calls: [{call}]}}, {{say: Again., calls: [{call}]}}, {{say: Done.}}]"
    with model_servers() as start:
        reopened = ReopenedConversation(start(steps), tmp_path)
        rendered = reopened.ask("go")
        assert [message["role"] for message in rendered] == [
            "user",
            *["assistant", "tool"] * 2,
            "assistant",
        ]
        reopened.ask("and?")
        reopened.assert_sent(*rendered, user_message("and?"))
        for number in range(3):
            assert_extends(reopened.sent(number), reopened.sent(number + 1))


AWKWARD_TEXTS = [
    "  spaces around  ",
    "two\r\nlines\n",
    "tab\tand \x1b[31mred",
    "ä 世界 👩‍👩‍👧",
    '{"json": 1}',
]


@pytest.mark.parametrize("text", AWKWARD_TEXTS)
def test_awkward_texts_are_sent_unchanged(scene: Scene, text: str) -> None:
    steps = json.dumps({"steps": [{"say": text, "think": text}, {"say": "."}]})
    first = scene.agent(steps)
    rendered = rendered_turn(text, first.turn(text))
    assert rendered[1]["content"] == text
    list(reopen_agent(scene, first).turn("and?"))
    assert serialised(sent_messages(scene)[1][1:]) == serialised([*rendered, user_message("and?")])
    assert_extends(*sent_messages(scene)[:2])


def test_after_a_request_that_failed(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: A1}, {fail: {status: 401}}, {say: A3}]")
    rendered = rendered_turn("one", agent.turn("one"))
    rendered += rendered_turn("two", agent.turn("two"))
    assert rendered[-1] == user_message("two")
    list(reopen_agent(scene, agent).turn("three"))
    sent = sent_messages(scene)
    joined = user_message("two\n\nthree")  # providers refuse two prompts in a row
    assert serialised(sent[2][1:]) == serialised([*rendered[:-1], joined])
    assert_extends(sent[1][:-1], sent[2])


def test_after_a_lost_connection(scene: Scene) -> None:
    cut = ", ".join(["{say: This much and, cut: true}"] * 4)
    agent = scene.agent(f"steps: [{cut}, {{say: A2}}]")
    rendered = rendered_turn("one", agent.turn("one"))
    assert rendered[-1]["content"] == "This much and"
    list(reopen_agent(scene, agent).turn("two"))
    sent = sent_messages(scene)[-1][1:]
    assert serialised(sent) == serialised([*rendered, after_interruption("two")])


def test_after_an_interrupt(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: one two three four five six, pause: 0.1}, {say: A2}]")

    def stopped_at_three() -> Iterator[Event]:
        for event in agent.turn("count"):
            yield event
            if isinstance(event, TextDelta) and "three" in event.text:
                agent.interrupt()

    rendered = rendered_turn("count", stopped_at_three())
    assert rendered[-1]["content"].startswith("one two three")
    assert not rendered[-1]["content"].endswith("six")
    list(reopen_agent(scene, agent).turn("two"))
    sent = sent_messages(scene)[-1][1:]
    assert serialised(sent) == serialised([*rendered, after_interruption("two")])


def test_results_of_calls_that_run_together_are_shown_and_sent_in_the_order_of_the_calls(
    scene: Scene,
) -> None:
    is_fast_done = threading.Event()

    def slow(_arguments: Any, _context: Any) -> str:
        is_fast_done.wait(PATIENCE_SECONDS)
        return success(output="slow")

    def fast(_arguments: Any, _context: Any) -> str:
        is_fast_done.set()
        return success(output="fast")

    tools = [Tool(name, "", {"type": "object"}, run, only_reads=lambda *_: True) for name, run in
             (("slow", slow), ("fast", fast))]  # fmt: skip
    agent = scene.agent("steps: [{calls: [{name: slow}, {name: fast}]}, {say: Both.}]", *tools)

    rendered = rendered_turn("go", agent.turn("go"))
    assert ["fast" in message["content"] for message in rendered if message["role"] == "tool"] == [
        False,
        True,
    ]
    list(reopen_agent(scene, agent, *tools).turn("and?"))
    sent = sent_messages(scene)
    assert serialised(sent[2][1:]) == serialised([*rendered, user_message("and?")])
    assert_extends(sent[0], sent[1])
    assert_extends(sent[1], sent[2])


def test_context_added_by_a_plugin_keeps_its_position_during_the_turn(scene: Scene) -> None:
    scene.answers["pre_llm_call"] = lambda **_fields: {"context": "It is raining."}
    echo = Tool("echo", "", {"type": "object"}, lambda _arguments, _context: success())
    agent = scene.agent("steps: [{calls: [{name: echo}]}, {say: Fine.}]", echo)
    for event in agent.turn("go"):
        if isinstance(event, ToolFinished):
            agent.steer("but quickly")
        assert not isinstance(event, TurnFinished) or not event.error
    assert_extends(*sent_messages(scene))
