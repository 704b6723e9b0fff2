"""A turn ends: without progress, after its total time, and when a tool does not stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from agent.conftest import of_kind
from hermes_agent import toolbox
from hermes_agent.events import ToolFinished, ToolStarted, TurnEnd
from hermes_agent.messages import ToolCall
from hermes_agent.tools.base import Tool, success
from hermes_agent.turn_control import LONGEST_TOOL_SECONDS, Cancel, TurnDeadline, TurnLimits
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from agent.conftest import Scene

SLOW = "steps: [{say: one two three four five six seven eight nine ten, pause: 0.2}]"
SILENT = "steps: [{hang: 60, say: late}]"
CALL = "steps: [{say: Look., calls: [{name: block, arguments: {}}]}, {say: Done.}]"


def test_a_turn_without_progress_fails_with_the_reason(scene: Scene) -> None:
    agent = scene.agent(SILENT, limits=TurnLimits(idle_seconds=0.3))
    finished = list(agent.turn("hi"))[-1]
    assert finished.end is TurnEnd.FAILED
    assert finished.error == "no progress for 0.3 s (setting agent.idle_seconds)"
    assert scene.messages(agent) == [("user", "hi")]


def test_progress_keeps_a_turn_alive(scene: Scene) -> None:
    agent = scene.agent(SLOW, limits=TurnLimits(idle_seconds=1.5))
    assert list(agent.turn("count"))[-1].end is TurnEnd.COMPLETE


def test_a_turn_ends_after_its_total_time(scene: Scene) -> None:
    agent = scene.agent(SLOW, limits=TurnLimits(total_seconds=0.5))
    finished = list(agent.turn("count"))[-1]
    assert finished.end is TurnEnd.FAILED
    assert finished.error == "the turn took longer than 0.5 s (setting agent.turn_seconds)"
    assert scene.messages(agent)[1][1].startswith("one")


def test_a_tool_that_does_not_stop_does_not_keep_its_turn(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolbox, "STOP_SECONDS", 0.2)
    release = threading.Event()

    def block(_arguments: Any, _context: Any) -> str:
        agent.interrupt()
        release.wait(PATIENCE_SECONDS)
        return success()

    agent = scene.agent(CALL, Tool("block", "Blocks.", {"type": "object"}, block))
    events = list(agent.turn("go"))
    release.set()
    [finished] = of_kind(events, ToolFinished)
    assert "did not stop" in finished.result
    assert events[-1].end is TurnEnd.INTERRUPTED


class Times:
    """A clock and a timer under the control of the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[Callable[[], object]] = []

    def later(self, _seconds: float, call: Callable[[], object]) -> None:
        self._due.append(call)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        due, self._due = self._due, []
        for call in due:
            call()

    def deadline(self, cancel: Cancel) -> TurnDeadline:
        limits = TurnLimits(idle_seconds=100.0, total_seconds=10_000.0)
        return TurnDeadline(limits, cancel, self.later, lambda: self.now)


def test_a_running_tool_has_the_time_that_it_may_ask_for() -> None:
    times, cancel = Times(), Cancel()
    deadline = times.deadline(cancel)
    with deadline.watching():
        deadline.note(ToolStarted(ToolCall("1", "terminal", "{}")))
        times.pass_by(LONGEST_TOOL_SECONDS + 99)
        assert not cancel.is_requested
        times.pass_by(2)
        assert "no progress" in cancel.reason


def test_the_time_of_a_question_does_not_count() -> None:
    times, cancel = Times(), Cancel()
    deadline = times.deadline(cancel)
    with deadline.watching():
        with deadline.asking():
            times.pass_by(50_000)
            times.pass_by(50_000)
        times.pass_by(99)
        assert not cancel.is_requested
        times.pass_by(2)
        assert cancel.is_requested


def test_nothing_happens_after_the_turn() -> None:
    times, cancel = Times(), Cancel()
    with times.deadline(cancel).watching():
        pass
    times.pass_by(1_000_000)
    assert not cancel.is_requested
