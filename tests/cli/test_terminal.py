"""On a pseudo-terminal: colours, and tables as wide as the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.terminal_text import width
from hermes_state import SessionDB
from support.terminal import spawn

if TYPE_CHECKING:
    from pathlib import Path


def on_terminal(*arguments: str, columns: int = 80) -> str:
    child = spawn(*arguments, dimensions=(24, columns))
    output = str(child.read())
    child.close()
    assert child.exitstatus == 0, output
    return output


@pytest.mark.usefixtures("history")
def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[36m" in on_terminal("sessions", "list")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal("sessions", "list")


@pytest.mark.usefixtures("history")
def test_no_colours_on_a_dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in on_terminal("sessions", "list")


def test_the_setting_decides(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    (history / "config.yaml").write_text("display:\n  color: never\n")
    assert "\x1b" not in on_terminal("sessions", "list")


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("columns", [36, 60, 80, 132])
def test_tables_fit_the_screen(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with SessionDB() as db:
        db.create_session("wide", "cli")
        db.append_message("wide", "user", content="世界" * 200)
    for line in on_terminal("sessions", "list", columns=columns).splitlines():
        assert width(line) <= columns


@pytest.mark.usefixtures("hermes_home")
def test_an_export_sends_no_control_characters_to_a_terminal() -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", content="before \x1b]0;other title\x07 after")
    output = on_terminal("sessions", "export", "--session", "s", "--format", "md")
    assert "other title" in output
    assert not {"\x1b", "\x07"} & set(output)
