"""A conversation that another process takes up again is sent to the model as it was shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from hermes_agent.context.repair import LOST_RESULT_TEXT
from support.command_line import command
from support.drafts import drafted
from support.scripted import model, serving
from support.shown import Sent, assert_goes_on, said, serialised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_agent.providers.scripted_server import ScriptServer
    from support.command_line import Hermes

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ScriptServer]]:
    monkeypatch.chdir(tmp_path)
    with serving() as start:
        yield start


@contextmanager
def started(server: ScriptServer, question: str) -> Iterator[subprocess.Popen[bytes]]:
    """Ask in a process of its own, which does not outlive the test."""
    words = command("chat", "-q", question, "--model", model(server))
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def gone_on(hermes: Hermes, server: ScriptServer, question: str) -> Sent:
    """Go on with the latest conversation in a new process; what the model was sent."""
    done = hermes("chat", "-c", "-q", question, "--model", model(server))
    assert done.code == 0, done.err
    return list(server.requests[-1]["messages"])


def read_until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    assert process.stdout is not None
    seen = b""
    while word not in seen:
        piece = os.read(process.stdout.fileno(), 100)
        assert piece, "it ended too soon"
        seen += piece
    return seen


def answered(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def test_after_an_orderly_end(hermes: Hermes, serve: Any) -> None:
    server = serve("[{say: A1}, {say: A2}, {say: A3}]")
    first = hermes("chat", "-q", "one", "--model", model(server))
    assert first.out == "A1\n"
    two = gone_on(hermes, server, "two")
    three = gone_on(hermes, server, "three")
    exchange = [said("one"), answered("A1"), said("two"), answered("A2"), said("three")]
    assert serialised(three[1:]) == serialised(exchange)
    assert_goes_on(server.requests[0]["messages"], two)
    assert_goes_on(two, three)


def test_after_a_signal_in_mid_stream(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.1}}, {{say: A2}}, {{say: A3}}]")
    with started(server, "count") as process:
        seen = read_until(process, b"four")
        process.send_signal(signal.SIGTERM)
        seen += process.communicate(timeout=60)[0]
    sent = gone_on(hermes, server, "and?")
    assert [item["role"] for item in sent] == ["system", "user", "assistant", "user"]
    assert sent[2]["content"].strip() == seen.decode().strip()
    assert_goes_on(sent, gone_on(hermes, server, "and then?"))


def test_after_a_kill_in_mid_stream(hermes: Hermes, serve: Any) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.3}}, {{say: A2}}, {{say: A3}}]")
    with started(server, "count") as process:
        seen = read_until(process, b"four")
        wait_until(lambda: "four" in drafted(), "what was shown")
    sent = gone_on(hermes, server, "and?")
    assert serialised([sent[1], sent[3]]) == serialised([said("count"), said("and?")])
    assert sent[2]["content"].startswith(seen.decode().strip())
    assert SLOW.startswith(sent[2]["content"].strip())
    assert_goes_on(sent, gone_on(hermes, server, "and then?"))


def test_after_a_kill_in_mid_tool(hermes: Hermes, serve: Any, tmp_path: Path) -> None:
    shell = {"name": "terminal", "arguments": {"command": "touch here; sleep 300"}}
    server = serve(f"[{{say: Wait., calls: [{json.dumps(shell)}]}}, {{say: A2}}, {{say: A3}}]")
    with started(server, "go"):
        wait_until((tmp_path / "here").exists, "the command")
    sent = gone_on(hermes, server, "and?")
    assert [item["role"] for item in sent] == ["system", "user", "assistant", "tool", "user"]
    assert sent[2]["content"] == "Wait."
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]
    assert json.loads(sent[3]["content"])["error"] == LOST_RESULT_TEXT
    assert_goes_on(server.requests[0]["messages"], sent)
    assert_goes_on(sent, gone_on(hermes, server, "and then?"))
