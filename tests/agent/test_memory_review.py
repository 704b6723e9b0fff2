"""Looking back while nobody waits: memory is made, and the conversation stays what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.memory.files import MemoryFiles
from hermes_agent.memory.review import MAX_REQUESTS, ONLY_MEMORY, TASK, is_due, summary_line
from hermes_agent.tools.base import Tool, success
from hermes_agent.tools.memory import memory_tool
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.scripted import model, serving
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent

SAVE = """{calls: [
  {name: memory, arguments: {action: add, target: user, text: Likes tea.}},
  {name: terminal, arguments: {command: rm -r /}}]}"""

ONE_TURN = """
import sys
from pathlib import Path
from hermes_state import SessionDB
from hermes_conversation import agent_factory
wish = agent_factory.ConversationOptions(model=sys.argv[1], cwd=Path(sys.argv[2]))
talk = agent_factory.build_agent(SessionDB(), None, wish)
list(talk.agent.turn("hi"))
print("under way" if not talk.agent.wait_for_review(0.5) else "over")
"""


class Looked:
    """A conversation with a memory and a tool that must not be used, and what it told."""

    def __init__(self, scene: Scene, steps: str, **options: Any) -> None:
        self.scene = scene
        self.files = MemoryFiles()
        self.ran: list[str] = []
        options.setdefault("review_turns", 3)
        tools = (memory_tool(self.files), Tool("terminal", "Runs.", {}, self._run))
        self.agent: AIAgent = scene.agent(f"steps: [{steps}]", *tools, **options)
        self.told: list[str] = []
        self.agent.on_review = self.told.append

    def _run(self, arguments: dict[str, Any], context: Any) -> str:
        del context
        self.ran.append(str(arguments))
        return success()

    def talk(self, turns: int) -> None:
        for number in range(turns):
            list(self.agent.turn(f"Question {number}"))

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.scene.servers[-1].requests


def test_memory_is_made_of_every_few_turns_and_nothing_else_is_done(scene: Scene) -> None:
    looked = Looked(scene, f"{{say: A1}}, {{say: A2}}, {{say: A3}}, {SAVE}, {{say: done}}")
    looked.talk(3)
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)
    assert looked.files.entries("user") == ["Likes tea."]
    assert looked.told == ["Remembered: Likes tea."]
    assert looked.ran == []
    results = [
        request["content"]
        for request in looked.requests[4]["messages"]
        if request["role"] == "tool"
    ]
    assert any(ONLY_MEMORY in result for result in results)
    said = [text for _, text in scene.said(looked.agent)]
    assert said == ["Question 0", "A1", "Question 1", "A2", "Question 2", "A3"]


def test_what_is_read_begins_byte_for_byte_as_the_last_request(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}, {say: A2}, {say: A3}, {say: done}")
    scene.answers["pre_llm_call"] = lambda **_facts: "It rains."
    looked.talk(3)
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)
    last, review = looked.requests[2], looked.requests[3]
    end = [{"role": "assistant", "content": "A3"}, {"role": "user", "content": TASK}]
    assert json.dumps(review["messages"]) == json.dumps([*last["messages"], *end])
    assert json.dumps(review["tools"]) == json.dumps(last["tools"])
    assert looked.told == []


def test_its_tokens_are_counted(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}, {say: A2}, {say: A3}, {say: done}")
    looked.talk(3)
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)
    row = scene.db.get_session(looked.agent.session_id)
    assert row is not None
    assert row["api_call_count"] == 4


def test_turns_are_counted_in_the_history_so_that_another_process_goes_on(scene: Scene) -> None:
    first = Looked(scene, "{say: A1}, {say: A2}")
    first.talk(2)
    first.agent.close()
    second = Looked(scene, f"{{say: A3}}, {SAVE}, {{say: done}}", session_id=first.agent.session_id)
    second.talk(1)
    assert second.agent.wait_for_review(PATIENCE_SECONDS)
    assert second.told == ["Remembered: Likes tea."]


def test_neither_the_answer_nor_the_next_turn_waits(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}, {say: done, hang: 600}, {say: A2}", review_turns=1)
    looked.talk(1)
    wait_until(lambda: len(looked.requests) == 2)
    looked.talk(1)
    assert scene.said(looked.agent)[-1][1] == "A2"


def test_leaving_does_not_wait_for_it(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}, {say: done, hang: 600}", review_turns=1)
    looked.talk(1)
    looked.agent.close()
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)


def test_a_process_that_ends_takes_it_along(scene: Scene, tmp_path: Path) -> None:
    server = scene.server("steps: [{say: A1}, {say: done, hang: 600}]")
    result = subprocess.run(
        [sys.executable, "-c", ONE_TURN, model(server), str(tmp_path)],
        env={**os.environ, "HERMES_MEMORY_REVIEW_TURNS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert result.stdout == "under way\n", result.stderr


def test_a_model_that_never_stops_is_stopped(scene: Scene) -> None:
    looked = Looked(scene, ", ".join(["{say: A1}"] + [SAVE] * 20), review_turns=1)
    looked.talk(1)
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)
    assert len(looked.requests) == 1 + MAX_REQUESTS


@pytest.mark.parametrize(("turns", "reviewed"), [(3, 0), (4, 1)])
def test_the_end_of_a_conversation_is_reviewed_when_enough_was_said(
    scene: Scene, turns: int, reviewed: int
) -> None:
    answers = ", ".join(["{say: A1}"] * turns)
    looked = Looked(scene, f"{answers}, {{say: done, hang: 600}}", review_turns=10)
    looked.talk(turns)
    looked.agent.close()
    looked.agent.commit_memory_session([])  # does not wait for the model
    wait_until(lambda: len(looked.requests) == turns + reviewed)
    assert looked.agent.wait_for_review(0) is not bool(reviewed)


def test_an_end_that_kills_the_process_asks_nothing(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}", review_turns=10)
    looked.talk(4)
    looked.agent.reviews_at_end = False
    looked.agent.commit_memory_session([])
    assert looked.agent.wait_for_review(PATIENCE_SECONDS)
    assert len(looked.requests) == 4


def test_nought_switches_it_off(scene: Scene) -> None:
    looked = Looked(scene, "{say: A1}", review_turns=0)
    looked.talk(12)
    looked.agent.commit_memory_session([])
    assert len(looked.requests) == 12


def test_the_setting_says_after_how_many_turns(tmp_path: Path) -> None:
    ConfigFile.of_home().set("memory.review_turns", "2")
    with serving() as serve, SessionDB() as db:
        server = serve(f"[{{say: A1}}, {{say: A2}}, {SAVE}, {{say: done}}]")
        wish = ConversationOptions(model=model(server), cwd=tmp_path)
        talk = agent_factory.build_agent(db, None, wish)  # type: ignore[arg-type]
        results: list[str] = []
        talk.agent.on_review = results.append
        list(talk.agent.turn("one"))
        list(talk.agent.turn("two"))
        assert talk.agent.wait_for_review(PATIENCE_SECONDS)
        talk.close()
    assert results == ["Remembered: Likes tea."]
    assert MemoryFiles().entries("user") == ["Likes tea."]


def test_when_a_review_is_due() -> None:
    assert is_due(9, 10, 10)
    assert is_due(9, 11, 10), "something was said to the running turn"
    assert not is_due(10, 11, 10)
    assert not is_due(9, 10, 0)


def test_what_was_saved_is_one_line() -> None:
    entries = ["Likes\ntea.", "x" * 100, "c", "d", "e"]
    text = summary_line(entries)
    assert "\n" not in text
    assert text.startswith("Remembered: Likes tea.; xxx")
    assert text.endswith("…; c; and 2 more")
