"""Question dialogs that open during typing and close when cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Button, Input, Static

from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import (
    MIN_VISIBLE_SECONDS,
    TYPING_PAUSE_SECONDS,
    ClarifyDialog,
    KeysDialog,
)
from hermes_tui.prompt import Prompt
from support.screens import SIZE, is_idle, submit, wait_for, wait_for_screen
from tui_gateway.protocol import (
    ApprovalQuestion,
    ClarifyQuestion,
    ConnectionLost,
    QuestionClosed,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

RISKY = "[{calls: [{name: terminal, arguments: {command: rm -rf old}}]}, {say: Done.}]"


def request(number: int) -> ApprovalQuestion:
    return ApprovalQuestion(f"rm {number}", "risky", allow_permanent=True, request_id=f"r{number}")


@pytest.mark.parametrize("key", ["o", "s", "enter"])
async def test_keys_meant_for_the_input_do_not_approve(
    opened: Open, tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hermes_tui.dialogs.TYPING_PAUSE_SECONDS", 600.0
    )  # no key comes after a pause
    (tmp_path / "old").mkdir()
    app = opened(RISKY)
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "clean")
        await wait_for_screen(pilot, ApprovalDialog)
        for _ in range(8):  # longer than the delay, without a pause
            await pilot.press("right", key)
            await pilot.pause(0.2)
            assert isinstance(app.screen, ApprovalDialog)
        hint = app.screen.query_one(".keys", Static)
        assert "wait" in str(hint.render())
        monkeypatch.setattr("hermes_tui.dialogs.TYPING_PAUSE_SECONDS", TYPING_PAUSE_SECONDS)
        await wait_for(pilot, lambda: "Esc" in str(hint.render()))
        await pilot.press("o")
        await wait_for(pilot, lambda: is_idle(app))
        assert not (tmp_path / "old").exists()


async def test_what_is_typed_ahead_answers_a_question_and_chooses_nothing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_tui.dialogs.ENTER_DELAY_SECONDS", 600.0)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(ClarifyQuestion("Start?", ["Start with this plan"], request_id="r1"))
        await wait_for_screen(pilot, ClarifyDialog)
        await pilot.press("enter", "enter")
        assert isinstance(app.screen, ClarifyDialog)
        await pilot.press(*"no tests")
        assert app.screen.query_one(Input).value == "no tests"
        await pilot.press("escape")
        await wait_for(pilot, lambda: not isinstance(app.screen, ClarifyDialog))


async def test_escape_denies_at_once(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    app = opened(RISKY)
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "clean")
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.press("escape", "escape")
        await wait_for(pilot, lambda: is_idle(app))
        assert (tmp_path / "old").exists()


async def test_always_has_no_shortcut_key(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(request(1))
        await wait_for_screen(pilot, ApprovalDialog)
        screen = app.screen
        await pilot.pause(MIN_VISIBLE_SECONDS + 0.1)
        await pilot.press("a")
        assert app.screen is screen
        await pilot.pause(TYPING_PAUSE_SECONDS + 0.1)
        await pilot.press("left")
        assert isinstance(app.focused, Button)
        assert app.focused.id == "always"
        await pilot.press("enter")
        await wait_for(pilot, lambda: app.screen is not screen)


async def test_the_delay_restarts_when_a_dialog_reappears(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(request(1))
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.press("f1")
        await pilot.pause(MIN_VISIBLE_SECONDS + 0.1)
        assert isinstance(app.screen, KeysDialog)
        monkeypatch.setattr(
            "hermes_tui.dialogs.MIN_VISIBLE_SECONDS", 600.0
        )  # the second key is too early
        await pilot.press("o", "o")
        await pilot.pause()
        assert isinstance(app.screen, ApprovalDialog)


async def test_only_the_closed_question_is_removed(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(request(1))
        app._queue_event(request(2))
        await wait_for(pilot, lambda: len(app.screen_stack) == 3)
        await pilot.press("f1")
        app._queue_event(QuestionClosed("r1"))
        await wait_for(pilot, lambda: len(app.screen_stack) == 3)
        first, second, third = app.screen_stack
        assert isinstance(second, ApprovalDialog)
        assert second.request_id == "r2"
        assert isinstance(third, KeysDialog)
        await pilot.press("x")
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is first)
        await pilot.press("h")
        assert app.query_one(Prompt).text == "h"


async def test_a_repeated_question_is_shown_once(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(2):
            app._queue_event(request(1))
        app._queue_event(ClarifyQuestion("Which?", request_id="c"))
        await wait_for_screen(pilot, ClarifyDialog)
        assert len(app.screen_stack) == 3


async def test_questions_close_when_the_connection_is_lost(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app._queue_event(request(1))
        app._queue_event(request(2))
        await wait_for(pilot, lambda: len(app.screen_stack) == 3)
        await pilot.press("f1")
        app._queue_event(ConnectionLost())
        await wait_for(pilot, lambda: len(app.screen_stack) == 2)
        assert isinstance(app.screen, KeysDialog)
