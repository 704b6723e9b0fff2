"""`hermes chat` as a real process with a real connection and a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from support.command_line import command
from support.drafts import draft_text
from support.model_servers import model_argument, model_servers
from support.plugin_folders import make_plugin
from support.processes import is_command_running, unique_sleep
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

RECORDER_CODE = """
def register(ctx):
    for name in ("on_session_start", "on_session_end", "on_session_finalize"):
        def record(name=name, **fields):
            with open({path!r}, "a") as file:
                file.write(name + " " + str(fields.get("completed")) + chr(10))
        ctx.register_hook(name, record)
"""
SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def serve() -> Iterator[Any]:
    with model_servers() as start:
        yield start


def rows(session_id: str | None = None) -> list[dict[str, Any]]:
    with SessionDB(is_recovering=False) as db:
        shown_id = session_id or db.list_sessions_rich(limit=1, order_by_last_active=True)[0]["id"]
        return db.get_messages(shown_id)


def session() -> dict[str, Any]:
    with SessionDB(is_recovering=False) as db:
        result = db.get_session(db.list_sessions_rich(limit=1)[0]["id"])
        assert result is not None
        return result


def test_a_question_and_its_answer_are_stored(hermes: Hermes, serve: Any) -> None:
    result = hermes("chat", "-q", "hi", "--model", model_argument(serve("[{say: Hello there.}]")))
    assert (result.code, result.out) == (0, "Hello there.\n")
    assert [(row["role"], row["content"]) for row in rows()] == [
        ("user", "hi"),
        ("assistant", "Hello there."),
    ]
    assert session()["end_reason"] == "cli_close"


def test_the_agent_acts_in_the_folder_it_is_called_from(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = '{name: write_file, arguments: {path: note.txt, content: "42"}}'
    server = serve(f"[{{calls: [{call}]}}, {{say: Written.}}]")
    result = hermes("chat", "-q", "write", "--model", model_argument(server))
    assert result.out == "Written.\n"
    assert (tmp_path / "note.txt").read_text() == "42"
    assert "write_file" in result.err


def test_piped_text_is_added_to_the_question(serve: Any) -> None:
    server = serve("[{say: Read.}]")
    arguments = command("chat", "-q", "what is this?", "--model", model_argument(server), "-")
    subprocess.run(
        arguments, input=b"some text", check=True, capture_output=True, timeout=PATIENCE_SECONDS
    )
    assert rows()[0]["content"] == "what is this?\n\nsome text"


def test_piped_input_is_one_question(serve: Any) -> None:
    server = serve("[{say: Read.}]")
    arguments = command("chat", "--model", model_argument(server))
    result = subprocess.run(
        arguments,
        input=b"one\ntwo\nthree\n",
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert result.stdout == b"Read.\n"
    assert result.stderr == b""
    assert [row["content"] for row in rows()] == ["one\ntwo\nthree", "Read."]


@pytest.mark.parametrize("extra_arguments", [[], ["-"], ["--json"]])
def test_no_question_without_a_terminal_is_a_usage_error(
    serve: Any, extra_arguments: list[str]
) -> None:
    arguments = command("chat", "--model", model_argument(serve("[]")), *extra_arguments)
    result = subprocess.run(
        arguments, input=b" \n", check=False, capture_output=True, timeout=PATIENCE_SECONDS
    )
    assert result.returncode == 2
    assert b'hermes chat -q "' in result.stderr


def test_events_for_programs(hermes: Hermes, serve: Any) -> None:
    result = hermes(
        "chat", "-q", "hi", "--json", "--model", model_argument(serve("[{say: Hello there.}]"))
    )
    results = [json.loads(line) for line in result.out.splitlines()]
    assert results[0]["event"] == "TurnStarted"
    assert (
        "".join(item["text"] for item in results if item["event"] == "TextDelta") == "Hello there."
    )
    assert results[-1]["event"] == "TurnFinished"
    assert results[-1]["end"] == "complete"
    assert results[-1]["usage"]["output"] > 0


def test_the_latest_conversation_of_the_directory_is_continued(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve("[{say: One.}, {say: Elsewhere.}, {say: Two.}]")
    first_folder, second_folder = tmp_path / "here", tmp_path / "there"
    for folder in (first_folder, second_folder):
        folder.mkdir()
        monkeypatch.chdir(folder)
        hermes("chat", "-q", f"first in {folder.name}", "--model", model_argument(server))
    monkeypatch.chdir(first_folder)
    result = hermes("chat", "-c", "-q", "second", "--model", model_argument(server))
    assert result.out == "Two.\n"
    sent = [message["content"] for message in server.requests[-1]["messages"]][1:]
    assert sent == ["first in here", "One.", "second"]


def test_a_failure_exits_with_1_and_a_hint(hermes: Hermes, serve: Any) -> None:
    result = hermes("chat", "-q", "hi", "--model", model_argument(serve("[{fail: {status: 401}}]")))
    assert result.code == 1
    assert result.out == ""
    assert "hermes setup" in result.err


def test_without_a_model_the_error_names_the_setup_command(hermes: Hermes) -> None:
    result = hermes("chat", "-q", "hi")
    assert result.code == 2
    assert "hermes setup" in result.err


def start_chat_process(server: ScriptServer, *extra_arguments: str) -> subprocess.Popen[bytes]:
    arguments = command("chat", "-q", "go", "--model", model_argument(server), *extra_arguments)
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )


def read_until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    assert process.stdout is not None
    output = b""
    while word not in output:
        piece = os.read(process.stdout.fileno(), 100)
        assert piece, "it ended too soon"
        output += piece
    return output


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_output_before_a_signal_is_stored(serve: Any, number: int, code: int) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.1}}]")
    process = start_chat_process(server)
    output = read_until(process, b"four")
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    output += out
    assert process.returncode == code
    last = rows()[-1]
    assert last["content"].strip() == output.decode().strip()
    assert last["finish_reason"] == "interrupted"
    assert session()["end_reason"] == "cli_close"


def test_output_before_a_kill_is_stored_except_the_last_moment(serve: Any) -> None:
    server = serve(f"[{{say: {SLOW}, pause: 0.3}}]")
    process = start_chat_process(server)
    read_until(process, b"four")
    wait_until(lambda: "four" in draft_text())
    process.kill()
    process.communicate()
    SessionDB().close()  # the next start recovers the session of the dead process
    last = rows()[-1]
    assert "four" in last["content"]
    assert last["finish_reason"] == "interrupted"
    assert session()["end_reason"] == "crashed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_command_outlives_the_conversation(
    serve: Any, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "started"
    sleep = unique_sleep()
    shell = f"echo started > started; {sleep}"
    call = json.dumps({"name": "terminal", "arguments": {"command": shell}})
    process = start_chat_process(serve(f"[{{calls: [{call}]}}, {{say: done}}]"))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (mark.exists() and mark.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)
    wait_until(lambda: not is_command_running(sleep), what="the end of the command")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


@pytest.mark.parametrize(
    ("calls", "results"),
    [
        (
            [
                call("patch", path="f.py", old_string="x = 1", new_string="x = 2"),
                call("terminal", command="python3 -c 'import f; print(f.x)'"),
            ],
            [None, "2"],
        ),
        (
            [
                call("write_file", path="new.py", content="NEW"),
                call("terminal", command="cat new.py"),
                call("read_file", path="new.py"),
            ],
            [None, "NEW", None],
        ),
        (
            [
                call("terminal", command="sleep .3; mkdir d"),
                call("terminal", command="touch d/x && echo made"),
            ],
            ["exit_code: 0", "made"],
        ),
    ],
)
def test_calls_of_one_answer_run_in_the_order_of_the_answer(
    hermes: Hermes,
    serve: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: list[dict[str, Any]],
    results: list[str | None],
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "f.py").write_text("x = 1\n")
    server = serve(json.dumps([{"calls": calls}, {"say": "Done."}]))
    hermes("chat", "-q", "go", "--mode", "full", "--model", model_argument(server))
    sent = [item for item in server.requests[1]["messages"] if item["role"] == "tool"]
    assert [item["tool_call_id"] for item in sent] == [
        each["id"] for each in server.requests[1]["messages"][2]["tool_calls"]
    ]
    for item, expected in zip(sent, results, strict=True):
        assert expected is None or item["content"].partition("\n")[0] == expected


@pytest.mark.parametrize("mode", ["full", "workspace"])
def test_files_are_searched_with_a_glob_that_names_a_folder(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    (tmp_path / "work" / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "work" / "src" / "pkg" / "c.py").write_text("find_me\n")
    monkeypatch.chdir(tmp_path / "work")
    calls = [
        call("search_files", pattern="find_me", glob="src/**/*.py"),
        call("search_files", pattern="pkg/*.py", path="src", mode="files"),
    ]
    server = serve(json.dumps([{"calls": calls}, {"say": "Done."}]))
    hermes("chat", "-q", "go", "--mode", mode, "--model", model_argument(server))
    sent = [item for item in server.requests[1]["messages"] if item["role"] == "tool"]
    found = [item["content"] for item in sent]
    assert found == ["src/pkg/c.py:1:find_me\n[count: 1]", "src/pkg/c.py\n[count: 1]"]


SLEEPING_GUARD = """
import time
def check(**facts):
    time.sleep(600)
"""
FAILING_GUARD = """
def check(**facts):
    raise RuntimeError("policy server down")
"""
REGISTER = """
def register(ctx):
    ctx.register_hook("pre_tool_call", check)
"""


@pytest.mark.parametrize(
    ("guard", "error"),
    [
        (SLEEPING_GUARD, "did not return within 1 s"),
        (FAILING_GUARD, "RuntimeError: policy server down"),
    ],
)
def test_a_plugin_that_fails_to_decide_on_calls_blocks_each_of_them(
    hermes: Hermes, serve: Any, hermes_home: Path, guard: str, error: str
) -> None:
    make_plugin(hermes_home, "policy", guard + REGISTER)
    (hermes_home / "config.yaml").write_text(
        "plugins:\n  enabled: [policy]\n  decision_seconds: 1\n"
    )
    step = {"calls": [call("terminal", command="echo SECRET was read")]}
    steps = [*[step] * 4, {"say": "Done."}]  # more than the three time-outs of an observer
    server = serve(json.dumps(steps))
    hermes("chat", "-q", "go", "--mode", "full", "--model", model_argument(server))
    sent = [item for item in server.requests[-1]["messages"] if item["role"] == "tool"]
    assert len(sent) >= 3
    for item in sent:
        reason = "Error: This call was blocked: the plugin policy, which must decide"
        assert item["content"].startswith(reason)
        assert error in item["content"]


def test_risky_commands_are_denied_without_a_terminal(
    hermes: Hermes, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    (folder / "precious").mkdir(parents=True)
    monkeypatch.chdir(folder)
    call = "{name: terminal, arguments: {command: rm -rf precious}}"
    server = serve(f"[{{calls: [{call}]}}, {{say: I could not.}}]")
    hermes("chat", "-q", "clean up", "--model", model_argument(server))
    assert (folder / "precious").exists()
    assert json.loads(rows()[2]["content"])["error"]


def test_plugins_are_notified_of_every_end_once(
    hermes: Hermes, serve: Any, hermes_home: Path
) -> None:
    path = hermes_home / "hook_calls"
    make_plugin(hermes_home, "recorder", RECORDER_CODE.format(path=str(path)))
    (hermes_home / "config.yaml").write_text("plugins:\n  enabled: [recorder]\n")
    hermes("chat", "-q", "hi", "--model", model_argument(serve("[{say: Hello.}]")))
    assert path.read_text().splitlines() == [
        "on_session_start None",
        "on_session_end True",
        "on_session_finalize None",
    ]


def test_a_background_job_that_is_stopped_at_the_end_is_named(hermes: Hermes, serve: Any) -> None:
    step = {"calls": [call("terminal", command="sleep 300", background=True)]}
    server = serve(json.dumps([step, {"say": "Started."}]))
    result = hermes("chat", "-q", "go", "--mode", "full", "--model", model_argument(server))
    assert result.out.strip() == "Started."
    assert "Stopped a background job: sleep 300" in result.err


def test_calls_that_repeat_in_turn_are_stopped(hermes: Hermes, serve: Any) -> None:
    steps = [{"calls": [call("terminal", command=f"echo {number % 2}")]} for number in range(20)]
    server = serve(json.dumps(steps))
    result = hermes("chat", "-q", "go", "--mode", "full", "--model", model_argument(server))
    assert "made the same call 5 times" in result.out + result.err
    assert len(server.requests) == 10
