"""What the terminal UI can do besides showing a turn: going back, choosing, pasting, recalling."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from textual import events
from textual.widgets import OptionList, Tree

from hermes_core.config.file import ConfigFile
from hermes_tui.input_history import InputHistory
from hermes_tui.messages import ReasoningBlock, ToolRow, UserMessage
from hermes_tui.prompt import Hints, PasteBuffer, Prompt, picture_in
from hermes_tui.rewind import BranchTree, RewindDialog
from hermes_tui.session_picker import SessionPicker
from hermes_tui.status import StatusBar
from support.screens import SIZE, answers, asked, is_idle, notices, said, say, stored, until

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


async def test_going_back_to_a_prompt_takes_back_what_followed(opened: Open) -> None:
    app = opened("[{say: A1}, {say: A2}, {say: A3}]")
    async with app.run_test(size=SIZE) as pilot:
        for text in ("one", "two", "three"):
            await asked(pilot, text)
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, RewindDialog))
        await pilot.press("up", "enter")
        await until(pilot, lambda: said(app) == ["one"])
        assert app.query_one(Prompt).text == "two"
        await until(pilot, lambda: "Rewound" in notices(app)[-1])
        await pilot.press("ctrl+c", "f3")
        await until(pilot, lambda: isinstance(app.screen, RewindDialog))
        await pilot.press("r")
        await until(pilot, lambda: said(app) == ["one", "two", "three"])
        assert answers(app) == ["A1", "A2", "A3"]


async def test_branching_off_at_a_prompt_and_the_tree(opened: Open, db: SessionDB) -> None:
    app = opened("[{say: A1}, {say: A2}, {say: B2}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "one")
        await asked(pilot, "two")
        first = app.conversation.session_id
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, RewindDialog))
        await pilot.press("b")
        await until(pilot, lambda: said(app) == ["one"])
        assert app.query_one(Prompt).text == "two"
        await pilot.press("ctrl+c")
        await asked(pilot, "other")
        assert stored(app) == ["one", "A1", "other", "B2"]
        assert [row["content"] for row in db.get_messages(first)] == ["one", "A1", "two", "A2"]
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, BranchTree))
        tree = app.screen.query_one(Tree)
        assert len(tree.root.children) == 1
        assert "you are here" in str(tree.root.children[0].children[0].label)
        await pilot.press("home", "enter")
        await until(pilot, lambda: said(app) == ["one", "two"])
        assert app.conversation.session_id == first


async def test_another_conversation_is_typed_for_and_chosen(opened: Open, db: SessionDB) -> None:
    for name, text in (("garden", "roses need water"), ("kitchen", "bread needs flour")):
        db.create_session(name, "cli", cwd=f"/{name}")
        db.append_message(name, "user", text)
    app = opened("[{say: A1}]")
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "/resume")
        await until(pilot, lambda: isinstance(app.screen, SessionPicker))
        found = app.screen.query_one(OptionList)
        await until(pilot, lambda: found.option_count == 2)
        await pilot.press(*"flour")
        await until(pilot, lambda: found.option_count == 1)
        await pilot.press("enter")
        await until(pilot, lambda: said(app) == ["bread needs flour"])
        assert app.conversation.session_id == "kitchen"


async def test_the_choice_can_be_of_this_folder_only(
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
        await until(pilot, lambda: isinstance(app.screen, SessionPicker))
        found = app.screen.query_one(OptionList)
        await until(pilot, lambda: found.option_count == 3)
        await pilot.press("f2")
        await until(pilot, lambda: found.option_count < 3)
        await pilot.press("delete", "delete")
        await until(pilot, lambda: db.session_count() == 2)
        await pilot.press("escape")
        assert not isinstance(app.screen, SessionPicker)


async def test_a_long_text_that_is_pasted_stands_as_one_word_and_is_sent_whole(
    opened: Open,
) -> None:
    app = opened("[{say: Read.}]")
    text = "\n".join(f"line {number}" for number in range(50))
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press(*"see:", "space")
        prompt.post_message(events.Paste(text))
        await until(pilot, lambda: prompt.text == "see: [pasted #1: 50 lines]")
        await pilot.press("enter")
        await until(pilot, lambda: answers(app) == ["Read."])
        assert stored(app)[0] == f"see: {text}"


async def test_a_picture_that_is_dropped_goes_along(
    opened: Open, tmp_path: Path, db: SessionDB
) -> None:
    picture = tmp_path / "a picture.png"
    picture.write_bytes(PIXEL)
    app = opened("[{say: A pixel.}]")
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(Prompt).post_message(events.Paste(f"'{picture}'"))
        await until(pilot, lambda: "1 picture attached" in str(app.query_one(StatusBar).render()))
        await asked(pilot, "what is this?")
        assert "attached" not in str(app.query_one(StatusBar).render())
        row = db.get_messages(app.conversation.session_id)[0]
        assert [part["type"] for part in row["content"]] == ["text", "image_url"]
        await asked(pilot, "/image nothing.png")
        await until(pilot, lambda: "nothing.png" in notices(app)[-1])


async def test_tab_finishes_a_path_and_commands_are_hinted_at(opened: Open, tmp_path: Path) -> None:
    for name in ("water-roses.py", "water-beds.py"):
        (tmp_path / name).touch()
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        prompt, hints = app.query_one(Prompt), app.query_one(Hints)
        await pilot.press(*"look at ./wa", "tab")
        await until(pilot, lambda: prompt.text == "look at ./water-")
        assert "water-beds.py" in str(hints.render())
        await pilot.press("r", "tab")
        await until(pilot, lambda: prompt.text == "look at ./water-roses.py")
        await pilot.press("ctrl+c", *"/com")
        await until(pilot, lambda: "summarize" in str(hints.render()))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not hints.display)


async def test_what_was_sent_is_recalled_on_another_day(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "history"
    app = opened("[{say: A1}]", recall=InputHistory(path))
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "first\nsecond")
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
        await until(pilot, lambda: chosen() == "light")
    assert opened(theme="light").theme == app.theme


async def test_what_is_typed_meanwhile_can_wait_for_the_end(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.4}}, {{say: Later.}}]", busy_input="queue")
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "count")
        await until(pilot, lambda: "three" in "".join(answers(app)))
        await say(pilot, "and then?")
        assert [one.has_class("waiting") for one in app.query(UserMessage)] == [False, True]
        await until(pilot, lambda: answers(app)[-1] == "Later.")
        await until(pilot, lambda: is_idle(app))
        assert stored(app) == ["count", SLOW, "and then?", "Later."]
        assert not app.query(".waiting")


async def test_what_is_typed_meanwhile_can_take_the_turns_place(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.3}}, {{say: Instead.}}]", busy_input="interrupt")
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "count")
        await until(pilot, lambda: "two" in "".join(answers(app)))
        await say(pilot, "no, this")
        await until(pilot, lambda: answers(app)[-1] == "Instead.")
        await until(pilot, lambda: is_idle(app))
        assert stored(app)[0] == "count"
        assert stored(app)[1] != SLOW
        assert stored(app)[2:] == ["no, this", "Instead."]


async def test_what_the_model_thinks_is_a_line_that_opens(opened: Open) -> None:
    thought = "first this " * 30 + "and at last that"
    app = opened(f"[{{think: {thought}, say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "go")
        row = app.query_one(ReasoningBlock)
        assert "at last that" not in str(row.render())
        row.focus()
        await pilot.press("enter")
        assert "at last that" in str(row.render())
        await asked(pilot, "/title thoughts")
        app.conversation.reload()
        await app.show_all()
        assert app.query_one(ReasoningBlock).text == thought


async def test_a_change_to_a_file_is_shown_as_what_it_changes(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    call = "{name: patch, arguments: {path: a.txt, old_string: two, new_string: three}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await asked(pilot, "change it")
        shown = str(app.query_one(ToolRow).render())
        assert "-two" in shown
        assert "+three" in shown


async def test_a_running_tool_shows_the_end_of_what_it_prints(opened: Open) -> None:
    call = "{name: terminal, arguments: {command: echo working on it; sleep 1.5}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "go")
        await until(pilot, lambda: app.query(ToolRow))
        row = app.query_one(ToolRow)
        await until(pilot, lambda: "\n  working on it" in str(row.render()))
        await until(pilot, lambda: is_idle(app))
        assert "\n" not in str(row.render())


async def test_commands_for_a_running_turn(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.2}}]")
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "count")
        await until(pilot, lambda: "two" in "".join(answers(app)))
        await say(pilot, "/undo")
        await until(pilot, lambda: "A turn is running" in notices(app)[-1])
        await say(pilot, "/stop")
        await until(pilot, lambda: "Interrupted" in notices(app)[-1])
        await until(pilot, lambda: is_idle(app))
        await say(pilot, "/stop")
        await until(pilot, lambda: "nothing to /stop" in notices(app)[-1])


def test_pasted_words_stand_for_their_texts() -> None:
    pasted = PasteBuffer()
    assert pasted.collapse("short") == "short"
    word = pasted.collapse("x" * 5000)
    assert word == "[pasted #1: 5,000 characters]"
    assert pasted.expand(f"a {word} b [pasted #9: 3 lines]") == (
        "a " + "x" * 5000 + " b [pasted #9: 3 lines]"
    )


def test_only_a_path_of_a_picture_is_one(tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    picture.write_bytes(PIXEL)
    assert picture_in(f"file://{picture}\n") == picture
    assert picture_in(str(picture)) == picture
    for text in ("", "words", str(tmp_path), f"{picture}\n{picture}", "'unclosed.png", "x" * 9999):
        assert picture_in(text) is None
