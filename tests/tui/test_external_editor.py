"""The external editor in a real terminal; the screen is restored in every case."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from support.command_line import command
from support.tmux import Tmux

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path, lines: str) -> Path:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("editor", "notice"),
    [("no-such-editor", "Editor not found"), ("it's", "cannot be parsed"), ("false", "code 1")],
)
def test_an_unusable_editor_is_a_notice(
    tmp_path: Path, serve: Any, editor: str, notice: str
) -> None:
    name = serve("[{say: Read.}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(["env", f"EDITOR={editor}", *command("--no-daemon", "--model", name)])
        terminal.wait_for("F1 keys")
        terminal.type("a draft")
        terminal.press("C-g")
        terminal.wait_for(notice)
        terminal.type(" goes on")
        terminal.wait_for("a draft goes on")
        terminal.press("Enter")
        terminal.wait_for("Read.")
        terminal.press("C-d")
        terminal.wait_for_end()


def test_an_editor_that_is_not_executable_is_a_notice(tmp_path: Path, serve: Any) -> None:
    editor = tmp_path / "editor"
    editor.write_bytes(b"\x7fELF nonsense")
    editor.chmod(0o755)
    with Tmux(tmp_path, 100, 30) as terminal:
        name = serve("[]")
        terminal.run(["env", f"EDITOR={editor}", *command("--no-daemon", "--model", name)])
        terminal.wait_for("F1 keys")
        terminal.press("C-g")
        terminal.wait_for("failed to start")
        terminal.press("C-d")
        terminal.wait_for_end()


def test_ctrl_c_in_an_editor_ends_the_editor_only(tmp_path: Path, serve: Any) -> None:
    editor = program(tmp_path / "editor", "echo EDITING; exec sleep 60")
    name = serve("[{say: Read.}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(["env", f"EDITOR={editor}", *command("--no-daemon", "--model", name)])
        terminal.wait_for("F1 keys")
        terminal.type("kept")
        terminal.press("C-g")
        terminal.wait_for("EDITING")
        time.sleep(0.3)
        terminal.press("C-c")
        terminal.wait_for("code -2")
        terminal.press("Enter")
        terminal.wait_for("Read.")
        terminal.press("C-d")
        terminal.wait_for_end()
