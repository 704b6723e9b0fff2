"""The terminal UI and the daemon in real terminals: turns continue after windows close."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_core.instance_record import DAEMON
from hermes_state import SessionDB
from support.command_line import command
from support.daemons import wait_until
from support.drafts import draft_text
from support.model_servers import model_argument
from support.scripted_server import ScriptServer
from support.tmux import Tmux

if TYPE_CHECKING:
    from pathlib import Path

SLOW = "one two three four five six seven eight nine ten eleven twelve"


def latest() -> dict[str, Any]:
    with SessionDB() as db:
        return dict(db.list_sessions_rich(limit=1)[0])


def test_a_turn_continues_after_its_window_is_closed_and_is_resumed(
    tmp_path: Path, serve: Any
) -> None:
    name = serve(f"[{{say: {SLOW}, pause: 0.3}}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("--model", name))
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("three")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("-c", "--model", name))
        terminal.wait_for("three")  # streamed before
        terminal.wait_for("twelve")  # streamed now
        terminal.wait_until(lambda screen: "working" not in screen, "the end of the turn")
        terminal.press("C-d")
        assert "To continue: `hermes -r" in terminal.wait_for_end()
    wait_until(lambda: latest()["end_reason"] == "tui_close")


@pytest.mark.usefixtures("serve")
def test_a_turn_continues_after_quitting(tmp_path: Path) -> None:
    script = ModelScript.parse(f"steps: [{{say: {SLOW}, pause: 0.3}}]")
    with ScriptServer(script) as server, Tmux(tmp_path, 100, 30) as terminal:
        limits = ("--effort", "low", "--max-output-tokens", "99", "--max-turns", "4")
        terminal.run(command(*limits, "--model", model_argument(server)))
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("three")
        terminal.press("C-d")
        assert "continues in the background" in terminal.wait_for_end()
        with SessionDB() as db:
            session_id = latest()["id"]
            wait_until(lambda: db.get_messages(session_id)[-1]["content"] == SLOW)
        assert server.requests[0]["reasoning_effort"] == "low"
        assert 99 in server.requests[0].values()


def test_the_ui_reconnects_after_the_daemon_is_killed(tmp_path: Path, serve: Any) -> None:
    name = serve(f"[{{say: {SLOW}, pause: 0.5}}, {{say: Once more.}}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("--model", name))
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("four")
        wait_until(lambda: "four" in draft_text())
        record = DAEMON.find()
        assert record is not None
        os.kill(record.pid, signal.SIGKILL)
        terminal.wait_for("Reconnected")
        assert "four" in terminal.screen()
        terminal.type("again\n")
        terminal.wait_for("Once more.")
        terminal.press("C-d")
        terminal.wait_for_end()


def test_input_is_edited_in_an_external_editor(tmp_path: Path, serve: Any) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "from the editor" > "$1"\n')
    editor.chmod(0o755)
    name = serve("[{say: Read.}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(["env", f"EDITOR={editor}", *command("--no-daemon", "--model", name)])
        terminal.wait_for("F1 keys")
        terminal.press("C-g")
        terminal.wait_for("from the editor")
        terminal.press("Enter")
        terminal.wait_for("Read.")
        terminal.press("C-d")
        terminal.wait_for_end()


def test_queued_input_is_shown_after_reconnecting(tmp_path: Path, serve: Any) -> None:
    name = serve(f"[{{say: {SLOW}, pause: 0.4}}, {{say: Later.}}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("--model", name))
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("two")
        terminal.type("/queue and then?\n")
        terminal.wait_until(lambda screen: "/queue" not in screen, "the command")
        time.sleep(0.3)
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("-c", "--model", name))
        terminal.wait_for("and then?")
        terminal.wait_for("Later.")
        terminal.press("C-d")
        terminal.wait_for_end()
