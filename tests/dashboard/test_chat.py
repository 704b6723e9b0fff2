"""Chat from the page: the dashboard's WebSocket, the real daemon and a scripted model."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed

from hermes_core.config.file import ConfigFile
from hermes_core.instance_record import DAEMON
from hermes_dashboard.resources.chat import PAGE_METHODS
from support.chat_page import page
from support.daemons import wait_until
from support.plugin_folders import make_plugin
from tui_gateway import frames
from tui_gateway.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

SLOW = "one two three four five six seven eight nine ten eleven twelve"


def test_a_question_is_answered(served: RunningDashboard, serve: Any, db: SessionDB) -> None:
    with page(served) as client:
        assert "prompt.submit" in client.wait_for("gateway.ready")["methods"]
        opened = client.open(model=serve("[{say: Hello from the script.}]"), source="dashboard")
        client.call("prompt.submit", text="hi")
        assert client.wait_for("message.complete")["text"] == "Hello from the script."
        stored = opened["stored_session_id"]
        said = [row["content"] for row in db.get_messages(stored)]
        assert said == ["hi", "Hello from the script."]


def test_a_signed_in_browser_can_connect(served: RunningDashboard, serve: Any) -> None:
    serve("[]")
    cookie = served.access.cookies.create("")
    headers = {"Cookie": f"{served.access.origins.cookie}={cookie}"}
    with page(served, headers=headers, origin=served.url) as client:
        client.wait_for("gateway.ready")


def test_a_lost_page_resumes_a_running_turn(served: RunningDashboard, serve: Any) -> None:
    with page(served) as first:
        opened = first.open(model=serve(f"[{{say: {SLOW}, pause: 0.15}}]"))
        first.call("prompt.submit", text="count")
        shown = first.text_until("three")
        first.socket.socket.close()  # without a close frame
    with page(served) as second:
        result = second.open("session.resume", session_id=opened["stored_session_id"])
        assert result["running"]
        assert result["inflight"]["text"].startswith(shown)
        assert second.wait_for("message.complete")["text"] == SLOW


def test_methods_that_pages_must_not_call_are_refused(served: RunningDashboard, serve: Any) -> None:
    serve("[]")
    with page(served) as client:
        for method in sorted({*METHODS, "session.new_one"} - PAGE_METHODS):
            result = client.answer(client.send(method, command="echo x", name="x"))
            assert result["error"]["code"] == frames.UNKNOWN_METHOD
            assert method in result["error"]["message"]
        hidden = '{"jsonrpc": "2.0", "id": 99, "method": "shell\\u002eexec", "params": {}}'
        client.socket.send(hidden)
        assert client.answer(99)["error"]["code"] == frames.UNKNOWN_METHOD
        twice = '{"jsonrpc": "2.0", "id": 98, "method": "x", "method": "shell.exec"}'
        client.socket.send(twice)
        assert "not available to pages" in client.answer(98)["error"]["message"]
        client.socket.send('[{"jsonrpc": "2.0", "id": 97, "method": "shell.exec"}]')
        assert client.error()["code"] == frames.INVALID_REQUEST
        client.socket.send("no json")
        assert client.error()["code"] == frames.PARSE_ERROR


@pytest.mark.parametrize("name", ["permissions", "/permissions", "Permissions"])
@pytest.mark.parametrize("argument", [" Full ", "full now"])
def test_a_page_cannot_choose_full_mode(
    served: RunningDashboard, serve: Any, name: str, argument: str
) -> None:
    model = serve("[]")
    with page(served) as client:
        refused = client.answer(client.send("session.create", mode="full"))
        assert "Full mode" in refused["error"]["message"]
        live = client.open(model=model)["session_id"]
        changed = client.answer(client.send("session.permissions", session_id=live, mode="full"))
        assert "Full mode" in changed["error"]["message"]
        dispatched = client.send("command.dispatch", session_id=live, name=name, arg=argument)
        assert "Full mode" in client.answer(dispatched)["error"]["message"]
        assert client.call("session.permissions", session_id=live, mode="plan")["mode"] == "plan"


@pytest.mark.parametrize("method", ["session.create", "session.resume"])
def test_a_page_cannot_start_mcp_servers(served: RunningDashboard, method: str) -> None:
    servers = '[{"name": "x", "command": "touch", "args": ["/tmp/x"]}]'
    with page(served) as client:
        sent = client.send(method, session_id="any", mcp_servers=servers)
        assert "MCP servers" in client.answer(sent)["error"]["message"]


@pytest.mark.parametrize("name", ["model", "/model", "MODEL"])
def test_a_page_cannot_send_text_to_another_host(
    served: RunningDashboard, serve: Any, name: str
) -> None:
    model = serve("[]")
    with page(served) as client:
        live = client.open(model=model)["session_id"]
        url = "http://127.0.0.1:9/v1#x"
        request = client.send("command.dispatch", session_id=live, name=name, arg=url)
        assert "error" in client.answer(request)
        assert client.call("session.status", session_id=live)["model"] != "x"


@pytest.mark.parametrize(
    "path", ["~/.bash_aliases", "{home}/.bash_aliases", "../.bash_aliases", "up/.bash_aliases"]
)
def test_a_page_saves_nothing_outside_of_the_working_folder(
    served: RunningDashboard, serve: Any, path: str
) -> None:
    model = serve("[{say: Hello.}]")
    folder = Path.home() / "project"
    folder.mkdir()
    (folder / "up").symlink_to(Path.home())
    target = path.format(home=Path.home())
    with page(served) as client:
        live = client.open(model=model, cwd=str(folder))["session_id"]
        client.call("prompt.submit", session_id=live, text="touch planted")
        client.wait_for("message.complete")
        saved = client.send("session.save", session_id=live, path=target)
        assert "working folder only" in client.answer(saved)["error"]["message"]
        for name in ("Save", "export", "/export"):
            saved = client.send("command.dispatch", session_id=live, name=name, arg=target)
            assert "working folder only" in client.answer(saved)["error"]["message"]
        (folder / "link.md").symlink_to(Path.home() / ".bash_aliases")
        saved = client.send("session.save", session_id=live, path="link.md")
        assert "already exists" in client.answer(saved)["error"]["message"]
        assert not (Path.home() / ".bash_aliases").exists()
        client.call("session.save", session_id=live, path="talk.md")
    assert "touch planted" in (folder / "talk.md").read_text()


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        (".ssh", "authorized_keys"),
        ("cron.d", "job"),
        ("project", ".git/hooks/pre-commit"),
        ("project", ".envrc"),
        ("project", "conftest.py"),
        ("project", ".vscode/notes.md"),
    ],
)
def test_a_page_saves_nothing_that_a_program_runs_wherever_it_works(
    served: RunningDashboard, serve: Any, folder: str, name: str
) -> None:
    model = serve("[{say: Hello.}]")
    target = Path.home() / folder / name
    target.parent.mkdir(parents=True)
    with page(served) as client:
        live = client.open(model=model, cwd=str(Path.home() / folder))["session_id"]
        client.call("prompt.submit", session_id=live, text="touch planted")
        client.wait_for("message.complete")
        for method, fields in (
            ("session.save", {"path": name}),
            ("command.dispatch", {"name": "export", "arg": name}),
        ):
            answer = client.answer(client.send(method, session_id=live, **fields))
            assert "Choose another name" in answer["error"]["message"]
    assert not target.exists()


def test_a_command_that_is_not_listed_is_not_available(
    served: RunningDashboard, serve: Any
) -> None:
    model = serve("[]")
    with page(served) as client:
        live = client.open(model=model)["session_id"]
        sent = client.send("command.dispatch", session_id=live, name="image", arg="/etc/x.png")
        assert "not available to pages" in client.answer(sent)["error"]["message"]


WRITER = """
import pathlib
def register(ctx):
    ctx.register_command("plant", lambda text: pathlib.Path(text).expanduser().write_text("x"))
    ctx.register_command("roll", lambda text: f"rolled {text}", for_pages=True)
"""


def test_a_plugin_command_is_available_to_pages_only_if_the_plugin_says_so(
    served: RunningDashboard, serve: Any, hermes_home: Path
) -> None:
    make_plugin(hermes_home, "writer", WRITER)
    ConfigFile.of_home().set("plugins.enabled", "writer")
    model = serve("[]")
    with page(served) as client:
        live = client.open(model=model)["session_id"]
        for extra in ({}, {"surface": "screen"}):
            fields = {"session_id": live, "name": "plant", "arg": "~/.bash_aliases", **extra}
            answer = client.answer(client.send("command.dispatch", **fields))
            assert "not available to pages" in answer["error"]["message"]
        rolled = client.call("command.dispatch", session_id=live, name="roll", arg="6")
        assert rolled["output"] == "rolled 6"
        listed = client.answer(client.send("commands.catalog"))["result"]["commands"]
    assert not (Path.home() / ".bash_aliases").exists()
    names = {command["name"] for command in listed}
    assert "/roll" in names
    assert not names & {"/plant", "/quit", "/image", "/rewind", "/whoami"}


def test_an_oversized_frame_is_an_error_and_the_connection_stays_open(
    served: RunningDashboard, serve: Any
) -> None:
    serve("[]")
    with page(served) as client:
        client.wait_for("gateway.ready")
        client.socket.send('{"x": "' + "x" * frames.MAX_FRAME_BYTES + '"}')
        assert client.error()["code"] == frames.PARSE_ERROR
        client.call("session.active_list")


def test_a_long_history_is_one_response(
    served: RunningDashboard, serve: Any, db: SessionDB
) -> None:
    db.create_session("long", source="cli")
    for number in range(40):
        db.append_message("long", "user", f"{number} " + "x" * 100_000)
    with page(served) as client:
        result = client.open("session.resume", session_id="long", model=serve("[]"))
        assert sum(len(str(message)) for message in result["messages"]) > 3_000_000


def test_a_page_reconnects_to_a_new_daemon_after_a_crash(
    served: RunningDashboard, serve: Any
) -> None:
    serve("[]")
    with page(served) as client:
        client.wait_for("gateway.ready")
        record = DAEMON.find()
        assert record is not None
        os.kill(record.pid, signal.SIGKILL)
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
        assert "daemon" in caught.value.rcvd.reason
    wait_until(lambda: DAEMON.find() is None)
    with page(served) as other:
        other.wait_for("gateway.ready")


def test_binary_frames_are_rejected(served: RunningDashboard, serve: Any) -> None:
    serve("[]")
    with page(served) as client:
        client.wait_for("gateway.ready")
        client.socket.send(b"{}")
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1003


def test_shutdown_closes_the_socket_but_not_the_conversation(
    served: RunningDashboard, serve: Any
) -> None:
    serve("[]")
    with page(served) as client:
        client.wait_for("gateway.ready")
        assert served.app.metrics.sockets._value.get() == 1
        served.app.shutdown_signal.send()
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
    wait_until(lambda: served.app.metrics.sockets._value.get() == 0)
    assert DAEMON.find() is not None


def test_a_page_cannot_send_a_conversation_to_another_host(
    served: RunningDashboard, serve: Callable[[str], str]
) -> None:
    with page(served) as client:
        client.open(model=serve("[{say: hi}]"))
        for method, params in (
            ("session.create", {"model": "http://127.0.0.1:9/v1#x"}),
            ("command.dispatch", {"session_id": client.live, "name": "model",
                                  "arg": " https://evil.example/v1#x"}),
        ):  # fmt: skip
            client.send(method, **params)
            assert "not a configured endpoint" in client.error()["message"]


def test_a_chat_of_the_page_works_where_the_dashboard_was_started(
    served: RunningDashboard, serve: Callable[[str], str]
) -> None:
    call = "{name: terminal, arguments: {command: pwd; echo hello > made.txt}}"
    model = serve(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    with page(served) as client:
        client.open(model=model)
        client.call("prompt.submit", text="go")
        client.wait_for("message.complete")
    folder = Path(served.client.get("/api/workspaces").json()["default"])
    assert (folder / "made.txt").read_text() == "hello\n"
