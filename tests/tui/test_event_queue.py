"""What happens reaches the screen whole and in order, and leaves time for keys."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from textual.events import Key

from hermes_tui.event_queue import EventQueue
from hermes_tui.messages import AgentMessage, ToolRow
from hermes_tui.prompt import Prompt
from support.screens import SIZE, answers, asked, said, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

END: dict[str, Any] = {"status": "complete", "error": None, "unread": ""}


def taken(hearing: EventQueue) -> list[tuple[str, dict[str, Any]]]:
    found = []
    while (one := hearing.take()) is not None:
        found.append(one)
    return found


def test_texts_that_follow_each_other_are_one_and_the_order_stays() -> None:
    hearing = EventQueue()
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
        hearing.put(kind, payload)
    assert taken(hearing) == [
        ("message.delta", {"text": "ab"}),
        ("reasoning.delta", {"text": "c"}),
        ("message.delta", {"text": "d"}),
        ("tool.start", {"tool_id": "1", "context": "x"}),
        ("tool.start", {"tool_id": "2", "context": "x"}),
        ("tool.output", {"tool_id": "1", "text": "e"}),
        ("tool.output", {"tool_id": "2", "text": "f"}),
        ("message.complete", {}),
    ]


def test_the_screen_is_told_once_until_it_has_taken_all() -> None:
    hearing = EventQueue()
    assert hearing.put("session.info", {})
    assert not hearing.put("session.info", {})
    assert len(taken(hearing)) == 2
    assert hearing.put("session.info", {})


def test_nothing_is_lost_between_threads() -> None:
    hearing = EventQueue()
    found: list[str] = []

    def put() -> None:
        for _ in range(5000):
            hearing.put("message.delta", {"text": "x"})

    threads = [threading.Thread(target=put) for _ in range(4)]
    for one in threads:
        one.start()
    while any(one.is_alive() for one in threads):
        found += [payload["text"] for _, payload in taken(hearing)]
    found += [payload["text"] for _, payload in taken(hearing)]
    assert "".join(found) == "x" * 20_000


async def test_keys_are_not_kept_waiting_by_a_fast_model(opened: Open) -> None:
    app = opened()
    words: list[str] = []
    are_keys_seen = threading.Event()

    def speak() -> None:  # 600 words a second, as they come from a socket
        while not are_keys_seen.wait(1 / 15):
            for _ in range(40):
                words.append(f"word{len(words)} and `more` ")
                app._hear("message.delta", {"text": words[-1]})
        app._hear("message.complete", END)

    async with app.run_test(size=SIZE) as pilot:
        app._hear("message.start", {"text": "go"})
        thread = threading.Thread(target=speak)
        thread.start()
        prompt = app.query_one(Prompt)
        for count in range(1, 4):
            before = len(words)
            await until(pilot, lambda: len(words) > before + 300)  # noqa: B023 - in this round
            app.post_message(Key("x", "x"))
            await until(pilot, lambda: prompt.text == "x" * count)  # noqa: B023 - as above
        assert app.is_busy, "the answer is not over yet"
        are_keys_seen.set()
        await asyncio.to_thread(thread.join)
        await until(pilot, lambda: not app.is_busy)
        assert answers(app) == ["".join(words)]


async def test_a_piece_of_nothing_before_a_tool_is_nothing(opened: Open) -> None:
    app = opened("[{say: Still here.}]")
    async with app.run_test(size=SIZE) as pilot:
        app._hear("message.start", {"text": "go"})
        app._hear("message.delta", {"text": ""})
        app._hear("tool.start", {"tool_id": "1", "context": "terminal ls"})
        app._hear("message.complete", END)
        await until(pilot, lambda: app.query(ToolRow) and not app.is_busy)
        assert not app.query(AgentMessage)
        await asked(pilot, "well?")
        assert said(app)[-1] == "well?"
        assert answers(app) == ["Still here."]


async def test_an_answer_that_ends_before_it_begins_ends_nothing_else(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE):
        answer = AgentMessage()
        await app.transcript.mount(answer)
        answer._stream = AgentMessage.get_stream(answer)  # whose task has not run yet
        await answer.finish()
        await answer.more("and more")
        await answer.finish()
        assert answer.source == "and more"
