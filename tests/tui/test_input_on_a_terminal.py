"""The habits of a day in a real terminal of 80x24: menu, mentions, shell lines, copy, keys."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hermes_state import SessionDB
from support.command_line import command
from support.tmux import Tmux

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS, LINES = 80, 24
ANSI_COLOR = re.compile(r"\x1b\[[0-9;]*?\b(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])\b[0-9;]*m")


def start(terminal: Tmux, folder: Path, model: str, *more: str) -> None:
    terminal.type(f"cd {folder}\n")
    terminal.run(command("tui", "--no-daemon", "--model", model, *more))
    terminal.wait_for("F1 keys")


def test_a_message_with_a_file_and_a_shell_line(tmp_path: Path, serve: Any) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "watering.py").write_text("dry = 0.3\n")
    steps = [
        {"calls": [{"name": "terminal", "arguments": {"command": "echo one; echo two; exit 3"}}]},
        {"say": "It is dry.\n\n```sh\nmake water\n```\n"},
    ]
    with Tmux(tmp_path, COLUMNS, LINES) as terminal:
        terminal._tmux("set", "-s", "set-clipboard", "on")
        start(terminal, folder, serve(json.dumps(steps)))
        terminal.type("!echo hello from the shell; exit 4\n")
        screen = terminal.wait_for("exit code 4")
        assert "hello from the shell" in screen.partition("exit code 4")[2]
        terminal.type("#the pump runs at night\n")
        terminal.wait_for("Remembered in")
        terminal.type("see @wtr")
        terminal.wait_for("❯ watering.py")  # noqa: RUF001 - the mark of the selection
        terminal.press("Tab")
        terminal.wait_for("see @watering.py")
        terminal.press("Enter")
        screen = terminal.wait_for("make water")
        assert "+ file watering.py, 1 line" in screen
        assert "+ output of the user's command" in screen
        assert re.search(r"✗ terminal echo one; echo two; exit 3  exit code 3  \d+\.\d s", screen)
        assert "  one\n" in screen
        terminal.type("/copy 1\n")
        terminal.wait_for("Copied 10 characters.")
        terminal.wait_until(
            lambda _: terminal._tmux("show-buffer").strip() == "make water", "the clipboard"
        )
        terminal.press("C-d")
        terminal.wait_for_end()
    with SessionDB() as db:
        parts = db.get_messages(db.list_sessions_rich(limit=1)[0]["id"])[0]["content"]
    assert [part["text"].partition("\n")[0] for part in parts] == [
        "see @watering.py",
        "[Attached output of the user's command `echo hello from the shell; exit 4`, exit code 4]",
        "[Attached file watering.py, 1 line]",
    ]


def test_the_dialogs_fit_and_the_program_can_be_suspended(tmp_path: Path, serve: Any) -> None:
    with SessionDB() as db:
        for number in range(30):
            session_id = db.create_session(f"s{number}", "tui")
            text = f"conversation {number}, whose first words are longer than a line of the list"
            db.append_messages_batch(session_id, [{"role": "user", "content": text}])
    with Tmux(tmp_path, COLUMNS, LINES) as terminal:
        start(terminal, tmp_path, serve("[]"))
        terminal.press("C-r")
        screen = terminal.wait_until(lambda screen: screen.count("1 message") >= 8, "the list")
        assert "Del Del trash" in screen
        assert all("1 message" in line for line in screen.splitlines() if "conversation " in line)
        terminal.press("Escape")
        terminal.wait_until(lambda screen: "Del Del trash" not in screen, "the list to close")
        terminal.press("F1")
        screen = terminal.wait_for("/copy copies")
        assert "Enter        send" in screen
        terminal.press("Escape")
        terminal.wait_until(lambda screen: "/copy copies" not in screen, "the keys to close")
        terminal.type("/sto")
        terminal.wait_for("❯ /stop")  # noqa: RUF001 - the mark of the selection
        terminal.press("C-c")
        terminal.press("C-z")
        terminal.wait_for("Stopped")
        terminal.type("fg\n")
        terminal.wait_for("F1 keys")
        terminal.type("/status\n")
        terminal.wait_for("conversation  ")
        terminal.press("C-d")


def test_no_color_means_no_color(tmp_path: Path, serve: Any) -> None:
    with Tmux(tmp_path, COLUMNS, LINES, NO_COLOR="1") as terminal:
        start(terminal, tmp_path, serve("[{say: '**Bold** and `code`.'}]"))
        terminal.type("hello\n")
        terminal.wait_for("Bold and code.")
        assert not ANSI_COLOR.findall(terminal.screen(styled=True))
        terminal.press("C-d")
        terminal.wait_for_end()
