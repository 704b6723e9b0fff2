"""`hermes sessions` and the overview, as real processes over a real history."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_state import SessionDB
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    write_as_hermes_agent,
)
from support.command_line import command
from support.sample_history import CHAT, OSLO
from support.terminal import spawn
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock


def test_a_missing_history_counts_as_empty(hermes: Hermes, hermes_home: Path) -> None:
    for action in ("list", "stats"):
        result = hermes("sessions", action)
        assert (result.code, result.err) == (0, "")
        assert "No conversations yet" in result.out
        assert str(hermes_home) in result.out
    assert json.loads(hermes("sessions", "list", "--json").out) == []
    assert json.loads(hermes("sessions", "stats", "--json").out)["sessions"] == 0
    assert not (hermes_home / "state.db").exists()


def test_show_without_a_history_is_reported(hermes: Hermes) -> None:
    result = hermes("sessions", "show", "last")
    assert result.code == 1
    assert result.err.startswith("hermes: ")
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("history")
def test_list(hermes: Hermes) -> None:
    result = hermes("sessions", "list")
    assert result.code == 0
    title, first, second = result.out.splitlines()
    assert title.split() == ["id", "when", "source", "messages", "conversation", "state"]
    assert first.startswith(CHAT)
    assert "2 min ago" in first
    assert first.endswith("open")
    assert "Weather in Oslo" in second
    assert second.endswith("ended: cli_close")


@pytest.mark.usefixtures("history")
def test_list_filters(hermes: Hermes) -> None:
    rows = json.loads(hermes("sessions", "list", "--source", "cli", "--json").out)
    assert [row["id"] for row in rows] == [OSLO]
    assert rows[0]["state"] == "ended: cli_close"
    assert "system_prompt" not in rows[0]
    assert len(json.loads(hermes("sessions", "list", "--limit", "1", "--json").out)) == 1
    assert len(json.loads(hermes("sessions", "list", "--all", "--json").out)) == 2
    assert "No matching conversations" in hermes("sessions", "list", "--source", "none").out
    assert hermes("sessions", "list", "--limit", "0").code == 2


@pytest.mark.usefixtures("history")
def test_archived_conversations_are_listed_on_request(hermes: Hermes) -> None:
    with SessionDB() as db:
        db.set_session_archived(OSLO, True)
    assert OSLO not in hermes("sessions", "list").out
    assert "archived" in hermes("sessions", "list", "--archived").out


@pytest.mark.usefixtures("history")
def test_show(hermes: Hermes) -> None:
    result = hermes("sessions", "show", "Weather in")
    assert result.code == 0
    assert result.out.startswith("Weather in Oslo\n")
    assert OSLO in result.out
    assert re.search(r"^user  20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$", result.out, re.MULTILINE)
    assert '→ weather({"city": "Oslo"})' in result.out
    assert "line 3" in result.out
    assert "line 150" not in result.out
    assert "use --full" in result.out
    assert "line 199" in hermes("sessions", "show", OSLO[:10], "--full").out


@pytest.mark.usefixtures("history")
def test_show_json(hermes: Hermes) -> None:
    document = json.loads(hermes("sessions", "show", OSLO, "--json").out)
    assert document["session"]["id"] == OSLO
    assert [message["role"] for message in document["messages"]] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert document["messages"][1]["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.usefixtures("history")
def test_undone_messages_are_counted_and_shown_on_request(hermes: Hermes) -> None:
    with SessionDB() as db:
        first = next(iter(db.messages.iter_messages(CHAT)))
        db.rewind_to_message(CHAT, first.id)
    plain = hermes("sessions", "show", CHAT).out
    assert "1 undone message not shown" in plain
    assert "Guten Tag" not in plain
    assert "[undone]" in hermes("sessions", "show", CHAT, "--inactive").out


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("session_argument", "word"), [("nothing-like-it", "nothing-like-it"), ("2026", OSLO)]
)
def test_an_unclear_id_is_refused(hermes: Hermes, session_argument: str, word: str) -> None:
    result = hermes("sessions", "show", session_argument)
    assert result.code == 2
    assert word in result.err
    assert result.err.startswith("hermes: ")


@pytest.mark.usefixtures("history")
def test_tail(hermes: Hermes) -> None:
    result = hermes("sessions", "tail", OSLO, "-n", "1")
    assert "21 degrees." in result.out
    assert "How warm" not in result.out
    assert hermes("sessions", "tail", OSLO, "-n", "0").out == ""
    lines = hermes("sessions", "tail", OSLO, "-n", "2", "--json").out.splitlines()
    assert [json.loads(line)["role"] for line in lines] == ["tool", "assistant"]


@pytest.mark.usefixtures("history")
def test_tail_follows_until_interrupted() -> None:
    process = subprocess.Popen(
        command("sessions", "tail", "last", "-n", "1", "--follow", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["content"] == "Guten Tag, 世界"
    with SessionDB() as db:
        db.append_message(CHAT, "assistant", content="Hello to you")
    assert json.loads(process.stdout.readline())["content"] == "Hello to you"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (130, "")


@pytest.mark.usefixtures("history")
def test_stats(hermes: Hermes) -> None:
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    assert (stats["sessions"], stats["messages"], stats["open_sessions"]) == (2, 5, 1)
    assert stats["by_source"]["telegram"] == {"sessions": 1, "messages": 1}
    text = hermes("sessions", "stats").out
    assert "conversations" in text
    assert "2 (1 open)" in text


def test_overview(hermes: Hermes, history: Path) -> None:
    result = hermes()
    assert result.code == 0
    assert f"2 conversations, 5 messages in {history / 'state.db'}" in result.out
    assert "Weather in Oslo" in result.out
    assert "hermes sessions show last" in result.out


def test_overview_of_an_empty_home(hermes: Hermes, hermes_home: Path) -> None:
    result = hermes()
    assert (result.code, result.err) == (0, "")
    assert "No conversations yet" in result.out
    assert list(hermes_home.iterdir()) == []


@pytest.mark.parametrize("name", ["state-schema16.db", "state-schema26.db"])
def test_a_history_of_the_original(
    hermes: Hermes, hermes_home: Path, shared_data: Path, name: str
) -> None:
    (hermes_home / "state.db").write_bytes((shared_data / name).read_bytes())
    rows = json.loads(hermes("sessions", "list", "--all", "--json").out)
    assert rows
    for row in rows[:5]:
        result = hermes("sessions", "show", row["id"], "--inactive")
        assert (result.code, result.err) == (0, "")
    assert hermes("sessions", "stats").code == 0


def test_stored_escape_sequences_never_reach_the_terminal(hermes: Hermes) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\x7f\r"
    with SessionDB() as db:
        db.create_session("evil", f"cli{evil}", model=evil, cwd=evil)
        db.append_message("evil", "user", content=f"hi{evil}")
        db.append_message("evil", f"role{evil}", content=[{"type": evil}, {"text": evil}])
        db.append_message("evil", "tool", content=evil, tool_name=evil)
        call = {"function": {"name": evil, "arguments": evil}}
        db.append_message("evil", "assistant", content=None, tool_calls=[call])
        db.end_session("evil", evil)
    everything = [
        ("sessions", "list"),
        ("sessions", "list", "--json"),
        ("sessions", "show", "evil", "--full"),
        ("sessions", "show", "evil", "--json"),
        ("sessions", "tail", "evil"),
        ("sessions", "stats"),
        ("sessions", "show", f"nobody{evil}"),
        (),
    ]
    for arguments in everything:
        result = hermes(*arguments)
        output = result.out + result.err
        assert not set(output) & set("\x1b\x07\x9b\u202e\x7f\r"), arguments


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_not_an_error(closed: str) -> None:
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command("sessions", "list")], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("history")
def test_a_closed_pipe_is_not_an_error() -> None:
    with SessionDB() as db:
        for number in range(400):
            db.append_message(CHAT, "user", content=f"{number} " + "x" * 1000)
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        command("sessions", "show", CHAT),
        check=False,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")


def test_a_large_foreign_history_is_listed_at_once_and_indexed_with_progress(
    hermes: Hermes, hermes_home: Path
) -> None:
    make_schema_16(hermes_home / "state.db")
    rows = [foreign_session(f"s{number:04}", float(number)) for number in range(3000)]
    write_as_hermes_agent(hermes_home / "state.db", [("BEGIN", ()), *rows, ("COMMIT", ())])
    result = hermes("sessions", "list", "--limit", "2", "--json")
    assert [row["id"] for row in json.loads(result.out)] == ["s2999", "s2998"]
    assert result.err == ""
    terminal = spawn("sessions", "optimize")
    terminal.expect(pexpect.EOF, timeout=PATIENCE_SECONDS)
    assert re.search(r"Indexing: \d+ % \([\d,]+ of 3,000 conversations\)", terminal.before)
    assert hermes("sessions", "list", "--limit", "1").err == ""


@pytest.mark.parametrize("action", ["optimize", "repair"])
def test_upkeep_finishes_indexing_without_a_terminal(
    hermes: Hermes, hermes_home: Path, action: str
) -> None:
    make_schema_16(hermes_home / "state.db")
    rows = [foreign_session(f"s{number:04}", float(number)) for number in range(3000)]
    text = "Where is the lighthouse?"
    rows += [foreign_message(f"s{number:04}", "user", text, 1.0) for number in range(3000)]
    write_as_hermes_agent(hermes_home / "state.db", [("BEGIN", ()), *rows, ("COMMIT", ())])
    done = hermes("sessions", action)
    assert done.code == 0
    assert "Indexing: " in done.err
    with SessionDB(read_only=True) as db:
        assert (db.index_progress(), db.search.progress()) == (None, None)
    assert hermes("sessions", "search", "lighthouse").err == ""
