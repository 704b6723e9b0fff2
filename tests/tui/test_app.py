"""The terminal UI with a real model server, partly in a real terminal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import OptionList

from hermes_conversation.agent_factory import summarize_call
from hermes_state import SessionDB
from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import MIN_VISIBLE_SECONDS, ClarifyDialog, KeysDialog
from hermes_tui.messages import CollapsedMessages, ToolRow, entries
from hermes_tui.pickers import ModelPicker
from hermes_tui.prompt import Prompt
from hermes_tui.status import StatusBar
from support.command_line import command
from support.rows import message_row
from support.screens import (
    SIZE,
    agent_texts,
    is_idle,
    notice_texts,
    stored_texts,
    submit,
    submit_and_wait,
    user_texts,
    wait_for,
    wait_for_screen,
)
from support.tmux import Tmux
from support.waiting import PATIENCE_SECONDS
from tui_gateway.turn_view import display_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

SCREENSHOTS = Path(__file__).resolve().parents[2] / "tools" / "screenshots.py"
SLOW = "one two three four five six seven eight nine ten eleven twelve"


async def test_a_turn_is_shown_and_stored(opened: Open) -> None:
    app = opened("[{say: 'Hello **there**, you.'}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "hi")
        assert (user_texts(app), agent_texts(app)) == (["hi"], ["Hello **there**, you."])
        assert stored_texts(app) == ["hi", "Hello **there**, you."]
        status = str(app.query_one(StatusBar).render())
        assert "scripted" in status
        assert " 0 tokens" not in status


async def test_an_empty_answer_and_the_time_to_a_retry_are_shown(opened: Open) -> None:
    app = opened("[{say: ''}, {say: ''}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "hi")
        assert "scripted returned an empty answer" in " ".join(notice_texts(app))
        app.status.start()
        app.status.set_note("Rate limit. Attempt 2 of 4:", 100)
        assert "Attempt 2 of 4: In 1 min" in str(app.query_one(StatusBar).render())
        app.status.clear_note()
        assert "Attempt" not in str(app.query_one(StatusBar).render())
        app.status.stop()


async def test_an_answer_that_is_asked_for_again_replaces_what_was_shown(opened: Open) -> None:
    app = opened("[{think: Hm., say: Half of, cut: true}, {think: So., say: All of it.}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "hi")
        assert agent_texts(app) == ["All of it."]


async def test_a_model_is_chosen_in_a_dialog(
    opened: Open, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _, _ = serve("[{say: Hello.}]").partition("#")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    app = opened("[]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "/model")
        await wait_for_screen(pilot, ModelPicker)
        await wait_for(pilot, lambda: bool(app.screen.query_one(OptionList).option_count))
        await pilot.press("enter")
        await wait_for(pilot, lambda: "Model set to scripted." in notice_texts(app))
        await submit_and_wait(pilot, "hi")
        assert agent_texts(app) == ["Hello."]


async def test_a_tool_call_is_an_expandable_row(opened: Open) -> None:
    call = "{name: terminal, arguments: {command: echo worked; seq 60}}"
    app = opened(f"[{{say: Looking., calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "go")
        row = app.query_one(ToolRow)
        assert "✓ terminal echo worked" in str(row.render())
        assert agent_texts(app) == ["Looking.", "Done."]
        await pilot.click(ToolRow)
        assert "worked\n  1\n" in str(row.render())
        assert str(row.render()).count("\n") == 41
        await pilot.press("enter")
        assert str(row.render()).endswith("\n  worked\n  1\n  2\n  … 58 more lines")


async def test_a_tool_that_fails_is_marked(opened: Open) -> None:
    call = "{name: terminal, arguments: {command: 'false'}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "go")
        assert "✗ terminal false  exit code 1" in str(app.query_one(ToolRow).render())


@pytest.mark.parametrize(("key", "is_left"), [("o", False), ("escape", True), ("enter", True)])
async def test_an_approval_is_requested_and_applied(
    opened: Open, tmp_path: Path, key: str, is_left: bool
) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "clean")
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.pause(MIN_VISIBLE_SECONDS + 0.1)
        await pilot.press(key)
        await wait_for(pilot, lambda: is_idle(app))
        assert (tmp_path / "old").exists() == is_left


async def test_a_question_of_the_agent_is_answered(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_tui.dialogs.ENTER_DELAY_SECONDS", 0.0)
    call = "{name: clarify, arguments: {question: Which?, choices: [tea, coffee]}}"
    app = opened(f"[{{calls: [{call}]}}, {{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "drink")
        await wait_for_screen(pilot, ClarifyDialog)
        first = app.screen
        await pilot.pause()
        await pilot.press("down", "enter")
        await wait_for(
            pilot, lambda: isinstance(app.screen, ClarifyDialog) and app.screen is not first
        )
        await pilot.pause()
        await pilot.press("tab", *"milk", "enter")
        await wait_for(pilot, lambda: is_idle(app))
        results = [row.result or "" for row in app.query(ToolRow)]
        assert "coffee" in results[0]
        assert "milk" in results[1]


async def test_an_interrupt_keeps_streamed_text(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.3}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "three" in "".join(agent_texts(app)))
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: is_idle(app))
        await wait_for(pilot, lambda: notice_texts(app))
        assert "Interrupted" in notice_texts(app)[-1]
        assert "three" in stored_texts(app)[-1]
        assert "twelve" not in stored_texts(app)[-1]
        assert app.is_running


async def test_an_interrupt_denies_an_open_approval(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "clean")
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: is_idle(app) and not isinstance(app.screen, ApprovalDialog))
        assert (tmp_path / "old").exists()


async def test_a_turn_continues_behind_the_key_list(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.03}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await pilot.press("f1")
        await wait_for(pilot, lambda: is_idle(app))
        assert isinstance(app.screen, KeysDialog)
        await pilot.press("f1")
        assert agent_texts(app) == [SLOW]


async def test_steering_input_is_read_after_a_tool(opened: Open, tmp_path: Path) -> None:
    command = "until test -e go-on; do sleep 0.1; done"
    call = f"{{name: terminal, arguments: {{command: '{command}'}}}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "go")
        await wait_for(pilot, lambda: app.query(ToolRow))
        await submit(pilot, "and hurry")
        assert app.query(".waiting")
        (tmp_path / "go-on").touch()
        await wait_for(pilot, lambda: is_idle(app))
        assert not app.query(".waiting")
        assert [stored_texts(app)[0], *stored_texts(app)[-2:]] == ["go", "and hurry", "Done."]


async def test_unread_steering_input_starts_the_next_turn(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.3}}, {{say: Second.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: agent_texts(app))
        await submit(pilot, "and then?")
        await wait_for(pilot, lambda: agent_texts(app)[-1] == "Second.")
        await wait_for(pilot, lambda: is_idle(app))
        assert stored_texts(app) == ["count", SLOW, "and then?", "Second."]


async def test_commands_change_the_transcript(opened: Open) -> None:
    app = opened("[{say: A1}, {say: A2}, {say: A3}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        await submit_and_wait(pilot, "two")
        await submit_and_wait(pilot, "/undo")
        assert (user_texts(app), agent_texts(app)) == (["one"], ["A1"])
        assert "Undid" in notice_texts(app)[-1]
        await submit_and_wait(pilot, "/retry")
        await wait_for(pilot, lambda: agent_texts(app) == ["A3"])
        await wait_for(pilot, lambda: is_idle(app))
        await submit_and_wait(pilot, "/nonsense")
        assert "Unknown command: /nonsense" in notice_texts(app)[-1]
        await submit_and_wait(pilot, "/new")
        assert user_texts(app) == []
        await submit(pilot, "/quit")
    assert app.return_code == 0


async def test_tab_completes_commands_and_up_recalls_input(opened: Open) -> None:
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"/und", "tab")
        assert prompt.text == "/undo "
        await pilot.press("ctrl+c")
        assert prompt.text == ""
        await pilot.press("a", "backslash", "enter", "b", "shift+enter", "c", "enter")
        await wait_for(pilot, lambda: is_idle(app))
        assert user_texts(app) == ["a\nb\nc"]
        await pilot.press("up")
        assert prompt.text == "a\nb\nc"


@pytest.mark.clock
async def test_a_resumed_conversation_shows_its_history(db: SessionDB, opened: Open) -> None:
    db.create_session("old", "cli")
    for number in range(130):
        role = "assistant" if number % 2 else "user"
        db.append_message("old", role, f"message {number}", timestamp=time.time())
    app = opened("[]", "old")
    async with app.run_test(size=SIZE) as pilot:
        assert user_texts(app)[0] == "message 30"
        assert "30 earlier messages" in str(app.query_one(CollapsedMessages).render())
        assert agent_texts(app)[-1] == "message 129"
        app.query_one(CollapsedMessages).focus()
        await pilot.press("enter")
        await wait_for(pilot, lambda: not app.query(CollapsedMessages))
        assert user_texts(app)[0] == "message 0"


async def test_a_long_transcript_collapses_its_oldest_messages(
    db: SessionDB, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_tui.transcript.BATCH_MESSAGES", 4)
    monkeypatch.setattr("hermes_tui.transcript.MAX_MESSAGES", 6)
    app = opened("[]")
    async with app.run_test(size=SIZE) as pilot:
        for number in range(4):
            await submit_and_wait(pilot, f"say {number}")
        assert "4 earlier messages" in str(app.query_one(CollapsedMessages).render())
        assert user_texts(app) == ["say 2", "say 3"]
        app.query_one(CollapsedMessages).action_unfold()
        await wait_for(pilot, lambda: not app.query(CollapsedMessages))
        assert user_texts(app) == [f"say {number}" for number in range(4)]
        assert len(agent_texts(app)) == 4


async def test_themes_keys_and_small_windows(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("ctrl+t")
        assert app.theme == "textual-light"
        await pilot.press("f1")
        assert isinstance(app.screen, KeysDialog)
        await pilot.press("x")
        assert not isinstance(app.screen, KeysDialog)


@pytest.mark.parametrize("keys", [["ctrl+d"], ["ctrl+c", "ctrl+c"]])
async def test_quitting_ends_the_session(db: SessionDB, opened: Open, keys: list[str]) -> None:
    app = opened("[{say: Hello.}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "hi")
        await pilot.press(*keys)
    app.conversation.leave(is_over=True)
    row = db.get_session(app.conversation.session_id)
    assert row is not None
    assert row["end_reason"] == "tui_close"


def test_stored_calls_and_results_become_rows() -> None:
    call = {"id": "c", "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'}}
    result = entries(
        [
            display_message(message_row(role="user", content="look")),
            display_message(message_row(role="assistant", content="", tool_calls=[call])),
            display_message(message_row(role="tool", content='{"error": null}')),
        ]
    )
    assert [(item.kind, item.text) for item in result] == [
        ("user", "look"), ("tool", "read_file a.txt"),
    ]  # fmt: skip


def test_a_call_is_named_by_its_main_argument() -> None:
    arguments = '{"offset": 3, "url": "https://example.org/"}'
    assert summarize_call("web_fetch", arguments) == "web_fetch https://example.org/"
    assert summarize_call("web_fetch", "not JSON") == "web_fetch"


def test_stored_answers_say_how_they_ended_and_new_files_are_shown() -> None:
    arguments = '{"path": "a.txt", "content": "one\\ntwo\\n"}'
    call = {"id": "c", "function": {"name": "write_file", "arguments": arguments}}
    rows = [
        message_row(role="assistant", content="", tool_calls=[call]),
        message_row(role="tool", content='{"path": "/a.txt", "new": true}'),
        message_row(role="assistant", content="", tool_calls=[call]),
        message_row(role="tool", content='{"path": "/a.txt", "new": false}'),
        message_row(role="assistant", content="half a", finish_reason="length"),
        message_row(role="assistant", content="", finish_reason="content_filter"),
        message_row(role="assistant", content="all", finish_reason="stop"),
    ]
    found = list(entries(display_message(row) for row in rows))
    assert [(item.kind, item.text) for item in found[2:]] == [
        ("assistant", "half a"),
        ("notice", "Cut off at the output limit."),
        ("notice", "Withheld by the provider."),
        ("assistant", "all"),
    ]
    assert found[0].change.splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+one", "+two"]
    assert found[1].change == ""  # what it replaced is not stored


def end_reason() -> str:
    with SessionDB() as db:
        return str(db.list_sessions_rich(limit=1)[0]["end_reason"])


def test_on_a_real_terminal(tmp_path: Path, serve: Any) -> None:
    model = serve("[{say: The answer is 42.}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("tui", "--no-daemon", "--model", model))
        terminal.wait_for("F1 keys")
        terminal.type("what is it?\n")
        terminal.wait_for("The answer is 42.")
        terminal.wait_until(lambda screen: "working" not in screen, "the end of the turn")
        terminal.press("C-d")
        assert "To continue: `hermes -r" in terminal.wait_for_end()
    assert end_reason() == "tui_close"


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("HUP", 129)])
def test_a_signal_ends_the_session(tmp_path: Path, serve: Any, name: str, code: int) -> None:
    model = serve(f"[{{say: {SLOW}, pause: 0.2}}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.type(f"(sleep 0; echo $BASHPID > {tmp_path}/pid; exec ")
        terminal.type(
            f"{' '.join(command('tui', '--no-daemon', '--model', model))}); echo END-$?-\n"
        )
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("three")
        pid = (tmp_path / "pid").read_text().strip()
        terminal._tmux("run-shell", f"kill -{name} {pid}")
        terminal.wait_for_end(code)
    assert end_reason() == "tui_close"


def test_closing_the_window_ends_the_session(tmp_path: Path, serve: Any, hermes_home: Path) -> None:
    model = serve(f"[{{say: {SLOW}, pause: 0.3}}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("tui", "--no-daemon", "--model", model))
        terminal.wait_for("F1 keys")
        terminal.type("count\n")
        terminal.wait_for("three")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while end_reason() != "tui_close":
        assert time.monotonic() < deadline, end_reason()
        time.sleep(0.05)
    with SessionDB() as db:
        rows = db.get_messages(db.list_sessions_rich(limit=1)[0]["id"])
    assert str(rows[-1]["content"]).startswith("one two three")
    logs = [path.read_text() for path in hermes_home.glob("logs/*")]
    assert "Traceback" not in "".join(logs), logs[0][:4000]


def test_multiline_input_and_resuming_in_a_real_terminal(tmp_path: Path, serve: Any) -> None:
    model = serve("[{say: First.}, {say: Second.}]")
    with Tmux(tmp_path, 100, 30) as terminal:
        terminal.run(command("tui", "--no-daemon", "--model", model))
        terminal.wait_for("F1 keys")
        terminal.type("a\\\nb")
        terminal.press("C-j")
        terminal.type("c\n")
        terminal.wait_for("First.")
        terminal.press("C-d")
        terminal.wait_for_end()
        terminal.run(command("tui", "--no-daemon", "-c", "--model", model))
        terminal.wait_for("F1 keys")
        terminal.wait_for("First.")
        terminal.press("C-d")
        terminal.wait_for_end()
    with SessionDB() as db:
        sessions_rich = db.list_sessions_rich(limit=5)
        assert len(sessions_rich) == 1
        assert db.get_messages(sessions_rich[0]["id"])[0]["content"] == "a\nb\nc"


def test_the_screenshots_of_the_documentation_are_drawn(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCREENSHOTS, tmp_path], check=True, timeout=PATIENCE_SECONDS)
    assert "watering.py" in (tmp_path / "tui.svg").read_text()
    assert "rm&#160;-rf&#160;build" in (tmp_path / "tui-approval.svg").read_text()


def test_without_a_terminal_it_is_an_error(hermes: Any) -> None:
    done = hermes("tui")
    assert done.code == 2
    assert "requires an interactive terminal" in done.err
