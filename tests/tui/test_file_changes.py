"""/undo, rewind, /checkpoints and /diff in the terminal UI, and commands after an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.containers import VerticalScroll
from textual.widgets import SelectionList

from hermes_tui.file_commands import CheckpointsDialog, DiffScreen, RestoreDialog
from hermes_tui.prompt import Prompt
from hermes_tui.rewind import RewindDialog
from support.screens import (
    SIZE,
    is_idle,
    last_notice,
    notice_texts,
    submit,
    submit_and_wait,
    user_texts,
    wait_for,
    wait_for_screen,
)
from tui_gateway.frames import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

WRITE = """[{calls: [{name: write_file, arguments: {path: a.txt, content: "one\\n"}}]}, {say: A1},
{calls: [{name: write_file, arguments: {path: a.txt, content: "two\\n"}},
         {name: write_file, arguments: {path: b.txt, content: "new\\n"}}]}, {say: A2}]"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def start(opened: Open, folder: Path) -> HermesApp:
    app = opened(WRITE)
    app.conversation.call("session.cwd.set", cwd=str(folder))
    return app


def names(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


async def test_a_slash_after_undo_is_a_command(opened: Open) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        await submit(pilot, "/undo")
        await wait_for(pilot, lambda: app.query_one(Prompt).text == "one" and is_idle(app))
        await pilot.press(*"/redo", "enter")
        await wait_for(pilot, lambda: user_texts(app) == ["one"])
        assert "Restored 2 messages." in notice_texts(app)[-1]
        await wait_for(pilot, lambda: is_idle(app))
        await submit(pilot, "/undo")
        await wait_for(pilot, lambda: app.query_one(Prompt).text == "one" and is_idle(app))
        await pilot.press(*"!/")  # an edited suggestion is the user's own text
        assert app.query_one(Prompt).text == "one!/"


async def test_undo_restores_conversation_and_files(opened: Open, folder: Path) -> None:
    app = start(opened, folder)
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "first")
        await submit_and_wait(pilot, "second")
        await submit(pilot, "/undo")
        await wait_for_screen(pilot, RestoreDialog)
        files = app.screen.query_one(SelectionList)
        labels = [str(files.get_option_at_index(number).prompt) for number in range(2)]
        assert labels == ["a.txt (modified by the agent)", "b.txt (created by the agent)"]
        assert "-two" in str(app.screen.query_one(".diff Static").render())
        await pilot.press("b")
        await wait_for(pilot, lambda: user_texts(app) == ["first"])
        await wait_for(pilot, lambda: "Restored 2 files" in last_notice(app))
        assert names(folder) == {"a.txt": "one\n"}
        assert app.query_one(Prompt).text == "second"


async def test_a_file_changed_since_is_restored_only_when_selected(
    opened: Open, folder: Path
) -> None:
    app = start(opened, folder)
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "first")
        await submit_and_wait(pilot, "second")
        (folder / "a.txt").write_text("mine\n")
        await pilot.press("f3")
        await wait_for_screen(pilot, RewindDialog)
        await pilot.press("enter")
        await wait_for_screen(pilot, RestoreDialog)
        assert app.screen.query_one(SelectionList).selected == [1]
        await pilot.press("f")
        await wait_for(pilot, lambda: not (folder / "b.txt").exists())
        await wait_for(pilot, lambda: "Restored 1 file: b.txt" in last_notice(app))
        assert (folder / "a.txt").read_text() == "mine\n"
        assert user_texts(app) == ["first", "second"]
        await submit(pilot, "/checkpoints")
        await wait_for_screen(pilot, CheckpointsDialog)
        await pilot.press("down", "enter")  # the newest is the restore
        await wait_for_screen(pilot, RestoreDialog)
        await pilot.press("space", "c", "f")  # only files are offered here
        await wait_for(pilot, lambda: (folder / "a.txt").read_text() == "one\n")
        assert user_texts(app) == ["first", "second"]


async def test_the_diff_is_shown_and_scrolls(opened: Open, folder: Path) -> None:
    app = start(opened, folder)
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "/diff")
        await wait_for(pilot, lambda: "not changed any files" in last_notice(app))
        await submit_and_wait(pilot, "first")
        await submit_and_wait(pilot, "second")
        await submit(pilot, "/diff last")
        await wait_for_screen(pilot, DiffScreen)
        text = str(app.screen.query_one(".diff Static").render())
        assert "-one\n+two\n" in text
        assert isinstance(app.focused, VerticalScroll)
        await pilot.press("escape")
        await submit(pilot, "/diff")
        await wait_for_screen(pilot, DiffScreen)
        assert "-one" not in str(app.screen.query_one(".diff Static").render())


def test_clients_list_preview_and_restore(opened: Open, folder: Path) -> None:
    call = start(opened, folder).conversation.call
    assert call("checkpoints.list") == {"checkpoints": []}
    assert call("checkpoints.preview", count=1)["files"] == []
    with pytest.raises(RpcError, match="no checkpoint 5"):
        call("checkpoints.restore", number=5)
