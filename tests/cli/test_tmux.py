"""The session browser and tables in tmux: wide, narrow, without colours, piped."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from hermes_core.terminal_text import width
from hermes_state import SessionDB
from support.command_line import command
from support.sample_history import CHAT, OSLO
from support.tmux import Tmux
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Window = Callable[..., Tmux]

COLOURS = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[\d;]*|48;[\d;]*)m")
BROWSE = command("sessions", "browse")


@pytest.fixture
def window(tmp_path: Path, history: Path) -> Window:
    """Open a window on the small history, with one conversation of wide characters more."""
    with SessionDB() as db:
        db.create_session("wide", "cli")
        db.append_message("wide", "user", "世界图片" * 60, timestamp=time.time() - 10)

    def opened(columns: int, lines: int, **environment: str) -> Tmux:
        return Tmux(tmp_path, columns, lines, **environment)

    return opened


def assert_fits(screen: str, columns: int) -> None:
    assert [line for line in screen.splitlines() if width(line) > columns] == []


@pytest.mark.parametrize(("columns", "lines"), [(132, 40), (80, 24), (60, 20), (40, 12)])
def test_the_picker_fits_and_answers(window: Window, columns: int, lines: int) -> None:
    with window(columns, lines) as terminal:
        terminal.run(BROWSE)
        screen = terminal.wait_for("3 conversations")
        assert_fits(screen, columns)
        assert "Weather in Oslo" in screen
        terminal.type("oslo")
        terminal.wait_for("1 of 3 conv")
        terminal.press("Enter")
        assert OSLO in terminal.wait_for_end()


def test_wide_characters_stay_in_their_columns(window: Window) -> None:
    with window(100, 24) as terminal:
        terminal.run(BROWSE)
        terminal.wait_for("3 conversations")
        screen = terminal.wait_until(lambda screen: "user  20" in screen, "the preview")
        rows = [line for line in screen.splitlines() if "│" in line]
        assert len({width(line.partition("│")[0]) for line in rows}) == 1
        assert len(rows) == 22


def test_a_window_that_changes_its_size(window: Window) -> None:
    with window(120, 30) as terminal:
        terminal.run(BROWSE)
        terminal.wait_for("│")
        terminal._tmux("resize-window", "-x", "45", "-y", "12")
        screen = terminal.wait_until(
            lambda screen: "│" not in screen and "Weather in Oslo" in screen, "a narrow list"
        )
        assert_fits(screen, 45)


def test_no_colours_where_none_are_wanted(window: Window, history: Path) -> None:
    def styled(**environment: str) -> str:
        with window(120, 30, **environment) as terminal:
            terminal.run(BROWSE)
            terminal.wait_until(lambda screen: "user  20" in screen, "the preview")
            return terminal.screen(styled=True)

    assert COLOURS.search(styled())
    plain = styled(NO_COLOR="1")
    assert not COLOURS.search(plain)
    assert "\x1b[7m" in plain  # the selected row is still marked
    (history / "config.yaml").write_text("display:\n  color: never\n")
    assert not COLOURS.search(styled())


def test_the_answer_is_written_to_the_pipe_and_the_list_to_the_terminal(
    window: Window, tmp_path: Path
) -> None:
    answer, errors = tmp_path / "answer", tmp_path / "errors"
    with window(100, 30) as terminal:
        terminal.run(BROWSE, f"< /dev/null 2> {errors} | cat > {answer}")
        terminal.wait_for("Weather in Oslo")
        terminal.press("Down", "Enter")
        terminal.wait_for_end()
        assert answer.read_text() == f"{CHAT}\n"
        assert errors.read_text() == ""


def test_a_command_receives_the_answer(window: Window) -> None:
    show = " ".join(command("sessions", "show"))
    with window(100, 40) as terminal:
        terminal.type(f'clear; {show} "$({" ".join(BROWSE)})"; echo END-$?-\n')
        terminal.wait_for("3 conversations")
        terminal.type("guten")
        terminal.wait_for("1 of 3")
        terminal.press("Enter")
        assert "Guten Tag, 世界" in terminal.wait_for_end()


def test_json_prints_the_row(window: Window, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    with window(100, 30) as terminal:
        terminal.run([*BROWSE, "--json", "--source", "telegram"], f"> {answer}")
        terminal.wait_for("1 conversations")
        terminal.press("Enter")
        terminal.wait_for_end()
    row = json.loads(answer.read_text())
    assert (row["id"], row["source"], row["state"]) == (CHAT, "telegram", "open")


@pytest.mark.parametrize("key", ["Escape", "C-c"])
def test_leaving_prints_nothing_and_restores_the_terminal(
    window: Window, tmp_path: Path, key: str
) -> None:
    answer = tmp_path / "answer"
    with window(80, 24) as terminal:
        terminal.run(BROWSE, f"> {answer}")
        terminal.wait_for("3 conversations")
        terminal.press(key)
        assert "conversation" not in terminal.wait_for_end(code=130).replace("sessions", "")
        assert answer.read_text() == ""
        terminal.type("echo ec''ho is back\n")
        terminal.wait_for("\necho is back")


def test_emptying_the_trash_is_confirmed_on_the_terminal(window: Window) -> None:
    with window(100, 24) as terminal:
        terminal.run(BROWSE)
        terminal.wait_for("3 conversations")
        terminal.type("oslo")
        terminal.wait_for("1 of 3")
        terminal.press("C-d")
        terminal.wait_for("to the trash? [y/N]")
        terminal.type("y")
        # The message about it is replaced if the search for the text ends later.
        terminal.wait_until(
            lambda screen: "moved to the trash" in screen or "0 of 2" in screen, "the trash"
        )
        terminal.press("Escape")
        terminal.wait_for_end(code=130)
    with SessionDB() as db:
        assert [row.session_id for row in db.trash.content()] == [OSLO]


def test_without_a_terminal_the_error_names_an_alternative(history: Path) -> None:
    result = subprocess.run(
        BROWSE, capture_output=True, check=False, timeout=PATIENCE_SECONDS, start_new_session=True
    )
    assert result.returncode == 2
    assert b"requires an interactive terminal" in result.stderr
    assert b"sessions list" in result.stderr
    assert result.stdout == b""


def test_a_terminal_that_cannot_move_its_cursor_is_none(window: Window) -> None:
    with window(100, 24, TERM="dumb") as terminal:
        terminal.run(BROWSE)
        assert "requires an interactive terminal" in terminal.wait_for_end(code=2)


def test_without_a_history_there_is_nothing_to_pick(window: Window, history: Path) -> None:
    (history / "state.db").unlink()
    with window(100, 24) as terminal:
        terminal.run(BROWSE)
        assert "No conversations yet" in terminal.wait_for_end(code=1)


TABLES = [
    ("sessions", "list"),
    ("sessions", "search", "Oslo"),
    ("plugins", "list"),
    ("hooks", "log"),
]


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
@pytest.mark.parametrize("columns", [40, 132])
def test_tables_in_a_narrow_and_a_wide_window(
    window: Window, arguments: tuple[str, ...], columns: int
) -> None:
    with window(columns, 40) as terminal:
        terminal.run(command(*arguments))
        terminal.wait_for_end()
        assert COLOURS.search(terminal.screen(styled=True))
    if arguments != (
        "sessions",
        "search",
        "Oslo",
    ):  # matches are printed in full and wrap
        with window(columns, 40, NO_COLOR="1") as terminal:
            terminal.run(
                command(*arguments), f"> >(cat > /dev/null); {' '.join(command(*arguments))}"
            )
            screen = terminal.wait_for_end()
            assert not COLOURS.search(terminal.screen(styled=True))
            first = screen.splitlines()[0]
            assert len([line for line in screen.splitlines() if line == first]) == 1


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_tables_in_a_pipe_are_complete_and_plain(
    window: Window, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    piped = tmp_path / "piped"
    with window(40, 24) as terminal:
        terminal.run(command(*arguments), f"| cat > {piped}")
        terminal.wait_for_end()
    text = piped.read_text()
    assert "\x1b" not in text
    assert "…" not in text
    assert any(width(line) > 40 for line in text.splitlines())
