"""Exits in the middle of an answer or a command: the shown text is stored, the session has the
right end reason, the hooks are called once, and no command keeps running.

The table of docs/explanation/what-survives.md, on a real terminal; for the terminal UI's
server see tests/tui_gateway and the end of this file.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from acceptance.campaign import wait_until
from hermes_state import SessionDB
from support.boundary_recorder import BoundaryRecorder
from support.command_line import command
from support.drafts import draft_text
from support.model_servers import model_argument, model_servers
from support.processes import is_command_running, unique_sleep
from support.waiting import PATIENCE_SECONDS
from support.wire import RpcClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes

SLOW = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
# Ignores SIGTERM, so that a second Ctrl-C arrives while the first one waits.
SLEEP = unique_sleep()
STUBBORN = f"trap '' TERM; echo started > pid; {SLEEP} & wait; sleep 300"


class ChatTerminal:
    """`hermes chat` on a terminal, in the middle of a turn."""

    def __init__(self, address: str, folder: Path) -> None:
        self._log = io.StringIO()
        program, *arguments = command("chat", "--model", address)
        environment: Any = {**os.environ, "TERM": "xterm-256color"}
        self.child = pexpect.spawn(
            program,
            arguments,
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
            cwd=str(folder),
            env=environment,
        )
        self.child.logfile_read = self._log
        self.child.expect("/help")
        self.child.expect(">")
        self.child.sendline("go")

    def wait_for(self, text: str) -> None:
        self.child.expect(text)

    def printed(self) -> str:
        """The part of the answer that was printed so far."""
        matches = re.findall(r"(?:one|Wait\.)[a-z ]*", self._log.getvalue())
        return str(matches[0]).strip() if matches else ""

    def wait_for_exit(self) -> None:
        """Wait for the end of the process and its output."""
        self.child.expect(pexpect.EOF)
        self.child.close()


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with model_servers() as start:
        yield lambda steps: model_argument(start(steps))


@pytest.fixture
def recorder(hermes_home: Path) -> BoundaryRecorder:
    return BoundaryRecorder(hermes_home)


def mid_stream(serve: Any, folder: Path) -> ChatTerminal:
    terminal = ChatTerminal(serve(f"[{{say: {SLOW}, pause: 0.3}}, {{say: no}}]"), folder)
    terminal.wait_for("four")
    return terminal


def mid_tool(serve: Any, folder: Path) -> ChatTerminal:
    call = json.dumps({"name": "terminal", "arguments": {"command": STUBBORN}})
    terminal = ChatTerminal(serve(f"[{{say: Wait., calls: [{call}]}}, {{say: no}}]"), folder)
    terminal.wait_for(r"Wait\.")
    wait_until(lambda: has_started(folder), "the command")
    return terminal


def has_started(folder: Path) -> bool:
    return (folder / "pid").exists() and bool((folder / "pid").read_text().strip())


def terminate(terminal: ChatTerminal) -> None:
    terminal.child.kill(signal.SIGTERM)
    terminal.wait_for_exit()


def hang_up(terminal: ChatTerminal) -> None:
    terminal.child.kill(signal.SIGHUP)
    terminal.wait_for_exit()


def close_window(terminal: ChatTerminal) -> None:
    os.close(terminal.child.child_fd)
    terminal.child.wait()


def interrupt_and_leave(terminal: ChatTerminal) -> None:
    terminal.child.sendintr()
    terminal.child.expect(r"\x1b\[\?2004h")  # the prompt is back
    terminal.child.expect(">")
    terminal.child.sendeof()
    terminal.wait_for_exit()


def interrupt_twice(seconds: float) -> Callable[[ChatTerminal], None]:
    def leave(terminal: ChatTerminal) -> None:
        terminal.child.sendintr()
        time.sleep(seconds)
        terminal.child.sendintr()
        terminal.wait_for_exit()

    return leave


def kill(terminal: ChatTerminal) -> None:
    terminal.child.kill(signal.SIGKILL)
    terminal.wait_for_exit()


ORDERLY_EXITS = {
    "SIGTERM": terminate,
    "SIGHUP": hang_up,
    "the window is closed": close_window,
    "Ctrl-C, then the end of input": interrupt_and_leave,
    # Without any pause the kernel may make one signal of two.
    "Ctrl-C twice, quickly": interrupt_twice(0.2),
    "Ctrl-C twice": interrupt_twice(0.8),
}


def conversation() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of the latest conversation, and its messages."""
    with SessionDB(is_recovering=False) as db:
        row = db.get_session(db.list_sessions_rich(limit=1)[0]["id"])
        assert row is not None
        return row, db.get_messages(row["id"])


def is_stored(printed: str) -> bool:
    """Whether the answer so far is stored, as a draft or as a message."""
    _, messages = conversation()
    return printed in draft_text() or printed in [message["content"] for message in messages]


def assert_no_command_is_left(folder: Path) -> None:
    if has_started(folder):
        wait_until(lambda: not is_command_running(SLEEP), "the end of the command")


@pytest.mark.parametrize("moment", [mid_stream, mid_tool])
@pytest.mark.parametrize("end", ORDERLY_EXITS)
def test_an_orderly_end_of_chat(
    serve: Any, recorder: BoundaryRecorder, tmp_path: Path, moment: Any, end: str
) -> None:
    terminal = moment(serve, tmp_path)
    ORDERLY_EXITS[end](terminal)
    row, messages = conversation()
    printed = terminal.printed()
    assert printed
    assert messages[1]["content"].startswith(printed)
    assert row["end_reason"] == "cli_close"
    assert recorder.hooks_of(row["id"]) == ["on_session_end", "on_session_finalize"]
    assert_no_command_is_left(tmp_path)
    roles = ["user", "assistant", "tool"] if moment is mid_tool else ["user", "assistant"]
    assert [message["role"] for message in messages] == roles


@pytest.mark.parametrize("moment", [mid_stream, mid_tool])
def test_a_kill_of_chat_is_settled_by_the_next_process(
    serve: Any, recorder: BoundaryRecorder, tmp_path: Path, hermes: Hermes, moment: Any
) -> None:
    terminal = moment(serve, tmp_path)
    printed = terminal.printed()
    wait_until(lambda: is_stored(printed), "what was shown")
    kill(terminal)
    row, _ = conversation()
    assert row["end_reason"] is None
    for _ in range(2):
        hermes("chat", "-q", "hi", "--model", serve("[{say: Hello.}]"))
    with SessionDB() as db:
        settled = db.get_session(row["id"])
        messages = db.get_messages(row["id"])
    assert settled is not None
    assert settled["end_reason"] == "crashed"
    assert messages[1]["content"].startswith(printed)
    assert moment is mid_tool or messages[1]["finish_reason"] == "interrupted"
    assert recorder.hooks_of(row["id"]).count("on_session_finalize") == 1
    assert recorder.hooks_of(row["id"]).count("on_session_end") <= 1
    assert_no_command_is_left(tmp_path)


@pytest.fixture
def client(recorder: BoundaryRecorder) -> Iterator[RpcClient]:
    del recorder  # the plugin must be installed before the server starts
    result = RpcClient()
    yield result
    result.close()


def rpc_mid_stream(client: RpcClient, serve: Any, folder: Path) -> tuple[str, str]:
    address = serve(f"[{{say: {SLOW}, pause: 0.3}}]")
    session_id = client.call("session.create", model=address, cwd=str(folder))["session_id"]
    client.call("prompt.submit", session_id=session_id, text="go")
    return session_id, client.text_until("four").strip()


def rpc_mid_tool(client: RpcClient, serve: Any, folder: Path) -> tuple[str, str]:
    call = json.dumps({"name": "terminal", "arguments": {"command": STUBBORN}})
    address = serve(f"[{{say: Wait., calls: [{call}]}}, {{say: no}}]")
    session_id = client.call("session.create", model=address, cwd=str(folder))["session_id"]
    client.call("prompt.submit", session_id=session_id, text="go")
    wait_until(lambda: has_started(folder), "the command")
    return session_id, "Wait."


@pytest.mark.parametrize("moment", [rpc_mid_stream, rpc_mid_tool])
@pytest.mark.parametrize("is_interrupted", [False, True], ids=["close", "interrupt, then close"])
def test_closing_a_conversation_of_the_server(
    client: RpcClient,
    recorder: BoundaryRecorder,
    serve: Any,
    tmp_path: Path,
    moment: Any,
    is_interrupted: bool,
) -> None:
    session_id, printed = moment(client, serve, tmp_path)
    if is_interrupted:
        client.call("session.interrupt", session_id=session_id)
        assert client.wait_for("message.complete")["status"] == "interrupted"
        assert conversation()[0]["end_reason"] is None
    client.call("session.close", session_id=session_id)
    wait_until(lambda: conversation()[0]["end_reason"] is not None, "the end of the row")
    row, messages = conversation()
    assert row["end_reason"] == "tui_close"
    assert messages[1]["content"].startswith(printed)
    wait_until(lambda: "on_session_finalize" in recorder.hooks_of(row["id"]), "the hook")
    assert recorder.hooks_of(row["id"]) == ["on_session_end", "on_session_finalize"]
    assert_no_command_is_left(tmp_path)
