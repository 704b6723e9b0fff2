"""Files of a project that run commands: the question in the terminal UI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static

from hermes_agent.project.files import read_project
from hermes_agent.project.trust import TrustStore
from hermes_tui.prompt import Prompt
from hermes_tui.trust_dialog import TrustDialog
from support.screens import is_idle, notice_texts, submit, submit_and_wait, user_texts, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.app import App
    from textual.pilot import Pilot

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    servers = {"mcpServers": {"db": {"command": "no-such-program", "args": ["--serve"]}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(servers))
    (tmp_path / ".hermes" / "commands").mkdir(parents=True)
    (tmp_path / ".hermes" / "commands" / "greet.md").write_text("Say hello to $1.")
    return tmp_path


def is_asking(app: App[None]) -> bool:
    return isinstance(app.screen, TrustDialog) and bool(app.screen.query("#no"))


@pytest.fixture
def delay(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set how long the question ignores keys; at first, for longer than a test takes."""

    def set_seconds(seconds: float) -> None:
        monkeypatch.setattr("hermes_tui.dialogs.MIN_VISIBLE_SECONDS", seconds)
        monkeypatch.setattr("hermes_tui.dialogs.TYPING_PAUSE_SECONDS", seconds)

    set_seconds(600)
    return set_seconds


async def answer(pilot: Pilot[None], delay: Callable[[float], None], key: str) -> str:
    """Wait for the question, answer it, and return its text."""
    app = pilot.app
    await wait_for(pilot, lambda: is_asking(app))
    text = "\n".join(str(part.render()) for part in app.screen.query(Static))
    await pilot.press("y")  # too early, as if typed for the input
    assert isinstance(app.screen, TrustDialog)
    delay(0)
    await pilot.press(key)
    delay(600)
    await wait_for(pilot, lambda: not isinstance(app.screen, TrustDialog))
    return text


async def test_a_no_keeps_files_ignored_and_a_changed_file_asks_again(
    opened: Open, project: Path, delay: Callable[[float], None]
) -> None:
    app = opened("[{say: One.}, {say: Two.}, {say: Three.}]")
    async with app.run_test(size=(80, 24)) as pilot:
        text = await answer(pilot, delay, "n")
        assert "MCP server db runs: no-such-program --serve" in text
        assert "command /greet: Say hello to $1." in text
        await wait_for(pilot, lambda: "stay ignored" in "".join(notice_texts(app)))
        assert not TrustStore().assess(read_project(project)).trusted
        await submit(pilot, "/greet Ada")
        await wait_for(pilot, lambda: "greet" in notice_texts(app)[-1])
        await wait_for(pilot, lambda: is_idle(app))
        await submit_and_wait(pilot, "hello")
        await pilot.pause()
        assert not isinstance(app.screen, TrustDialog)  # as decided

        (project / ".hermes" / "commands" / "greet.md").write_text("Greet $1 politely.")
        await submit(pilot, "and now")
        assert "Greet $1 politely." in await answer(pilot, delay, "y")
        await wait_for(pilot, lambda: "Trusted 2 files" in "".join(notice_texts(app)))
        assert "/greet" in [command.name for command in app.conversation.commands]
        await submit_and_wait(pilot, "/greet Ada")
        assert user_texts(app)[-1] == "Greet Ada politely."


async def test_esc_decides_nothing_and_the_command_asks_again(
    opened: Open, project: Path, delay: Callable[[float], None]
) -> None:
    app = opened("[{say: One.}]")
    async with app.run_test(size=(80, 24)) as pilot:
        await answer(pilot, delay, "escape")
        await submit_and_wait(pilot, "hello")
        await pilot.pause()
        assert not isinstance(app.screen, TrustDialog)
        assert TrustStore().assess(read_project(project)).must_ask
        await submit(pilot, "/trust")
        await answer(pilot, delay, "enter")  # the focus is on no
        await wait_for(pilot, lambda: not TrustStore().assess(read_project(project)).must_ask)
        assert app.query_one(Prompt).text == ""


async def test_the_answers_stay_visible_below_many_files(opened: Open, project: Path) -> None:
    for number in range(60):
        (project / ".hermes" / "commands" / f"c{number}.md").write_text("Do it.")
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, lambda: is_asking(app))
        await wait_for(pilot, lambda: 0 < app.screen.query_one("#no").region.bottom <= 23)
        area = app.screen.query_one("#files")
        await pilot.press("end")
        await wait_for(pilot, lambda: area.scroll_y == area.max_scroll_y > 0)
