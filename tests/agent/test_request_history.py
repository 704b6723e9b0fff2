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
from support.scripted import model, serving
from support.shown import Sent, again, assert_goes_on, requests, said, serialised, shown
from support.talks import Person

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.conftest import Scene
    from hermes_agent.events import Event
    from hermes_agent.providers.scripted_server import ScriptServer

STEPS = "[{say: A1}, {say: A2}, {say: A3}, {say: A4}]"


class Story:
    """A conversation that is closed after every step and opened again for the next."""

    def __init__(self, server: ScriptServer, folder: Path) -> None:
        self.server = server
        self._wish = ConversationOptions(model=model(server), cwd=folder)
        self.session_id: str | None = None

    def at(self, desk_does: Any) -> Any:
        """Sit down, do one thing, get up."""
        with SessionDB() as db:
            conversation = Conversation(
                db, Person(), self._wish._replace(session_id=self.session_id)
            )
            done = desk_does(conversation)
            self.session_id = conversation.session_id
            conversation.leave("cli_close")
        return done

    def ask(self, text: str) -> Sent:
        """Say something; what was shown of the turn."""
        return list(self.at(lambda conversation: shown(text, conversation.send(text))))

    def sent(self, number: int = -1) -> Sent:
        return list(self.server.requests[number]["messages"])

    def assert_sent(self, *messages: dict[str, Any]) -> None:
        """The last request: the prompt of the first, then these."""
        prompt = self.sent(0)[0]
        assert prompt["role"] == "system"
        assert serialised(self.sent()) == serialised([prompt, *messages])


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with serving() as start:
        yield Story(start(STEPS), tmp_path)


def test_after_an_orderly_end(story: Story) -> None:
    answer = story.ask("one")
    two = story.ask("two")
    story.ask("three")
    story.assert_sent(*answer, *two, said("three"))
    assert_goes_on(story.sent(0), story.sent(1))
    assert_goes_on(story.sent(1), story.sent(2))


def test_after_an_undo_what_was_taken_back_is_not_sent(story: Story) -> None:
    answer = story.ask("one")
    story.ask("two")
    story.at(Conversation.undo)
    story.ask("three")
    story.assert_sent(*answer, said("three"))


def test_after_undo_and_redo_it_is_as_before(story: Story) -> None:
    answer = story.ask("one")
    two = story.ask("two")
    story.at(Conversation.undo)
    story.at(Conversation.redo)
    story.ask("three")
    story.assert_sent(*answer, *two, said("three"))
    assert_goes_on(story.sent(1), story.sent(2))


def test_after_a_retry_the_old_answer_is_not_sent(story: Story) -> None:
    answer = story.ask("one")
    story.ask("two")
    again = story.ask(story.at(Conversation.undo_last_prompt))
    story.assert_sent(*answer, said("two"))
    assert serialised(story.sent(1)) == serialised(story.sent(2))
    story.ask("three")
    story.assert_sent(*answer, *again, said("three"))


def test_a_branch_begins_as_its_parent_and_the_parent_stays_as_it_was(story: Story) -> None:
    answer = story.ask("one")
    parent = story.session_id
    story.at(Conversation.branch)
    assert story.session_id != parent
    two = story.ask("two, in the branch")
    story.assert_sent(*answer, said("two, in the branch"))
    story.ask("three, in the branch")
    story.assert_sent(*answer, *two, said("three, in the branch"))
    story.session_id = parent
    story.ask("two, in the parent")
    story.assert_sent(*answer, said("two, in the parent"))
    assert_goes_on(story.sent(0), story.sent(3))


def test_a_branch_from_the_middle_has_only_what_came_before(story: Story) -> None:
    answer = story.ask("one")
    story.ask("two")
    story.at(lambda conversation: conversation.branch("", conversation.prompts()[-1].message_id))
    story.ask("another two")
    story.assert_sent(*answer, said("another two"))


def test_tool_calls_and_results_are_sent_as_they_were_shown(tmp_path: Path) -> None:
    call = "{name: terminal, arguments: {command: echo ä}}"
    steps = f"[{{calls: [{call}]}}, {{say: Again., calls: [{call}]}}, {{say: Done.}}]"
    with serving() as start:
        story = Story(start(steps), tmp_path)
        seen = story.ask("go")
        assert [item["role"] for item in seen] == ["user", *["assistant", "tool"] * 2, "assistant"]
        story.ask("and?")
        story.assert_sent(*seen, said("and?"))
        for number in range(3):
            assert_goes_on(story.sent(number), story.sent(number + 1))


AWKWARD = [
    "  spaces around  ",
    "two\r\nlines\n",
    "tab\tand \x1b[31mred",
    "ä 世界 👩‍👩‍👧",
    '{"json": 1}',
]


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_words_come_back_as_they_were(scene: Scene, text: str) -> None:
    steps = json.dumps({"steps": [{"say": text, "think": text}, {"say": "."}]})
    first = scene.agent(steps)
    seen = shown(text, first.turn(text))
    assert seen[1]["content"] == text
    list(again(scene, first).turn("and?"))
    assert serialised(requests(scene)[1][1:]) == serialised([*seen, said("and?")])
    assert_goes_on(*requests(scene)[:2])


def test_after_a_request_that_failed(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: A1}, {fail: {status: 401}}, {say: A3}]")
    seen = shown("one", agent.turn("one"))
    seen += shown("two", agent.turn("two"))
    assert seen[-1] == said("two")
    list(again(scene, agent).turn("three"))
    assert serialised(requests(scene)[2][1:]) == serialised([*seen, said("three")])
    assert_goes_on(requests(scene)[1], requests(scene)[2])


def test_after_a_connection_that_broke(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: This much and, cut: true}, {say: A2}]")
    seen = shown("one", agent.turn("one"))
    assert seen[-1]["content"] == "This much and"
    list(again(scene, agent).turn("two"))
    assert serialised(requests(scene)[-1][1:]) == serialised([*seen, said("two")])


def test_after_an_interrupt(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: one two three four five six, pause: 0.1}, {say: A2}]")

    def stopped_at_three() -> Iterator[Event]:
        for event in agent.turn("count"):
            yield event
            if isinstance(event, TextDelta) and "three" in event.text:
                agent.interrupt()

    seen = shown("count", stopped_at_three())
    assert seen[-1]["content"].startswith("one two three")
    assert not seen[-1]["content"].endswith("six")
    list(again(scene, agent).turn("two"))
    assert serialised(requests(scene)[-1][1:]) == serialised([*seen, said("two")])


def test_results_that_come_out_of_order_are_sent_in_the_order_they_were_shown(
    scene: Scene,
) -> None:
    is_fast_done = threading.Event()

    def slow(_arguments: Any, _context: Any) -> str:
        is_fast_done.wait(30)
        return success(output="slow")

    def fast(_arguments: Any, _context: Any) -> str:
        return success(output="fast")

    tools = [Tool(name, "", {"type": "object"}, run) for name, run in
             (("slow", slow), ("fast", fast))]  # fmt: skip
    agent = scene.agent("steps: [{calls: [{name: slow}, {name: fast}]}, {say: Both.}]", *tools)

    def fast_first() -> Iterator[Event]:
        for event in agent.turn("go"):
            yield event
            if isinstance(event, ToolFinished):
                is_fast_done.set()

    seen = shown("go", fast_first())
    assert ["fast" in item["content"] for item in seen if item["role"] == "tool"] == [True, False]
    list(again(scene, agent).turn("and?"))
    sent = requests(scene)
    assert serialised(sent[2][1:]) == serialised([*seen, said("and?")])
    assert_goes_on(sent[0], sent[1])
    assert_goes_on(sent[1], sent[2])


def test_what_a_plugin_adds_stays_where_it_was_while_the_turn_goes_on(scene: Scene) -> None:
    scene.answers["pre_llm_call"] = lambda **_facts: {"context": "It is raining."}
    echo = Tool("echo", "", {"type": "object"}, lambda _arguments, _context: success())
    agent = scene.agent("steps: [{calls: [{name: echo}]}, {say: Fine.}]", echo)
    for event in agent.turn("go"):
        if isinstance(event, ToolFinished):
            agent.steer("but quickly")
        assert not isinstance(event, TurnFinished) or not event.error
    assert_goes_on(*requests(scene))
