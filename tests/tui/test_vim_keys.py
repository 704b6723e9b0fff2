"""Vim keys of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_tui.prompt import Prompt
from hermes_tui.status import StatusBar
from hermes_tui.vim.keys import VimKeys, VimMode
from support.screens import is_idle, submit_and_wait, user_texts, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

ESC = "\x1b"


def after_keys(start: str, keys: Iterable[str]) -> str:
    """The text after keys of normal mode; `|` is the cursor."""
    cursor, text, vim = start.index("|"), start.replace("|", ""), VimKeys()
    vim.mode = VimMode.NORMAL
    for key in keys:
        change = vim.press("escape" if key == ESC else key, text, cursor)
        if change is not None:
            text, cursor = change.apply(text), change.cursor
        else:  # typed in insert mode
            text, cursor = text[:cursor] + key + text[cursor:], cursor + 1
    return f"{text[:cursor]}|{text[cursor:]}"


@pytest.mark.parametrize(
    ("start", "keys", "expected"),
    [
        ("|one two", "w", "one |two"),
        ("|one two", "$", "one tw|o"),
        ("one tw|o", "0", "|one two"),
        ("  one| two", "^", "  |one two"),
        ("|one, two", "ww", "one, |two"),
        ("|one, two", "W", "one, |two"),
        ("|one two", "e", "on|e two"),
        ("one tw|o", "bb", "|one two"),
        ("|one two three", "2w", "one two |three"),
        ("a|b\ncd", "j", "ab\nc|d"),
        ("abcd\ne|f", "k", "a|bcd\nef"),
        ("a\nb\n|c", "gg", "|a\nb\nc"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("|a\nb\nc", "2G", "a\n|b\nc"),
        ("|say x and x", "fx;", "say x and |x"),
        ("|say x and x", "tx;", "say x and| x"),
        ("say x and |x", "Fx", "say |x and x"),
        ("|say x and x", "fx;,", "say |x and x"),
        ("|one", "l" * 9, "on|e"),
        ("|one", "h", "|one"),
    ],
)
def test_motions(start: str, keys: str, expected: str) -> None:
    assert after_keys(start, keys) == expected


@pytest.mark.parametrize(
    ("start", "keys", "expected"),
    [
        ("o|ne", "x", "o|e"),
        ("on|e", "x", "o|n"),
        ("o|ne", "X", "|ne"),
        ("|one two", "dw", "|two"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "2dw", "|three"),
        ("|one two three", "d2w", "|three"),
        ("o|ne two", "D", "|o"),
        ("one two thre|e", "db", "one two |e"),
        ("|one two", "de", "| two"),
        ("a\n|b\nc", "dd", "a\n|c"),
        ("a\nb\n|c", "dd", "a\n|b"),
        ("|a\nb\nc", "2dd", "|c"),
        ("|a\nb\nc", "dG", "|"),
        ("|a\nb\nc", "dj", "|c"),
        ("one (t|wo) three", "di(", "one (|) three"),
        ("one (a (t|wo) b)", "da(", "one (a | b)"),
        ("one (a (two) |b)", "di(", "one (|)"),
        ('say "he|llo"', 'di"', 'say "|"'),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("|a.b(c) d", "dW", "|d"),
        ("|say x now", "dfx", "| now"),
        ("|say x now", "dtx", "|x now"),
        ("|one", "rX", "|Xne"),
        ("|one", "9rX", "|one"),
        ("|one", "3~", "ON|E"),
        ("|a\n  b", "J", "a| b"),
        ("|one two", "cwNEW" + ESC, "NE|W two"),
        ("|one two", "cw" + ESC + "u", "| two"),
        ("|one two", "ccnew" + ESC, "ne|w"),
        ("o|ne two", "Cx" + ESC, "o|x"),
        ("|one", "ax" + ESC, "o|xne"),
        ("o|ne", "Ix" + ESC, "|xone"),
        ("|one", "Ax" + ESC, "one|x"),
        ("|one", "onew" + ESC, "one\nne|w"),
        ("|one", "Onew" + ESC, "ne|w\none"),
        ("|one", "sx" + ESC, "|xne"),
        ("|one two", "yiwP", "on|eone two"),
        ("|one two", "dwp", "tone| wo"),
        ("|a\nb", "yyp", "a\n|a\nb"),
        ("|a\nb", "ddp", "b\n|a"),
        ("a\n|b", "yyP", "a\n|b\nb"),
        ("|one two three", "dw.", "|three"),
        ("|one two", "cwx" + ESC + "w.", "x |x"),
        ("|abc", "x..", "|"),
        ("|one", "d" + ESC + "x", "|ne"),
        ("|one", "dzx", "|ne"),
        ("|", "x", "|"),
        ("|", "dd", "|"),
        ("|", "wbe$0", "|"),
    ],
)
def test_changes(start: str, keys: str, expected: str) -> None:
    assert after_keys(start, keys) == expected


def test_every_sequence_of_keys_leaves_the_cursor_in_the_text() -> None:
    keys = "hjklwbeWBE0^$GgfxXdcyprJ~.uiaoOAI;,1(\"'" + ESC
    vim, text, cursor = VimKeys(), 'one (two) "three"\n\n  four\'s', 3
    for number in range(5000):
        key = keys[(number * number * 31 + number * 7) % len(keys)]
        change = vim.press("escape" if key == ESC else key, text, cursor)
        if change is not None:
            text, cursor = change.apply(text), change.cursor
        assert 0 <= cursor <= len(text), (number, key)


async def test_vim_keys_edit_the_input_and_the_status_shows_the_mode(opened: Open) -> None:
    app = opened("[{say: Good.}, {say: Again.}]", has_vim_keys=True)
    async with app.run_test(size=(80, 24)) as pilot:
        prompt, status = app.query_one(Prompt), app.query_one(StatusBar)
        await wait_for(pilot, lambda: str(status.render()).startswith("INSERT · "))
        await pilot.press(*"one two", "escape")
        await wait_for(pilot, lambda: str(status.render()).startswith("NORMAL · "))
        await pilot.press(*"ciwthree", "escape", "0", "d", "w", "dollar_sign", "p", "slash")
        assert prompt.text == "threeone "
        await pilot.press("u", "enter")
        await wait_for(pilot, lambda: user_texts(app) == ["three"])
        assert str(status.render()).startswith("INSERT") or not is_idle(app)
        await wait_for(pilot, lambda: is_idle(app))
        await submit_and_wait(pilot, "second")
        await pilot.press("escape", "k")
        assert prompt.text == "second"
        await pilot.press("k")
        assert prompt.text == "three"
        await pilot.press("j", "i", "!", "slash")
        assert prompt.text == "secon!/d"
        await pilot.press("f1")
        keys = "\n".join(str(line.render()) for line in app.screen.query("Static"))
        assert "vim keys: normal mode" in keys
        assert app.screen.query_one(".dialog").max_scroll_y == 0


async def test_without_the_setting_keys_are_text(opened: Open) -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x", "escape", "x")
        assert app.query_one(Prompt).text == "xx"
        assert "INSERT" not in str(app.query_one(StatusBar).render())
