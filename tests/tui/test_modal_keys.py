"""Keys while something stands before the conversation are for what is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input, OptionList, Tree

from hermes_tui.dialogs import ApprovalDialog, KeysDialog
from hermes_tui.rewind import BranchTree
from hermes_tui.session_picker import SessionPicker
from support.screens import SIZE, asked, until

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from hermes_state import SessionDB
    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

QUESTION = {"command": "rm x", "description": "risky", "request_id": "r"}


def fill(db: SessionDB, count: int) -> None:
    for number in range(count):
        db.create_session(f"s{number}", "cli", cwd="/garden")
        db.append_message(f"s{number}", "user", f"roses {number}")


async def test_delete_edits_what_is_typed_and_asks_before_the_trash(
    opened: Open, db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 2)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, SessionPicker))
        found, typed = app.screen.query_one(OptionList), app.screen.query_one(Input)
        await until(pilot, lambda: found.option_count == 2)
        await pilot.press(*"xroses", "home", "delete")
        assert typed.value == "roses"
        await until(pilot, lambda: found.option_count == 2)
        await pilot.press("end", "delete")
        await pilot.pause(0.2)
        assert db.session_count() == 2
        await pilot.press("down", "delete")  # another one: asked again
        await pilot.pause(0.2)
        assert db.session_count() == 2
        monkeypatch.setattr("hermes_tui.session_picker.TWICE_SECONDS", 0.0)
        await pilot.press("delete")  # too late
        await pilot.pause(0.2)
        assert db.session_count() == 2
        monkeypatch.undo()
        await pilot.press("delete")
        await until(pilot, lambda: db.session_count() == 1)


async def test_screens_do_not_pile_up(opened: Open) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "one")
        await pilot.press("ctrl+r", "ctrl+r", "f3", "f4", "ctrl+g")
        await pilot.pause(0.2)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        app._hear("approval.request", QUESTION)
        await until(pilot, lambda: isinstance(app.screen, ApprovalDialog))
        await pilot.press("ctrl+r", "f3", "f4", "ctrl+g", "pageup")
        assert isinstance(app.screen, ApprovalDialog)


async def test_pages_turn_in_what_is_seen(opened: Open, db: SessionDB) -> None:
    fill(db, 60)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, SessionPicker))
        found = app.screen.query_one(OptionList)
        await until(pilot, lambda: found.option_count > 50)
        await pilot.pause()
        await pilot.press("pagedown")
        assert (found.highlighted or 0) > 5
        await pilot.press("pageup")
        assert found.highlighted == 0
        row = {"title": "rose", "message_count": 1, "parent_session_id": None}
        await app.push_screen(BranchTree([{**row, "id": str(number)} for number in range(60)], "0"))
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
        await until(pilot, lambda: dialog.scroll_offset.y > 0)
        await pilot.press("x")
        assert not isinstance(app.screen, KeysDialog)
