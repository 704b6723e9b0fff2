"""The interactive `hermes chat` on a real terminal, and slash commands."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_conversation import slash_commands
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_conversation.slash_commands import Surface
from hermes_core.errors import UsageError
from hermes_state import SessionDB
from support import scripted_server
from support.command_line import command
from support.model_servers import model_argument
from support.plain_terminal import EDITOR, quit_chat, start_chat, stored_messages
from support.scripted_server import ScriptServer
from support.terminal import spawn, wait_for_exit
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEPS = "steps: [{say: First answer.}, {say: Second answer.}, {say: Third answer.}]"


@pytest.fixture
def server() -> Iterator[ScriptServer]:
    with ScriptServer(ModelScript.parse(STEPS)) as result:
        yield result


def test_sessions_with_words_searches_the_whole_history(server: ScriptServer) -> None:
    with SessionDB() as db:
        for number in range(12):
            db.create_session(f"s{number}", "cli")
            db.append_message(f"s{number}", "user", f"question {number}")
            db.append_message(f"s{number}", "assistant", "a haystack" if number else "a needle")
            db.end_session(f"s{number}", "cli_close")
        db.set_session_title("s1", "Kumquats")
    child = start_chat(server)
    for words, expected in [
        ("kumquat", "s1  Kumquats"),
        ("needle", "s0  question 0"),
        ("question 0", "s0  question 0"),
        ("none", "No matching conversations."),
        ("listedsession", "No matching conversations."),
    ]:
        child.sendline(f"/sessions {words}")
        child.expect_exact(expected)
    quit_chat(child)


def test_ask_answers_from_the_history_and_stores_nothing() -> None:
    with SessionDB() as db:
        db.create_session("proxy", "cli")
        db.append_message("proxy", "assistant", "A ping fixed the websocket that reconnected.")
    script = ModelScript.parse("steps: [{say: 'A ping fixed it [1].'}]")
    with ScriptServer(script) as server:
        child = start_chat(server)
        child.sendline("/ask how did we fix the websocket")
        child.expect_exact("A ping fixed it. [1]")
        child.expect_exact("hermes sessions show proxy --around 1")
        quit_chat(child)
    with SessionDB() as db:
        assert [row.id for row in db.lists.sessions(limit=5)] == ["proxy"]


def test_a_conversation_of_two_questions(server: ScriptServer) -> None:
    child = start_chat(server)
    child.sendline("hello")
    child.expect("First answer.")
    child.sendline("and?")
    child.expect("Second answer.")
    child.sendline("/quit")
    child.expect("hermes chat -r ")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert [text for _, text in stored_messages()] == [
        "hello",
        "First answer.",
        "and?",
        "Second answer.",
    ]


def test_a_reminder_is_set_from_the_terminal(server: ScriptServer) -> None:
    child = start_chat(server)
    child.sendline("/remind 20m take out the bread")
    child.expect("Reminder 1 set for ")
    child.sendline("/remind list")
    child.expect("take out the bread")
    quit_chat(child)
    with SessionDB() as db:
        assert [job.prompt for job in db.schedules.all()] == ["take out the bread"]


def test_new_achievements_are_printed_at_the_end(server: ScriptServer) -> None:
    child = start_chat(server)
    child.sendline("hello")
    child.expect("First answer.")
    child.sendline("/quit")
    child.expect("[Aa]chievements?: ")  # some are earned at certain hours only
    child.expect("First Words")
    child.expect(pexpect.EOF)
    child.close()


SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def slow() -> Iterator[ScriptServer]:
    steps = f"steps: [{{say: {SLOW}, pause: 0.2}}, {{say: Second answer.}}]"
    with ScriptServer(ModelScript.parse(steps)) as result:
        yield result


def test_input_typed_during_a_turn_is_sent_after_it(slow: ScriptServer) -> None:
    child = start_chat(slow)
    child.sendline("count")
    child.expect("two")
    child.sendline("and then?")
    child.expect("Second answer.")
    quit_chat(child)
    texts = [text for _, text in stored_messages()]
    assert texts == ["count", SLOW, "and then?", "Second answer."]


def test_what_was_typed_before_a_question_is_no_answer_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "kept"
    folder.mkdir()
    calls = (
        "{name: terminal, arguments: {command: sleep 1}}, "
        "{name: terminal, arguments: {command: rm -rf kept}}"
    )
    steps = f"steps: [{{calls: [{calls}]}}, {{say: Over.}}]"
    with ScriptServer(ModelScript.parse(steps)) as server:
        child = start_chat(server)
        child.sendline("wait")
        child.expect("sleep 1")
        child.sendline("once")
        child.expect("Allow")
        child.sendline("deny")
        child.expect("Over.")
        quit_chat(child)
    assert folder.exists()


def test_ctrl_c_stops_the_turn(slow: ScriptServer) -> None:
    child = start_chat(slow)
    child.sendline("count")
    child.expect("two")
    child.sendintr()
    quit_chat(child)
    texts = [text for _, text in stored_messages()]
    assert texts[0] == "count"
    assert texts[1] != SLOW
    assert len(texts) == 2


def test_an_unknown_command_is_answered_with_similar_ones(server: ScriptServer) -> None:
    child = start_chat(server)
    child.sendline("/titel")
    child.expect("Did you mean /title")
    child.expect(EDITOR)
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_prompt_ends_the_conversation_properly(
    server: ScriptServer, number: int
) -> None:
    child = start_chat(server)
    child.sendline("hello")
    child.expect("First answer.")
    child.kill(number)
    child.expect(pexpect.EOF)
    child.close()
    with SessionDB(is_recovering=False) as db:
        row = db.list_sessions_rich(limit=1)[0]
        assert row["end_reason"] == "cli_close"


def test_while_another_process_runs_a_turn_the_input_and_the_row_are_kept(
    slow: ScriptServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len([pause for pause in pauses if pause]) > 1:  # after the first word
            is_over.wait(120)

    monkeypatch.setattr(scripted_server, "time", SimpleNamespace(sleep=pause))
    arguments = command("chat", "-q", "count", "--model", model_argument(slow))
    other = subprocess.Popen(arguments, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert other.stdout is not None
    assert other.stdout.read(3) == b"one"
    with SessionDB(is_recovering=False) as db:
        session_id = db.list_sessions_rich(limit=1)[0]["id"]
    child = start_chat(slow, "-r", session_id)
    child.sendline("and then?")
    child.expect("already running")
    child.expect("hermes -c")
    child.expect(EDITOR)
    child.expect("and then\\?")
    child.sendintr()
    quit_chat(child)
    with SessionDB(is_recovering=False) as db:
        row = db.get_session(session_id)
        assert row is not None
        assert row["ended_at"] is None, "its turn goes on"
    is_over.set()
    other.communicate(timeout=PATIENCE_SECONDS)
    assert child.exitstatus == 0
    assert [text for _, text in stored_messages()] == ["count", SLOW]


@pytest.mark.parametrize("is_old", [True, False])
def test_the_input_history_is_readable_only_by_its_owner(
    server: ScriptServer, hermes_home: Path, is_old: bool
) -> None:
    path = hermes_home / "prompt_history"
    if is_old:
        path.touch()
        path.chmod(0o644)
    child = start_chat(server)
    child.sendline("a secret")
    child.expect("First answer.")
    quit_chat(child)
    assert "a secret" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def conversation(server: ScriptServer, tmp_path: Path) -> Iterator[Conversation]:
    with SessionDB() as db:
        result = Conversation(
            db, None, ConversationOptions(model=model_argument(server), cwd=tmp_path)
        )  # type: ignore[arg-type]
        yield result
        result.leave("cli_close")


def send(conversation: Conversation, text: str) -> None:
    list(conversation.send(text))


def run(conversation: Conversation, line: str) -> Any:
    return slash_commands.run(conversation, line, Surface.TERMINAL)


def texts(conversation: Conversation) -> list[str]:
    return [row["content"] for row in conversation.db.get_messages(conversation.session_id)]


def test_undo_and_redo(conversation: Conversation) -> None:
    send(conversation, "one")
    send(conversation, "two")
    assert "Undid 2 messages" in run(conversation, "/undo").text
    assert texts(conversation) == ["one", "First answer."]
    assert "Restored 2 messages" in run(conversation, "/redo").text
    assert texts(conversation)[-1] == "Second answer."


def test_retry_sends_the_last_prompt_again(
    conversation: Conversation, server: ScriptServer
) -> None:
    send(conversation, "one")
    outcome = run(conversation, "/retry")
    assert outcome.say == "one"
    send(conversation, outcome.say)
    assert texts(conversation) == ["one", "Second answer."]
    assert [message["content"] for message in server.requests[-1]["messages"]][1:] == ["one"]


def test_new_ends_the_conversation_and_starts_another(conversation: Conversation) -> None:
    send(conversation, "one")
    first = conversation.session_id
    run(conversation, "/new")
    assert conversation.session_id != first
    row = conversation.db.get_session(first)
    assert row is not None
    assert row["end_reason"] == "new_session"


def test_resume_by_title(conversation: Conversation) -> None:
    send(conversation, "one")
    first = conversation.session_id
    run(conversation, "/title my plan")
    run(conversation, "/new")
    send(conversation, "two")
    assert "my plan" in run(conversation, "/resume my plan").text
    assert conversation.session_id == first
    send(conversation, "three")
    assert texts(conversation)[-2:] == ["three", "Third answer."]


def test_a_branch_leaves_the_first_conversation_as_it_is(conversation: Conversation) -> None:
    send(conversation, "one")
    first = conversation.session_id
    run(conversation, "/branch")
    send(conversation, "two")
    assert len(conversation.db.get_messages(first)) == 2
    assert texts(conversation) == ["one", "First answer.", "two", "Second answer."]


def test_a_hand_off_to_an_agent_leaves_the_conversation_open(
    conversation: Conversation, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no messages yet"):
        run(conversation, "/handoff codex")
    send(conversation, "one")
    first = conversation.session_id
    outcome = run(conversation, "/handoff Codex")
    assert f"Continue it there: cd {tmp_path} && codex resume " in outcome.text
    assert not outcome.is_handed_off
    assert "claude --resume" in run(conversation, "/handoff claude-code --redact").text
    for line, reason in {
        "/handoff": "Usage: /handoff TARGET",
        "/handoff codex please": "Usage: /handoff TARGET",
        "/handoff emacs": "Unknown target 'emacs'. Agents: claude-code",
        "/handoff telegram --redact": "--redact is for agents",
        "/handoff codex": "was handed off already",
    }.items():
        with pytest.raises(UsageError, match=re.escape(reason)):
            run(conversation, line)
    assert conversation.session_id == first
    send(conversation, "two")
    assert "codex resume" in run(conversation, "/handoff codex").text


def test_status_usage_sessions_and_search(conversation: Conversation) -> None:
    send(conversation, "find the needle")
    assert conversation.session_id in run(conversation, "/status").text
    assert "output tokens" in run(conversation, "/usage").text
    assert conversation.session_id in run(conversation, "/sessions").text
    assert "needle" in run(conversation, "/search needle").text
    assert run(conversation, "/model").text.startswith("scripted\n")


def test_status_does_not_count_undone_messages(conversation: Conversation) -> None:
    send(conversation, "one")
    send(conversation, "two")
    run(conversation, "/undo")
    assert run(conversation, "/status").text.endswith("messages      2 (2 more undone)")
    run(conversation, "/redo")
    assert run(conversation, "/status").text.endswith("messages      4")


def test_notices_break_between_words_on_a_narrow_terminal(server: ScriptServer) -> None:
    child = spawn(
        *("chat", "--model", model_argument(server)),
        environment={"TERM": "xterm-256color"},
        dimensions=(24, 40),
    )
    child.expect("Hermes, ")
    child.expect(EDITOR)
    lines = f"Hermes, {child.before}".splitlines()[:2]
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(lines).endswith("Type /help for commands, Ctrl+D to exit.")
    child.sendline("/quit")
    wait_for_exit(child)


def test_help_lists_every_command(conversation: Conversation) -> None:
    text = run(conversation, "/help").text
    assert all(f"/{item.name}" in text for item in slash_commands.listed_commands(Surface.TERMINAL))


@pytest.mark.parametrize("line", ["/undo x", "/search", "/nothing", "/save", "/steer"])
def test_bad_input_gets_a_clear_error(conversation: Conversation, line: str) -> None:
    with pytest.raises(UsageError):
        run(conversation, line)
