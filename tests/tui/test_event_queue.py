"""The event queue keeps the order, merges deltas and leaves time for keys."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from textual.events import Key

from hermes_tui.event_queue import EventQueue
from hermes_tui.messages import AgentMessage, ToolRow
from hermes_tui.prompt import Prompt
from support.screens import SIZE, agent_texts, submit_and_wait, user_texts, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

END: dict[str, Any] = {"status": "complete", "error": None, "unread": ""}


def take_all(events: EventQueue) -> list[tuple[str, dict[str, Any]]]:
    taken = []
    while (event := events.take()) is not None:
        taken.append(event)
    return taken


def test_consecutive_deltas_are_merged_in_order() -> None:
    events = EventQueue()
    for kind, payload in (
        ("message.delta", {"text": "a"}),
        ("message.delta", {"text": "b"}),
        ("reasoning.delta", {"text": "c"}),
        ("message.delta", {"text": "d"}),
        ("tool.start", {"tool_id": "1", "context": "x"}),
        ("tool.start", {"tool_id": "2", "context": "x"}),
        ("tool.output", {"tool_id": "1", "text": "e"}),
        ("tool.output", {"tool_id": "1", "text": ""}),
        ("tool.output", {"tool_id": "2", "text": "f"}),
        ("message.complete", {}),
    ):
        events.put(kind, payload)
    assert take_all(events) == [
        ("message.delta", {"text": "ab"}),
        ("reasoning.delta", {"text": "c"}),
        ("message.delta", {"text": "d"}),
        ("tool.start", {"tool_id": "1", "context": "x"}),
        ("tool.start", {"tool_id": "2", "context": "x"}),
        ("tool.output", {"tool_id": "1", "text": "e"}),
        ("tool.output", {"tool_id": "2", "text": "f"}),
        ("message.complete", {}),
    ]


def test_the_screen_is_notified_once_until_the_queue_is_empty() -> None:
    events = EventQueue()
    assert events.put("session.info", {})
    assert not events.put("session.info", {})
    assert len(take_all(events)) == 2
    assert events.put("session.info", {})


def test_nothing_is_lost_between_threads() -> None:
    events = EventQueue()
    texts: list[str] = []

    def put() -> None:
        for _ in range(5000):
            events.put("message.delta", {"text": "x"})

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        texts += [payload["text"] for _, payload in take_all(events)]
    texts += [payload["text"] for _, payload in take_all(events)]
    assert "".join(texts) == "x" * 20_000


async def test_a_fast_model_does_not_delay_keys(opened: Open) -> None:
    app = opened()
    words: list[str] = []
    has_finished = threading.Event()

    def stream() -> None:  # 600 words a second, as from a socket
        while not has_finished.wait(1 / 15):
            for _ in range(40):
                words.append(f"word{len(words)} and `more` ")
                app._queue_event("message.delta", {"text": words[-1]})
        app._queue_event("message.complete", END)

    async with app.run_test(size=SIZE) as pilot:
        app._queue_event("message.start", {"text": "go"})
        thread = threading.Thread(target=stream)
        thread.start()
        prompt = app.query_one(Prompt)
        for count in range(1, 4):
            before = len(words)
            await wait_for(pilot, lambda: len(words) > before + 300)  # noqa: B023 - in this round
            app.post_message(Key("x", "x"))
            await wait_for(pilot, lambda: prompt.text == "x" * count)  # noqa: B023 - as above
        assert app.is_busy, "the answer has ended too early"
        has_finished.set()
        await asyncio.to_thread(thread.join)
        await wait_for(pilot, lambda: not app.is_busy)
        assert agent_texts(app) == ["".join(words)]


async def test_an_empty_delta_before_a_tool_adds_no_message(opened: Open) -> None:
    app = opened("[{say: Still here.}]")
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event("message.start", {"text": "go"})
        app._queue_event("message.delta", {"text": ""})
        app._queue_event("tool.start", {"tool_id": "1", "context": "terminal ls"})
        app._queue_event("message.complete", END)
        await wait_for(pilot, lambda: app.query(ToolRow) and not app.is_busy)
        assert not app.query(AgentMessage)
        await submit_and_wait(pilot, "well?")
        assert user_texts(app)[-1] == "well?"
        assert agent_texts(app) == ["Still here."]


async def test_finishing_a_stream_before_it_starts_is_harmless(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE):
        answer = AgentMessage()
        await app.transcript.mount(answer)
        answer._stream = AgentMessage.get_stream(answer)  # its task has not run yet
        await answer.finish()
        await answer.append_delta("and more")
        await answer.finish()
        assert answer.source == "and more"
