"""Memory review in the background: entries are saved, the conversation is unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.memory.review import MAX_REQUESTS, ONLY_MEMORY, TASK, is_due, summary_line
from hermes_agent.tools.base import Tool, success
from hermes_agent.tools.memory import memory_tool
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.model_servers import model_argument, model_servers
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent

SAVE = """{calls: [
  {name: memory, arguments: {action: add, target: user, text: Likes tea., quotes: [I like tea]}},
  {name: terminal, arguments: {command: rm -r /}}]}"""

ONE_TURN = """
import sys
from pathlib import Path
from hermes_state import SessionDB
from hermes_conversation import agent_factory
options = agent_factory.ConversationOptions(model=sys.argv[1], cwd=Path(sys.argv[2]))
bundle = agent_factory.build_agent(SessionDB(), None, options)
list(bundle.agent.turn("hi"))
print("running" if not bundle.agent.wait_for_review(0.5) else "over")
"""


class ReviewedConversation:
    """A conversation with a memory, a tool that must not run, and the review notices."""

    def __init__(self, scene: Scene, steps: str, **options: Any) -> None:
        self.scene = scene
        self.memory = AgentMemory(scene.db)
        self.ran: list[str] = []
        options.setdefault("review_turns", 3)
        tools = (memory_tool(self.memory), Tool("terminal", "Runs.", {}, self._run))
        self.agent: AIAgent = scene.agent(f"steps: [{steps}]", *tools, **options)
        self.notices: list[str] = []
        self.agent.on_review = self.notices.append

    def _run(self, arguments: dict[str, Any], context: Any) -> str:
        del context
        self.ran.append(str(arguments))
        return success()

    def run_turns(self, turns: int) -> None:
        for number in range(turns):
            list(self.agent.turn(f"I like tea {number}"))

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.scene.servers[-1].requests


def test_a_review_saves_memory_and_runs_no_other_tool(scene: Scene) -> None:
    conversation = ReviewedConversation(
        scene, f"{{say: A1}}, {{say: A2}}, {{say: A3}}, {SAVE}, {{say: done}}"
    )
    conversation.run_turns(3)
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)
    assert conversation.memory.entries("user") == ["Likes tea."]
    assert conversation.notices == ["Remembered: Likes tea."]
    assert conversation.ran == []
    results = [
        request["content"]
        for request in conversation.requests[4]["messages"]
        if request["role"] == "tool"
    ]
    assert any(ONLY_MEMORY in result for result in results)
    texts = [text for _, text in scene.messages(conversation.agent)]
    assert texts == ["I like tea 0", "A1", "I like tea 1", "A2", "I like tea 2", "A3"]


def test_the_review_request_extends_the_last_request(scene: Scene) -> None:
    conversation = ReviewedConversation(scene, "{say: A1}, {say: A2}, {say: A3}, {say: done}")
    scene.answers["pre_llm_call"] = lambda **_fields: "It rains."
    conversation.run_turns(3)
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)
    last, review = conversation.requests[2], conversation.requests[3]
    end = [{"role": "assistant", "content": "A3"}, {"role": "user", "content": TASK}]
    assert json.dumps(review["messages"]) == json.dumps([*last["messages"], *end])
    assert json.dumps(review["tools"]) == json.dumps(last["tools"])
    assert conversation.notices == []


def test_the_tokens_of_a_review_are_counted(scene: Scene) -> None:
    conversation = ReviewedConversation(scene, "{say: A1}, {say: A2}, {say: A3}, {say: done}")
    conversation.run_turns(3)
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)
    row = scene.db.get_session(conversation.agent.session_id)
    assert row is not None
    assert row["api_call_count"] == 4


def test_turns_are_counted_across_processes(scene: Scene) -> None:
    first = ReviewedConversation(scene, "{say: A1}, {say: A2}")
    first.run_turns(2)
    first.agent.close()
    second = ReviewedConversation(
        scene, f"{{say: A3}}, {SAVE}, {{say: done}}", session_id=first.agent.session_id
    )
    second.run_turns(1)
    assert second.agent.wait_for_review(PATIENCE_SECONDS)
    assert second.notices == ["Remembered: Likes tea."]


def test_neither_the_answer_nor_the_next_turn_waits_for_a_review(scene: Scene) -> None:
    conversation = ReviewedConversation(
        scene, "{say: A1}, {say: done, hang: 600}, {say: A2}", review_turns=1
    )
    conversation.run_turns(1)
    wait_until(lambda: len(conversation.requests) == 2)
    conversation.run_turns(1)
    assert scene.messages(conversation.agent)[-1][1] == "A2"


def test_closing_does_not_wait_for_a_review(scene: Scene) -> None:
    conversation = ReviewedConversation(scene, "{say: A1}, {say: done, hang: 600}", review_turns=1)
    conversation.run_turns(1)
    conversation.agent.close()
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)


def test_a_review_ends_with_its_process(scene: Scene, tmp_path: Path) -> None:
    server = scene.server("steps: [{say: A1}, {say: done, hang: 600}]")
    result = subprocess.run(
        [sys.executable, "-c", ONE_TURN, model_argument(server), str(tmp_path)],
        env={**os.environ, "HERMES_MEMORY_REVIEW_TURNS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert result.stdout == "running\n", result.stderr


def test_a_review_has_a_request_limit(scene: Scene) -> None:
    conversation = ReviewedConversation(
        scene, ", ".join(["{say: A1}"] + [SAVE] * 20), review_turns=1
    )
    conversation.run_turns(1)
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)
    assert len(conversation.requests) == 1 + MAX_REQUESTS


@pytest.mark.parametrize(("turns", "reviewed"), [(3, 0), (4, 1)])
def test_the_end_of_a_conversation_is_reviewed_after_enough_turns(
    scene: Scene, turns: int, reviewed: int
) -> None:
    answers = ", ".join(["{say: A1}"] * turns)
    conversation = ReviewedConversation(
        scene, f"{answers}, {{say: done, hang: 600}}", review_turns=10
    )
    conversation.run_turns(turns)
    conversation.agent.close()
    conversation.agent.commit_memory()  # does not wait for the model
    wait_until(lambda: len(conversation.requests) == turns + reviewed)
    assert conversation.agent.wait_for_review(0) is not bool(reviewed)


def test_a_kill_asks_no_confirmation(scene: Scene) -> None:
    conversation = ReviewedConversation(scene, "{say: A1}", review_turns=10)
    conversation.run_turns(4)
    conversation.agent.reviews_at_end = False
    conversation.agent.commit_memory()
    assert conversation.agent.wait_for_review(PATIENCE_SECONDS)
    assert len(conversation.requests) == 4


def test_nought_switches_it_off(scene: Scene) -> None:
    conversation = ReviewedConversation(scene, "{say: A1}", review_turns=0)
    conversation.run_turns(12)
    conversation.agent.commit_memory()
    assert len(conversation.requests) == 12


def test_the_setting_controls_the_number_of_turns(tmp_path: Path) -> None:
    ConfigFile.of_home().set("memory.review_turns", "2")
    with model_servers() as serve, SessionDB() as db:
        server = serve(f"[{{say: A1}}, {{say: A2}}, {SAVE}, {{say: done}}]")
        options = ConversationOptions(model=model_argument(server), cwd=tmp_path)
        bundle = agent_factory.build_agent(db, None, options)  # type: ignore[arg-type]
        results: list[str] = []
        bundle.agent.on_review = results.append
        list(bundle.agent.turn("I like tea"))
        list(bundle.agent.turn("two"))
        assert bundle.agent.wait_for_review(PATIENCE_SECONDS)
        bundle.close()
        assert AgentMemory(db).entries("user") == ["Likes tea."]
    assert results == ["Remembered: Likes tea."]


def test_when_a_review_is_due() -> None:
    assert is_due(9, 10, 10)
    assert is_due(9, 11, 10), "something was said to the running turn"
    assert not is_due(10, 11, 10)
    assert not is_due(9, 10, 0)


def test_the_saved_entries_are_reported_in_one_line() -> None:
    entries = ["Likes\ntea.", "x" * 100, "c", "d", "e"]
    text = summary_line(entries)
    assert "\n" not in text
    assert text.startswith("Remembered: Likes tea.; xxx")
    assert text.endswith("…; c; and 2 more")
