"""A conversation continued by another process is sent to the model as it was shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from hermes_agent.context.window import LOST_RESULT_TEXT
from support.command_line import command
from support.drafts import draft_text
from support.model_servers import model_argument, model_servers
from support.rendered_history import (
    Messages,
    after_interruption,
    assert_extends,
    serialised,
    user_message,
)
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ScriptServer]]:
    monkeypatch.chdir(tmp_path)
    with model_servers() as start:
        yield start


@contextmanager
def chat_process(server: ScriptServer, question: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `hermes chat -q` as a process that is killed at the end of the test."""
    arguments = command("chat", "-q", question, "--model", model_argument(server))
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def continue_chat(hermes: Hermes, server: ScriptServer, question: str) -> Messages:
    """Continue the latest conversation in a new process; return the messages of the request."""
    done = hermes("chat", "-c", "-q", question, "--model", model_argument(server))
    assert done.code == 0, done.err
    return list(server.requests[-1]["messages"])


def read_until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    assert process.stdout is not None
    output = b""
    while word not in output:
        piece = os.read(process.stdout.fileno(), 100)
        assert piece, "the process ended early"
        output += piece
    return output


def assistant_message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_after_an_orderly_end(hermes: Hermes, serve: Any) -> None:
    server = serve("[{say: A1}, {say: A2}, {say: A3}]")
    first = hermes("chat", "-q", "one", "--model", model_argument(server))
    assert first.out == "A1\n"
    two = continue_chat(hermes, server, "two")
    three = continue_chat(hermes, server, "three")
    exchange = [
        user_message("one"),
        assistant_message("A1"),
        user_message("two"),
        assistant_message("A2"),
        user_message("three"),
    ]
    assert serialised(three[1:]) == serialised(exchange)
    assert_extends(server.requests[0]["messages"], two)
    assert_extends(two, three)


def test_after_a_signal_in_mid_stream(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.1}}, {{say: A2}}, {{say: A3}}]")
    with chat_process(server, "count") as process:
        output = read_until(process, b"four")
        process.send_signal(signal.SIGTERM)
        output += process.communicate(timeout=PATIENCE_SECONDS)[0]
    sent = continue_chat(hermes, server, "and?")
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[2]["content"].strip() == output.decode().strip()
    assert_extends(sent, continue_chat(hermes, server, "and then?"))


def test_after_a_kill_in_mid_stream(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.3}}, {{say: A2}}, {{say: A3}}]")
    with chat_process(server, "count") as process:
        output = read_until(process, b"four")
        wait_until(lambda: "four" in draft_text(), "what was shown")
    sent = continue_chat(hermes, server, "and?")
    assert serialised([sent[1], sent[3]]) == serialised(
        [user_message("count"), after_interruption("and?")]
    )
    assert sent[2]["content"].startswith(output.decode().strip())
    assert SLOW.startswith(sent[2]["content"].strip())
    assert_extends(sent, continue_chat(hermes, server, "and then?"))


def test_after_a_kill_in_mid_tool(hermes: Hermes, serve: Any, tmp_path: Path) -> None:
    shell = {"name": "terminal", "arguments": {"command": "touch started; sleep 300"}}
    server = serve(f"[{{say: Wait., calls: [{json.dumps(shell)}]}}, {{say: A2}}, {{say: A3}}]")
    with chat_process(server, "go"):
        wait_until((tmp_path / "started").exists, "the command")
    sent = continue_chat(hermes, server, "and?")
    roles = [message["role"] for message in sent]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["content"] == "Wait."
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]
    assert sent[3]["content"] == f"Error: {LOST_RESULT_TEXT}"
    assert_extends(server.requests[0]["messages"], sent)
    assert_extends(sent, continue_chat(hermes, server, "and then?"))


def test_another_folder_is_told_to_the_model_and_not_shown(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve("[{say: A1}, {say: A2}, {say: A3}]")
    hermes("chat", "-q", "one", "--model", model_argument(server))
    session_id = json.loads(hermes("sessions", "list", "--json").out)[0]["id"]
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "AGENTS.md").write_text("Use tabs.")
    monkeypatch.chdir(other)
    hermes("chat", "-r", session_id, "-q", "two", "--model", model_argument(server))
    sent = server.requests[-1]["messages"]
    assert f"\n- Working folder: {other}\n" in sent[-1]["content"]
    assert "Use tabs." in sent[-1]["content"]
    assert sent[-1]["content"].endswith("]\n\ntwo")
    assert_extends(server.requests[0]["messages"], sent)
    hermes("chat", "-r", session_id, "-q", "three", "--model", model_argument(server))
    assert server.requests[-1]["messages"][-1] == user_message("three")
    assert_extends(sent, server.requests[-1]["messages"])
    shown = hermes("sessions", "show", session_id).out
    assert "two" in shown
    assert "System note" not in shown
    assert "System note" not in hermes("sessions", "search", "folder").out
    for suffix in ("md", "html"):
        path = tmp_path / f"export.{suffix}"
        hermes("sessions", "export", "--session", session_id, str(path))
        assert "System note" not in path.read_text()
