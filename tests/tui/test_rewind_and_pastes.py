"""Rewind, branches, the session picker, pastes, images, completion and history."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

from textual import events
from textual.widgets import OptionList, Tree

from hermes_core.config.file import ConfigFile
from hermes_tui.input_history import InputHistory
from hermes_tui.messages import ReasoningBlock, ToolRow, UserMessage
from hermes_tui.pickers import SessionPicker
from hermes_tui.prompt import PasteBuffer, Prompt, image_path
from hermes_tui.rewind import BranchTree, RewindDialog
from hermes_tui.status import StatusBar
from support.screens import (
    SIZE,
    agent_texts,
    is_idle,
    last_notice,
    stored_texts,
    submit,
    submit_and_wait,
    user_texts,
    wait_for,
    wait_for_screen,
)
from tui_gateway import client
from tui_gateway.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state import SessionDB
    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

SLOW = "one two three four five six seven eight nine ten eleven twelve"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_rewind_undoes_everything_after_a_message(opened: Open) -> None:
    app = opened("[{say: A1}, {say: A2}, {say: A3}]")
    async with app.run_test(size=SIZE) as pilot:
        for text in ("one", "two", "three"):
            await submit_and_wait(pilot, text)
        await pilot.press("f3")
        await wait_for_screen(pilot, RewindDialog)
        await pilot.press("up", "enter")
        await wait_for(pilot, lambda: user_texts(app) == ["one"])
        assert app.query_one(Prompt).text == "two"
        await wait_for(pilot, lambda: "Rewound" in last_notice(app))
        await pilot.press("ctrl+c", "f3")
        await wait_for_screen(pilot, RewindDialog)
        await pilot.press("r")
        await wait_for(pilot, lambda: user_texts(app) == ["one", "two", "three"])
        assert agent_texts(app) == ["A1", "A2", "A3"]


async def test_a_branch_is_created_and_shown_in_the_tree(opened: Open, db: SessionDB) -> None:
    app = opened("[{say: A1}, {say: A2}, {say: B2}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "one")
        await submit_and_wait(pilot, "two")
        first = app.conversation.session_id
        await pilot.press("f3")
        await wait_for_screen(pilot, RewindDialog)
        await pilot.press("b")
        await wait_for(pilot, lambda: user_texts(app) == ["one"])
        assert app.query_one(Prompt).text == "two"
        await pilot.press("ctrl+c")
        await submit_and_wait(pilot, "other")
        assert stored_texts(app) == ["one", "A1", "other", "B2"]
        assert [row["content"] for row in db.get_messages(first)] == ["one", "A1", "two", "A2"]
        await pilot.press("f4")
        await wait_for_screen(pilot, BranchTree)
        tree = app.screen.query_one(Tree)
        assert len(tree.root.children) == 1
        assert "current" in str(tree.root.children[0].children[0].label)
        await pilot.press("home", "enter")
        await wait_for(pilot, lambda: user_texts(app) == ["one", "two"])
        assert app.conversation.session_id == first


async def test_a_conversation_is_searched_and_opened(opened: Open, db: SessionDB) -> None:
    for name, text in (("garden", "roses need water"), ("kitchen", "bread needs flour")):
        db.create_session(name, "cli", cwd=f"/{name}")
        db.append_message(name, "user", text)
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "/resume")
        await wait_for_screen(pilot, SessionPicker)
        options = app.screen.query_one(OptionList)
        await wait_for(pilot, lambda: options.option_count == 2)
        await pilot.press(*"flour")
        await wait_for(pilot, lambda: options.option_count == 1)
        await pilot.press("enter")
        await wait_for(pilot, lambda: user_texts(app) == ["bread needs flour"])
        assert app.conversation.session_id == "kitchen"


async def test_the_picker_can_be_limited_to_this_folder(
    opened: Open, db: SessionDB, tmp_path: Path
) -> None:
    for name, folder in (("here", tmp_path), ("there", tmp_path / "elsewhere" / "far")):
        db.create_session(name, "cli", cwd=str(folder.resolve()))
        db.append_message(name, "user", name)
    db.create_session("other", "cli", cwd="/other")
    db.append_message("other", "user", "other")
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+r")
        await wait_for_screen(pilot, SessionPicker)
        options = app.screen.query_one(OptionList)
        await wait_for(pilot, lambda: options.option_count == 3)
        await pilot.press("f2")
        await wait_for(pilot, lambda: options.option_count < 3)
        await pilot.press("delete", "delete")
        await wait_for(pilot, lambda: db.session_count() == 2)
        await pilot.press("escape")
        assert not isinstance(app.screen, SessionPicker)


async def test_a_long_paste_is_collapsed_and_sent_in_full(
    opened: Open,
) -> None:
    app = opened("[{say: Read.}]")
    text = "\n".join(f"line {number}" for number in range(50))
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"see:", "space")
        prompt.post_message(events.Paste(text))
        await wait_for(pilot, lambda: prompt.text == "see: [pasted text #1, 50 lines]")
        await pilot.press("enter")
        await wait_for(pilot, lambda: agent_texts(app) == ["Read."])
        assert stored_texts(app)[0] == f"see: {text}"


async def test_a_dropped_image_is_attached(opened: Open, tmp_path: Path, db: SessionDB) -> None:
    picture = tmp_path / "a picture.png"
    picture.write_bytes(PIXEL)
    app = opened("[{say: A pixel.}]")
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(Prompt).post_message(events.Paste(f"'{picture}'"))
        await wait_for(pilot, lambda: "1 image attached" in str(app.query_one(StatusBar).render()))
        await submit_and_wait(pilot, "what is this?")
        assert "attached" not in str(app.query_one(StatusBar).render())
        row = db.get_messages(app.conversation.session_id)[0]
        assert [part["type"] for part in row["content"]] == ["text", "image_url"]
        await submit_and_wait(pilot, "/image nothing.png")
        await wait_for(pilot, lambda: "nothing.png" in last_notice(app))


async def test_input_history_persists(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "history"
    app = opened("[{say: A1}]", history=InputHistory(path))
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "first\nsecond")
    assert path.stat().st_mode & 0o777 == 0o600
    again = InputHistory(path)
    assert again.move(1) == "first\nsecond"
    assert again.move(-1) == ""
    path.write_bytes(b"\xff\xfe broken\n+lost\n# 2026\n+kept\n")
    assert InputHistory(path).move(1) == "kept"


async def test_the_theme_is_the_same_next_time(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+t")
        chosen: Callable[[], str] = lambda: ConfigFile.of_home().settings().get_str("tui.theme")  # noqa: E731
        await wait_for(pilot, lambda: chosen() == "light")
    assert opened(theme="light").theme == app.theme


async def test_what_is_typed_meanwhile_can_wait_for_the_end(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.4}}, {{say: Later.}}]", busy_input="queue")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "three" in "".join(agent_texts(app)))
        await submit(pilot, "and then?")
        assert [item.has_class("waiting") for item in app.query(UserMessage)] == [False, True]
        await wait_for(pilot, lambda: agent_texts(app)[-1] == "Later.")
        await wait_for(pilot, lambda: is_idle(app))
        assert stored_texts(app) == ["count", SLOW, "and then?", "Later."]
        assert not app.query(".waiting")


async def test_waiting_input_of_other_clients_is_shown(
    opened: Open, db: SessionDB, tmp_path: Path
) -> None:
    command = "until test -e go-on; do sleep 0.1; done"
    call = f"{{name: terminal, arguments: {{command: '{command}'}}}}"
    hub = Hub(db)
    app = opened(
        f"[{{calls: [{call}]}}, {{say: One.}}, {{say: Two.}}]", hub=hub, busy_input="queue"
    )
    other = client.connect_in_process(hub, lambda _session, _event: None)
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "go")
        await wait_for(pilot, lambda: app.query(ToolRow))
        await submit(pilot, "mine")
        live = app.conversation.live_id
        await asyncio.to_thread(other.call, "session.steer", session_id=live, text="theirs")
        await wait_for(pilot, lambda: waiting_texts(app) == ["theirs", "mine"])
        (tmp_path / "go-on").touch()
        await wait_for(pilot, lambda: agent_texts(app) == ["One.", "Two."])
        await wait_for(pilot, lambda: is_idle(app))
        assert [message.text for message in app.query(UserMessage)] == ["go", "theirs", "mine"]
        assert waiting_texts(app) == []
    other.close()


def waiting_texts(app: HermesApp) -> list[str]:
    return [message.text for message in app.query(UserMessage).filter(".waiting")]


async def test_a_picture_returns_with_its_message_when_the_turn_is_stopped(
    opened: Open, tmp_path: Path
) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    app = opened(f"[{{say: {SLOW}, pause: 0.4}}, {{say: A pixel.}}]")
    shown: Callable[[], str] = lambda: str(app.query_one(StatusBar).render())  # noqa: E731
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: agent_texts(app))
        app.query_one(Prompt).post_message(events.Paste(str(picture)))
        await wait_for(pilot, lambda: "1 image attached" in shown())
        await submit(pilot, "look")
        await wait_for(pilot, lambda: "attached" not in shown())
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: app.query_one(Prompt).text == "look")
        await wait_for(pilot, lambda: "1 image attached" in shown())
        await pilot.press("enter")
        await wait_for(pilot, lambda: agent_texts(app)[-1] == "A pixel.")
        await wait_for(pilot, lambda: is_idle(app))
        app.conversation.reload()
        assert isinstance(app.conversation.messages[-2]["content"], list)


async def test_input_can_interrupt_the_turn(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.3}}, {{say: Instead.}}]", busy_input="interrupt")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "two" in "".join(agent_texts(app)))
        await submit(pilot, "no, this")
        await wait_for(pilot, lambda: agent_texts(app)[-1] == "Instead.")
        await wait_for(pilot, lambda: is_idle(app))
        assert stored_texts(app)[0] == "count"
        assert stored_texts(app)[1] != SLOW
        assert stored_texts(app)[2:] == ["no, this", "Instead."]


async def test_reasoning_is_an_expandable_line(opened: Open) -> None:
    thought = "first this " * 30 + "and at last that"
    app = opened(f"[{{think: {thought}, say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "go")
        row = app.query_one(ReasoningBlock)
        assert "at last that" not in str(row.render())
        row.focus()
        await pilot.press("enter")
        assert "at last that" in str(row.render())
        await submit_and_wait(pilot, "/title thoughts")
        app.conversation.reload()
        await app.show_all()
        assert app.query_one(ReasoningBlock).text == thought


async def test_a_file_change_is_shown_as_a_diff(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    call = "{name: patch, arguments: {path: a.txt, old_string: two, new_string: three}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "change it")
        shown = str(app.query_one(ToolRow).render())
        assert "-two" in shown
        assert "+three" in shown


async def test_a_running_tool_shows_its_last_output(opened: Open) -> None:
    call = "{name: terminal, arguments: {command: echo working on it; sleep 1.5}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "go")
        await wait_for(pilot, lambda: app.query(ToolRow))
        row = app.query_one(ToolRow)
        await wait_for(pilot, lambda: "\n  working on it" in str(row.render()))
        await wait_for(pilot, lambda: is_idle(app))
        assert str(row.render()).endswith(" s\n  working on it")


async def test_commands_for_a_running_turn(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.2}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "two" in "".join(agent_texts(app)))
        await submit(pilot, "/undo")
        await wait_for(pilot, lambda: "A turn is running" in last_notice(app))
        await submit(pilot, "/stop")
        await wait_for(pilot, lambda: "Interrupted" in last_notice(app))
        await wait_for(pilot, lambda: is_idle(app))
        await submit(pilot, "/stop")
        await wait_for(pilot, lambda: "nothing to /stop" in last_notice(app))


def test_paste_placeholders_expand_to_their_texts() -> None:
    pasted = PasteBuffer()
    assert pasted.collapse("short") == "short"
    word = pasted.collapse("x" * 5000)
    assert word == "[pasted text #1, 5,000 characters]"
    assert pasted.expand(f"a {word} b [pasted text #9, 3 lines]") == (
        "a " + "x" * 5000 + " b [pasted text #9, 3 lines]"
    )


def test_only_existing_image_paths_are_recognized(tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    picture.write_bytes(PIXEL)
    assert image_path(f"file://{picture}\n") == picture
    assert image_path(str(picture)) == picture
    for text in ("", "words", str(tmp_path), f"{picture}\n{picture}", "'unclosed.png", "x" * 9999):
        assert image_path(text) is None
