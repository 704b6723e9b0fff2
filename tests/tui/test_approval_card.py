"""The approval card of the terminal UI: complete, scrollable, with its answers in view."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from textual.containers import VerticalScroll
from textual.widgets import Button, Input, Static

from hermes_tui.approval_dialog import ApprovalDialog
from support.screens import is_idle, submit, wait_for, wait_for_screen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

LONG = "\n".join(
    [f"echo {n} >> log.txt" for n in range(60)] + ["rm -rf old"] + [f"echo {n}" for n in range(20)]
)
SIZES = [(80, 24), (120, 40), (40, 15)]


def script(command: str) -> str:
    call = {"name": "terminal", "arguments": {"command": command}}
    return json.dumps([{"calls": [call]}, {"say": "Done."}])


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialog that accepts keys at once."""
    monkeypatch.setattr("hermes_tui.dialogs.MIN_VISIBLE_SECONDS", 0.0)
    monkeypatch.setattr("hermes_tui.dialogs.TYPING_PAUSE_SECONDS", 0.0)


async def card(app: HermesApp, pilot: Pilot[Any]) -> ApprovalDialog:
    await submit(pilot, "clean")
    await wait_for_screen(pilot, ApprovalDialog)
    await pilot.pause()
    assert isinstance(app.screen, ApprovalDialog)
    return app.screen


def visible_text(app: HermesApp) -> list[str]:
    lines = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip) for strip in lines]


@pytest.mark.parametrize("size", SIZES)
async def test_the_risky_line_and_the_answers_are_in_view(
    opened: Open, size: tuple[int, int]
) -> None:
    app = opened(script(LONG))
    async with app.run_test(size=size) as pilot:
        screen = await card(app, pilot)
        await wait_for(pilot, lambda: any("▶ rm -rf old" in line for line in visible_text(app)))
        for button in screen.query(Button):
            region = button.region
            assert region.height > 0
            assert region.bottom <= size[1]
            assert region.right <= size[0]
        assert any("once" in line for line in visible_text(app))


@pytest.mark.usefixtures("eager")
async def test_the_whole_command_can_be_scrolled(opened: Open) -> None:
    app = opened(script(LONG))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await card(app, pilot)
        area = screen.query_one("#command", VerticalScroll)
        await pilot.press("home")
        await wait_for(pilot, lambda: any("echo 0 >> log" in line for line in visible_text(app)))
        await pilot.press("pagedown")
        await wait_for(pilot, lambda: area.scroll_y > 5)
        await pilot.press("end")
        await wait_for(pilot, lambda: any("echo 19" in line for line in visible_text(app)))
        await pilot.press("escape")


@pytest.mark.usefixtures("eager")
async def test_the_agent_reads_the_reason_of_a_denial(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    app = opened(script("rm -rf old"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await card(app, pilot)
        await pilot.press("r")
        await wait_for(pilot, lambda: isinstance(screen.focused, Input))
        await pilot.press(*"not so", "enter")
        await wait_for(pilot, lambda: is_idle(app))
        results = app.conversation.call("session.history")["messages"]
    assert (tmp_path / "old").exists()
    assert "The user said: not so" in json.dumps(results)


@pytest.mark.usefixtures("eager")
async def test_an_edited_rule_is_stored(opened: Open, tmp_path: Path, hermes_home: Path) -> None:
    (tmp_path / "old").mkdir()
    app = opened(script("rm -rf old"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await card(app, pilot)
        await pilot.press("e")
        await wait_for(pilot, lambda: isinstance(screen.focused, Input))
        field = screen.query_one(Input)
        assert field.value == "run: rm -rf old"
        field.value = "rm-recursive"
        await pilot.press("enter")
        await wait_for(pilot, lambda: "covers too much" in str(screen.query_one(".keys").render()))
        field.value = "run: rm -rf old*"
        await pilot.press("enter")
        await wait_for(pilot, lambda: "old*" in str(screen.query_one("#rule", Static).render()))
        await pilot.click("#always")
        await wait_for(pilot, lambda: is_idle(app))
    assert not (tmp_path / "old").exists()
    assert json.loads((hermes_home / "approvals.json").read_text())["always"] == [
        "run: rm -rf old*"
    ]


async def test_a_file_change_is_shown_as_a_diff(opened: Open, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("first\nsecond\n")
    arguments = {"path": str(outside / "notes.txt"), "old_string": "second", "new_string": "2nd"}
    call = {"name": "patch", "arguments": arguments}
    app = opened(json.dumps([{"calls": [call]}, {"say": "Done."}]))
    async with app.run_test(size=(80, 24)) as pilot:
        await card(app, pilot)
        await wait_for(pilot, lambda: any("+2nd" in line for line in visible_text(app)))
        assert any("-second" in line for line in visible_text(app))
        await pilot.press("escape")


async def test_shift_tab_switches_to_plan_mode_and_back(opened: Open) -> None:
    app = opened("[{say: Hi.}]")
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, lambda: any("workspace" in line for line in visible_text(app)))
        await pilot.press("shift+tab")
        await wait_for(pilot, lambda: any("plan ·" in line for line in visible_text(app)))
        await pilot.press("shift+tab")
        await wait_for(pilot, lambda: any("workspace ·" in line for line in visible_text(app)))
