"""However a conversation is left, in the middle of an answer or of a command: what was shown
is stored, its row is ended for the right reason, plugins hear of it once, no command is left.

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
from support.command_line import command
from support.drafts import drafted
from support.listening import Listener
from support.processes import is_command_running, unique_sleep
from support.scripted import model, serving
from support.wire import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes

SLOW = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
# It does not go when it is asked to, so that a second Ctrl-C comes while the first one waits.
SLEEP = unique_sleep()
STUBBORN = f"trap '' TERM; echo started > pid; {SLEEP} & wait; sleep 300"


class Terminal:
    """`hermes chat` in a window, in the middle of a turn."""

    def __init__(self, address: str, folder: Path) -> None:
        self._log = io.StringIO()
        program, *words = command("chat", "--model", address)
        environment: Any = {**os.environ, "TERM": "xterm-256color"}
        self.child = pexpect.spawn(
            program, words, encoding="utf-8", timeout=60, cwd=str(folder), env=environment
        )
        self.child.logfile_read = self._log
        self.child.expect("/help")
        self.child.expect(">")
        self.child.sendline("go")

    def wait_for(self, text: str) -> None:
        self.child.expect(text)

    def shown(self) -> str:
        """What was shown of the answer so far."""
        result = re.findall(r"(?:one|Wait\.)[a-z ]*", self._log.getvalue())
        return str(result[0]).strip() if result else ""

    def ended(self) -> None:
        """Wait for the end of the process, and of its output."""
        self.child.expect(pexpect.EOF)
        self.child.close()


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with serving() as start:
        yield lambda steps: model(start(steps))


@pytest.fixture
def listener(hermes_home: Path) -> Listener:
    return Listener(hermes_home)


def mid_stream(serve: Any, folder: Path) -> Terminal:
    terminal = Terminal(serve(f"[{{say: {SLOW}, pause: 0.3}}, {{say: no}}]"), folder)
    terminal.wait_for("four")
    return terminal


def mid_tool(serve: Any, folder: Path) -> Terminal:
    call = json.dumps({"name": "terminal", "arguments": {"command": STUBBORN}})
    terminal = Terminal(serve(f"[{{say: Wait., calls: [{call}]}}, {{say: no}}]"), folder)
    terminal.wait_for(r"Wait\.")
    wait_until(lambda: has_begun(folder), "the command")
    return terminal


def has_begun(folder: Path) -> bool:
    return (folder / "pid").exists() and bool((folder / "pid").read_text().strip())


def terminate(terminal: Terminal) -> None:
    terminal.child.kill(signal.SIGTERM)
    terminal.ended()


def hang_up(terminal: Terminal) -> None:
    terminal.child.kill(signal.SIGHUP)
    terminal.ended()


def close_window(terminal: Terminal) -> None:
    os.close(terminal.child.child_fd)
    terminal.child.wait()


def interrupt_and_leave(terminal: Terminal) -> None:
    terminal.child.sendintr()
    terminal.child.expect(r"\x1b\[\?2004h")  # the prompt is back
    terminal.child.expect(">")
    terminal.child.sendeof()
    terminal.ended()


def interrupt_twice(seconds: float) -> Callable[[Terminal], None]:
    def leave(terminal: Terminal) -> None:
        terminal.child.sendintr()
        time.sleep(seconds)
        terminal.child.sendintr()
        terminal.ended()

    return leave


def kill(terminal: Terminal) -> None:
    terminal.child.kill(signal.SIGKILL)
    terminal.ended()


ORDERLY = {
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


def is_kept(shown: str) -> bool:
    """Whether the answer so far is stored, as a draft or as a message."""
    _, messages = conversation()
    return shown in drafted() or shown in [message["content"] for message in messages]


def assert_no_command_is_left(folder: Path) -> None:
    if has_begun(folder):
        wait_until(lambda: not is_command_running(SLEEP), "the end of the command")


@pytest.mark.parametrize("moment", [mid_stream, mid_tool])
@pytest.mark.parametrize("end", ORDERLY)
def test_an_orderly_end_of_chat(
    serve: Any, listener: Listener, tmp_path: Path, moment: Any, end: str
) -> None:
    terminal = moment(serve, tmp_path)
    ORDERLY[end](terminal)
    row, messages = conversation()
    shown = terminal.shown()
    assert shown
    assert messages[1]["content"].startswith(shown)
    assert row["end_reason"] == "cli_close"
    assert listener.of(row["id"]) == ["on_session_end", "on_session_finalize"]
    assert_no_command_is_left(tmp_path)
    roles = ["user", "assistant", "tool"] if moment is mid_tool else ["user", "assistant"]
    assert [message["role"] for message in messages] == roles


@pytest.mark.parametrize("moment", [mid_stream, mid_tool])
def test_a_kill_of_chat_is_settled_by_the_next_process(
    serve: Any, listener: Listener, tmp_path: Path, hermes: Hermes, moment: Any
) -> None:
    terminal = moment(serve, tmp_path)
    shown = terminal.shown()
    wait_until(lambda: is_kept(shown), "what was shown")
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
    assert messages[1]["content"].startswith(shown)
    assert moment is mid_tool or messages[1]["finish_reason"] == "interrupted"
    assert listener.of(row["id"]).count("on_session_finalize") == 1
    assert listener.of(row["id"]).count("on_session_end") <= 1
    assert_no_command_is_left(tmp_path)


@pytest.fixture
def client(listener: Listener) -> Iterator[Client]:
    del listener  # the plugin is there before the server starts
    result = Client()
    yield result
    result.close()


def rpc_mid_stream(client: Client, serve: Any, folder: Path) -> tuple[str, str]:
    address = serve(f"[{{say: {SLOW}, pause: 0.3}}]")
    live = client.call("session.create", model=address, cwd=str(folder))["session_id"]
    client.call("prompt.submit", session_id=live, text="go")
    return live, client.text_until("four").strip()


def rpc_mid_tool(client: Client, serve: Any, folder: Path) -> tuple[str, str]:
    call = json.dumps({"name": "terminal", "arguments": {"command": STUBBORN}})
    address = serve(f"[{{say: Wait., calls: [{call}]}}, {{say: no}}]")
    live = client.call("session.create", model=address, cwd=str(folder))["session_id"]
    client.call("prompt.submit", session_id=live, text="go")
    wait_until(lambda: has_begun(folder), "the command")
    return live, "Wait."


@pytest.mark.parametrize("moment", [rpc_mid_stream, rpc_mid_tool])
@pytest.mark.parametrize("is_interrupted", [False, True], ids=["close", "interrupt, then close"])
def test_closing_one_conversation_of_the_server(
    client: Client,
    listener: Listener,
    serve: Any,
    tmp_path: Path,
    moment: Any,
    is_interrupted: bool,
) -> None:
    live, shown = moment(client, serve, tmp_path)
    if is_interrupted:
        client.call("session.interrupt", session_id=live)
        assert client.until("message.complete")["status"] == "interrupted"
        assert conversation()[0]["end_reason"] is None
    client.call("session.close", session_id=live)
    wait_until(lambda: conversation()[0]["end_reason"] is not None, "the end of the row")
    row, messages = conversation()
    assert row["end_reason"] == "tui_close"
    assert messages[1]["content"].startswith(shown)
    wait_until(lambda: "on_session_finalize" in listener.of(row["id"]), "the hook")
    assert listener.of(row["id"]) == ["on_session_end", "on_session_finalize"]
    assert_no_command_is_left(tmp_path)
