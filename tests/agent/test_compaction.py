"""A long conversation is compacted for the model; the stored history stays complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.context.compaction import SUMMARY_HEADING, Compacted, is_due, split
from hermes_agent.events import Failed, FailureKind, Notice
from hermes_agent.providers.openai_compatible import OpenAICompatible
from support.waiting import act_when

if TYPE_CHECKING:
    from agent.conftest import Scene

LONG = "x" * 400


def test_the_context_shrinks_and_the_history_does_not(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: They want tea.}, {say: Tea it is.}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    result = agent.compress("tea")
    assert isinstance(result, Compacted)
    assert result.summary == "They want tea."
    list(agent.turn("and now?"))
    sent = [request["content"] for request in scene.servers[0].requests[-1]["messages"]]
    assert sent[:2] == ["Be brief.", f"{SUMMARY_HEADING}They want tea."]
    assert sent[-1] == "and now?"
    assert f"0 {LONG}" not in sent
    everything = scene.db.get_messages(agent.session_id, include_inactive=True)
    assert f"0 {LONG}" in [row["content"] for row in everything]
    assert "tea" in scene.servers[0].requests[3]["messages"][-1]["content"]


def test_a_conversation_that_fills_the_window_is_compacted_automatically(scene: Scene) -> None:
    steps = f"steps: [{{say: {LONG}}}, {{say: {LONG}}}, {{say: {LONG}}}, {{say: Summed up.}}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    notices = [
        event.text
        for number in range(3)
        for event in agent.turn(f"{number} {LONG}")
        if isinstance(event, Notice)
    ]
    assert len(notices) == 1
    assert "history keeps them all" in notices[0]


def test_without_a_summary_nothing_is_changed(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {fail: {status: 401}}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    before = scene.messages(agent)
    assert isinstance(agent.compress(), Failed)
    assert scene.messages(agent) == before


def test_after_a_turn_that_was_stopped_there_can_be_a_summary(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: Summed up.}, {say: no, hang: 600}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    agent.interrupt()
    result = agent.compress()
    assert isinstance(result, Compacted)
    assert result.summary == "Summed up."


def test_making_a_summary_can_be_stopped(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: no, hang: 600}]"
    server = scene.server(steps)
    provider = OpenAICompatible("m", server.base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    act_when(lambda: len(server.requests) == 4, agent.interrupt)
    result = agent.compress()
    assert isinstance(result, Failed)
    assert result.kind is FailureKind.INTERRUPTED


def test_only_complete_exchanges_are_kept() -> None:
    messages = [
        {"role": role, "content": LONG}
        for _ in range(6)
        for role in ("user", "assistant", "tool", "assistant")
    ]
    old, tail = split(messages, 2_500)
    assert old + tail == messages
    assert tail[0]["role"] == "user"
    assert 0 < len(tail) < len(messages)


def test_compaction_happens_in_time() -> None:
    assert not is_due(60_000, 100_000)
    assert is_due(70_000, 100_000)
