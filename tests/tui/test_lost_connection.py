"""The daemon is gone for good, or another terminal changes what was said: nothing typed is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes_tui.prompt import Prompt
from support.screens import SIZE, answers, asked, is_idle, notices, said, say, until
from tui_gateway.client import GONE
from tui_gateway.frames import BUSY, CRASHED, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]


def lose(app: HermesApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing is answered, as when the daemon has ended too often."""

    def call(method: str, **_params: Any) -> Any:
        time.sleep(0.5)
        raise RpcError(CRASHED, f"the connection is lost: {method}")

    monkeypatch.setattr(app.conversation, "call", call)
    monkeypatch.setattr(app.conversation, "come_back", lambda: False)


async def test_a_dead_link_ends_nothing_and_the_next_enter_tries_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("[{say: First.}, {say: Back.}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await asked(pilot, "hi")
        app.work_begins()
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._hear(GONE, {})
            await until(pilot, lambda: "keeps crashing" in notices(app)[-1])
            assert is_idle(app)
            await pilot.press(*"./wa", "tab")
            await pilot.press("ctrl+t", "f3")
            await until(pilot, lambda: "session.prompts" in notices(app)[-1])
            await say(pilot, "hello")
            await until(pilot, lambda: prompt.text == "hello")
            assert said(app) == ["hi"]
            assert is_idle(app)
            assert app.is_running
        await pilot.press("enter")
        await until(pilot, lambda: len(answers(app)) == 2 and is_idle(app))
        assert "Back." in answers(app)[-1]  # maybe twice: the first link is not dead here
        assert prompt.text == ""
        assert said(app) == ["hi", "hello"]


async def test_one_can_leave_what_cannot_be_reached(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._hear(GONE, {})
            await until(pilot, lambda: "keeps crashing" in notices(app)[-1])
            await say(pilot, "/quit")
            await until(pilot, lambda: not app.is_running)


async def test_a_message_that_cannot_be_sent_is_in_the_input_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("[{say: Now.}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        with monkeypatch.context() as lost:
            lose(app, lost)
            await say(pilot, "hello")
            await pilot.press(*"more")
            await until(pilot, lambda: prompt.text == "hello\nmore")
            await until(pilot, lambda: is_idle(app))
            assert said(app) == []
            assert "connection is lost" in notices(app)[-1]
            await say(pilot, "/undo")
            await until(pilot, lambda: "command.dispatch" in notices(app)[-1])
            await until(pilot, lambda: is_idle(app))
        await asked(pilot, "hello")
        assert answers(app) == ["Now."]


async def test_a_turn_of_another_terminal_stays_a_turn(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()

    def busy(_method: str, **_params: Any) -> Any:
        raise RpcError(BUSY, "a turn is running")

    async with app.run_test(size=SIZE) as pilot:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(app.conversation, "call", busy)
            await say(pilot, "hello")
            await until(pilot, lambda: app.query_one(Prompt).text == "hello")
            assert app.is_busy
        app.work_ends()


async def test_what_nobody_read_goes_before_the_draft(opened: Open) -> None:
    app = opened()
    end = {"status": "interrupted", "error": None, "unread": "and hurry"}
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"half")
        app._hear("message.complete", end)
        await until(pilot, lambda: prompt.text == "and hurry\nhalf")
        await pilot.press("!")
        assert prompt.text == "and hurry\nhalf!"
        app._hear("message.complete", end)
        app._hear("message.complete", {**end, "unread": "and"})
        await until(pilot, lambda: len(notices(app)) >= 4)
        assert prompt.text == "and hurry\nhalf!"
        app._hear("message.complete", {**end, "unread": "an"})
        await until(pilot, lambda: prompt.text == "an\nand hurry\nhalf!")


async def test_what_another_terminal_took_back_is_shown_no_longer(opened: Open) -> None:
    app = opened("[{say: A1}, {say: A2}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "one")
        await asked(pilot, "two")
        await app.note("beside")
        await pilot.press(*"draft")
        app.conversation.call("command.dispatch", name="undo", arg="")
        app._hear("session.changed", {})
        await until(pilot, lambda: said(app) == ["one"])
        assert answers(app) == ["A1"]
        await until(pilot, lambda: notices(app)[-1:] == ["beside"])
        assert app.query_one(Prompt).text == "draft"


async def test_a_change_that_cannot_be_seen_is_told(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "one")
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._hear("session.changed", {})
            await until(pilot, lambda: "connection is lost" in "".join(notices(app)))
            assert said(app) == ["one"]
