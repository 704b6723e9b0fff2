"""The menu above the input: commands, their arguments, mentioned files and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import Surface
from hermes_tui.completer import MAX_ROWS, CompletionMenu
from hermes_tui.prompt import Prompt
from support.screens import SIZE, notice_texts, submit_and_wait, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]


def selected(app: HermesApp) -> str:
    item = app.query_one(CompletionMenu).selected
    return "" if item is None else item.text


async def test_every_command_of_the_help_can_be_reached_in_the_menu(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        menu = app.query_one(CompletionMenu)
        await pilot.press("/")
        await wait_for(pilot, lambda: menu.is_open)
        names = [f"/{command.name}" for command in slash_commands.listed_commands(Surface.SCREEN)]
        seen = []
        for _ in names:
            seen.append(selected(app))
            assert f"❯ {selected(app)}" in str(menu.render())  # noqa: RUF001 - the mark
            await pilot.press("down")
        assert seen == names
        assert selected(app) == names[0]
        await pilot.press("up")
        assert selected(app) == names[-1]
        assert menu.size.height == MAX_ROWS + 1
        await pilot.press("escape")
        assert (menu.display, app.query_one(Prompt).text) == (False, "/")
        await submit_and_wait(pilot, "/help")
        await wait_for(pilot, lambda: notice_texts(app))
        assert all(name in notice_texts(app)[-1] for name in names)


async def test_tab_completes_the_selection_and_enter_runs_it(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"/sta")
        await wait_for(pilot, lambda: selected(app) == "/status")
        await pilot.press("tab")
        assert prompt.text == "/status "
        await pilot.press("ctrl+c", *"/stat")
        await wait_for(pilot, lambda: selected(app) == "/status")
        await pilot.press("enter")
        await wait_for(pilot, lambda: notice_texts(app) and "folder" in notice_texts(app)[-1])
        assert prompt.text == ""
        await pilot.press(*"/que", "enter")  # it needs a text
        assert prompt.text == "/queue "


async def test_enter_accepts_no_entry_for_an_earlier_input(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press("/")
        await wait_for(pilot, lambda: selected(app) == "/new")
        prompt.insert("status")  # keys that arrive together, as over a slow connection
        prompt.on_key(events.Key("enter", "\r"))
        await wait_for(pilot, lambda: len(notice_texts(app)) > 1)
        assert "folder" in notice_texts(app)[-1]
        await pilot.press("/")
        await wait_for(pilot, lambda: selected(app) == "/new")
        prompt.insert("export there.md")
        prompt.on_key(events.Key("enter", "\r"))
        await wait_for(pilot, lambda: len(notice_texts(app)) > 2)
        assert notice_texts(app)[-1] == "This conversation has no messages yet."
        await pilot.press(*"/q")
        assert selected(app) == "/quit"  # an exact name is before /queue


async def test_known_arguments_are_offered(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press(*"/permissions ")
        menu = app.query_one(CompletionMenu)
        await wait_for(pilot, lambda: menu.is_open)
        assert [item.text for item in menu.items] == ["plan", "workspace", "full", "remove"]
        await pilot.press(*"pl", "tab")
        assert app.query_one(Prompt).text == "/permissions plan "


async def test_a_mentioned_file_is_found_by_some_of_its_letters(
    opened: Open, tmp_path: Path
) -> None:
    (tmp_path / "src" / "garden").mkdir(parents=True)
    for name in ("src/garden/watering.py", "src/garden/roses.py", "notes on water.md"):
        (tmp_path / name).write_text("text\n")
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"see @wtr")
        await wait_for(pilot, lambda: selected(app) == "@src/garden/watering.py")
        await pilot.press("enter")
        assert prompt.text == "see @src/garden/watering.py "
        await pilot.press(*"and @notes")
        await wait_for(pilot, lambda: selected(app) == '@"notes on water.md"')
        await pilot.press("tab")
        assert prompt.text == 'see @src/garden/watering.py and @"notes on water.md" '


async def test_tab_completes_a_path(opened: Open, tmp_path: Path) -> None:
    for name in ("water-roses.py", "water-beds.py"):
        (tmp_path / name).touch()
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        prompt, menu = app.query_one(Prompt), app.query_one(CompletionMenu)
        await pilot.press(*"look at ./wa", "tab")
        await wait_for(pilot, lambda: prompt.text == "look at ./water-")
        await wait_for(pilot, lambda: "water-beds.py" in str(menu.render()))
        await pilot.press("r", "tab")
        await wait_for(pilot, lambda: prompt.text == "look at ./water-roses.py")


async def test_a_recalled_command_opens_no_menu(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "/status")
        await submit_and_wait(pilot, "/tools")
        await pilot.press("up")
        await pilot.pause()
        assert not app.query_one(CompletionMenu).is_open
        await pilot.press("up")
        assert app.query_one(Prompt).text == "/status"
