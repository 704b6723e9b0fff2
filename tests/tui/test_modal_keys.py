"""Keys go to the topmost dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input, OptionList, Tree

from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import KeysDialog
from hermes_tui.pickers import SessionPicker
from hermes_tui.rewind import BranchTree
from support.screens import SIZE, submit_and_wait, wait_for, wait_for_screen
from tui_gateway.protocol import ApprovalQuestion, RelatedSession

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from hermes_state import SessionDB
    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

QUESTION = ApprovalQuestion("rm x", "risky", request_id="r")


def fill(db: SessionDB, count: int) -> None:
    for number in range(count):
        db.create_session(f"s{number}", "cli", cwd="/garden")
        db.append_message(f"s{number}", "user", f"roses {number}")


async def test_delete_edits_the_search_and_confirms_before_trashing(
    opened: Open, db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 2)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await wait_for_screen(pilot, SessionPicker)
        options, search = app.screen.query_one(OptionList), app.screen.query_one(Input)
        await wait_for(pilot, lambda: options.option_count == 2)
        await pilot.press(*"xroses", "home", "delete")
        assert search.value == "roses"
        await wait_for(pilot, lambda: options.option_count == 2)
        await pilot.press("end", "delete")
        await pilot.pause(0.2)
        assert db.session_count() == 2
        await pilot.press("down", "delete")  # another session: confirm again
        await pilot.pause(0.2)
        assert db.session_count() == 2
        monkeypatch.setattr("hermes_tui.pickers.REPEAT_SECONDS", 0.0)
        await pilot.press("delete")  # too late
        await pilot.pause(0.2)
        assert db.session_count() == 2
        monkeypatch.undo()
        await pilot.press("delete")
        await wait_for(pilot, lambda: db.session_count() == 1)


async def test_dialogs_do_not_stack(opened: Open) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        await pilot.press("ctrl+r", "ctrl+r", "f3", "f4", "ctrl+g")
        await pilot.pause(0.2)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        app._queue_event(QUESTION)
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.press("ctrl+r", "f3", "f4", "ctrl+g", "pageup")
        assert isinstance(app.screen, ApprovalDialog)


async def test_page_keys_scroll_the_topmost_dialog(opened: Open, db: SessionDB) -> None:
    fill(db, 60)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await wait_for_screen(pilot, SessionPicker)
        options = app.screen.query_one(OptionList)
        await wait_for(pilot, lambda: options.option_count > 50)
        await pilot.pause()
        await pilot.press("pagedown")
        assert (options.highlighted or 0) > 5
        await pilot.press("pageup")
        assert options.highlighted == 0
        rows = [RelatedSession(str(n), "rose", None, 0.0, 1, None) for n in range(60)]
        await app.push_screen(BranchTree(rows, "0"))
        tree = app.screen.query_one(Tree)
        await pilot.pause()
        await pilot.press("pagedown")
        assert tree.cursor_line > 5
        await pilot.press("pageup")
        assert tree.cursor_line == 0


async def test_the_keys_are_scrolled_in_a_small_window(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=(70, 12)) as pilot:
        await pilot.press("f1")
        await pilot.pause()
        await pilot.press("pagedown")
        assert isinstance(app.screen, KeysDialog)
        dialog = app.screen.query_one(".dialog")
        await wait_for(pilot, lambda: dialog.scroll_offset.y > 0)
        await pilot.press("x")
        assert not isinstance(app.screen, KeysDialog)
