"""Lost connections and changes by other clients; typed input is never lost."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

from hermes_tui.prompt import Prompt
from support.screens import (
    SIZE,
    agent_texts,
    is_idle,
    last_notice,
    notice_texts,
    submit,
    submit_and_wait,
    user_texts,
    wait_for,
)
from tui_gateway.frames import BUSY, CRASHED, RpcError
from tui_gateway.protocol import ConnectionLost, MessageComplete, SessionChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]


def lose(
    app: HermesApp, monkeypatch: pytest.MonkeyPatch, after: threading.Event | None = None
) -> None:
    """Make all calls fail, as after too many daemon crashes; not before *after*."""

    def call(method: str, **_params: Any) -> Any:
        if after is not None:
            after.wait()
        raise RpcError(CRASHED, f"connection lost: {method}")

    monkeypatch.setattr(app.conversation, "call", call)
    monkeypatch.setattr(app.conversation, "reconnect", lambda: False)


async def test_after_a_lost_connection_the_next_enter_reconnects(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("[{say: First.}, {say: Back.}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await submit_and_wait(pilot, "hi")
        app.show_busy()
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._queue_event(ConnectionLost())
            await wait_for(pilot, lambda: "keeps crashing" in last_notice(app))
            assert is_idle(app)
            await pilot.press(*"./wa", "tab")
            await pilot.press("ctrl+t", "f3")
            await wait_for(pilot, lambda: "session.prompts" in last_notice(app))
            await submit(pilot, "hello")
            await wait_for(pilot, lambda: prompt.text == "hello")
            assert user_texts(app) == ["hi"]
            assert is_idle(app)
            assert app.is_running
        await pilot.press("enter")
        await wait_for(pilot, lambda: len(agent_texts(app)) == 2 and is_idle(app))
        assert (
            "Back." in agent_texts(app)[-1]
        )  # maybe twice: the first client is still connected here
        assert prompt.text == ""
        assert user_texts(app) == ["hi", "hello"]


async def test_quitting_works_without_a_connection(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._queue_event(ConnectionLost())
            await wait_for(pilot, lambda: "keeps crashing" in last_notice(app))
            await submit(pilot, "/quit")
            await wait_for(pilot, lambda: not app.is_running)


async def test_an_unsent_message_returns_to_the_input(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("[{say: Now.}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        is_typed = threading.Event()
        with monkeypatch.context() as lost:
            lose(app, lost, after=is_typed)
            await submit(pilot, "hello")
            await pilot.press(*"more")
            is_typed.set()
            await wait_for(pilot, lambda: prompt.text == "hello\nmore")
            await wait_for(pilot, lambda: is_idle(app))
            assert user_texts(app) == []
            assert "connection lost" in notice_texts(app)[-1]
            await submit(pilot, "/undo")
            await wait_for(pilot, lambda: "command.dispatch" in last_notice(app))
            await wait_for(pilot, lambda: is_idle(app))
        await submit_and_wait(pilot, "hello")
        assert agent_texts(app) == ["Now."]


async def test_a_turn_of_another_client_keeps_the_ui_busy(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()

    def busy(_method: str, **_params: Any) -> Any:
        raise RpcError(BUSY, "a turn is running")

    async with app.run_test(size=SIZE) as pilot:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(app.conversation, "call", busy)
            await submit(pilot, "hello")
            await wait_for(pilot, lambda: app.query_one(Prompt).text == "hello")
            assert app.is_busy
        app.show_idle()


async def test_unread_input_is_inserted_before_the_draft(opened: Open) -> None:
    app = opened()
    end = MessageComplete("", "interrupted", None, {}, "and hurry")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"half")
        app._queue_event(end)
        await wait_for(pilot, lambda: prompt.text == "and hurry\nhalf")
        await pilot.press("!")
        assert prompt.text == "and hurry\nhalf!"
        app._queue_event(end)
        app._queue_event(dataclasses.replace(end, unread="and"))
        await wait_for(pilot, lambda: len(notice_texts(app)) >= 4)
        assert prompt.text == "and hurry\nhalf!"
        app._queue_event(dataclasses.replace(end, unread="an"))
        await wait_for(pilot, lambda: prompt.text == "an\nand hurry\nhalf!")


async def test_an_undo_of_another_client_updates_the_transcript(opened: Open) -> None:
    app = opened("[{say: A1}, {say: A2}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        await submit_and_wait(pilot, "two")
        await app.note("beside")
        await pilot.press(*"draft")
        app.conversation.call("command.dispatch", name="undo", arg="")
        app._queue_event(SessionChanged())
        await wait_for(pilot, lambda: user_texts(app) == ["one"])
        assert agent_texts(app) == ["A1"]
        await wait_for(pilot, lambda: notice_texts(app)[-1:] == ["beside"])
        assert app.query_one(Prompt).text == "draft"


async def test_a_failed_reload_is_reported(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._queue_event(SessionChanged())
            await wait_for(pilot, lambda: "connection lost" in "".join(notice_texts(app)))
            assert user_texts(app) == ["one"]


async def test_notices_name_the_command_as_the_user_types_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_COMMAND", "./hermes")
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        with monkeypatch.context() as lost:
            lose(app, lost)
            app._queue_event(ConnectionLost())
            await wait_for(pilot, lambda: "`./hermes doctor`" in last_notice(app))
