"""The event queue keeps the order, merges deltas and leaves time for keys."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from textual.events import Key

from hermes_tui.event_view import EventQueue
from hermes_tui.messages import AgentMessage, ToolRow
from hermes_tui.prompt import Prompt
from support.screens import SIZE, agent_texts, submit_and_wait, user_texts, wait_for
from tui_gateway.protocol import (
    MessageComplete,
    MessageDelta,
    MessageStart,
    ReasoningText,
    SteerRead,
    ToolStart,
    ToolText,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_tui.app import HermesApp
    from tui_gateway.protocol import ClientEvent

    Open = Callable[..., HermesApp]

END = MessageComplete("", "complete", None, {})


def take_all(events: EventQueue) -> list[ClientEvent]:
    taken = []
    while (event := events.take()) is not None:
        taken.append(event)
    return taken


def test_consecutive_deltas_are_merged_in_order() -> None:
    events = EventQueue()
    for event in (
        MessageDelta("a"),
        MessageDelta("b"),
        ReasoningText("c"),
        MessageDelta("d"),
        ToolStart("1", "", "x", ""),
        ToolStart("2", "", "x", ""),
        ToolText("1", "e"),
        ToolText("1", ""),
        ToolText("2", "f"),
        END,
    ):
        events.put(event)
    assert take_all(events) == [
        MessageDelta("ab"),
        ReasoningText("c"),
        MessageDelta("d"),
        ToolStart("1", "", "x", ""),
        ToolStart("2", "", "x", ""),
        ToolText("1", "e"),
        ToolText("2", "f"),
        END,
    ]


def test_the_screen_is_notified_once_until_the_queue_is_empty() -> None:
    events = EventQueue()
    assert events.put(SteerRead())
    assert not events.put(SteerRead())
    assert len(take_all(events)) == 2
    assert events.put(SteerRead())


def test_nothing_is_lost_between_threads() -> None:
    events = EventQueue()
    texts: list[str] = []

    def put() -> None:
        for _ in range(5000):
            events.put(MessageDelta("x"))

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        texts += [event.text for event in take_all(events) if isinstance(event, MessageDelta)]
    texts += [event.text for event in take_all(events) if isinstance(event, MessageDelta)]
    assert "".join(texts) == "x" * 20_000


async def test_a_fast_model_does_not_delay_keys(opened: Open) -> None:
    app = opened()
    words: list[str] = []
    has_finished = threading.Event()

    def stream() -> None:  # 600 words a second, as from a socket
        while not has_finished.wait(1 / 15):
            for _ in range(40):
                words.append(f"word{len(words)} and `more` ")
                app._queue_event(MessageDelta(words[-1]))
        app._queue_event(END)

    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(MessageStart("go"))
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
        app._queue_event(MessageStart("go"))
        app._queue_event(MessageDelta(""))
        app._queue_event(ToolStart("1", "", "terminal ls", ""))
        app._queue_event(END)
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
