"""A user's first hour with the terminal UI: real processes, a real terminal, a real HTTP server.

Every step waits for what the screen has to show, so the screens are compared as text: `rows` with
their lines, `shows` without regard to where a text is wrapped.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.retry import MAX_ATTEMPTS
from hermes_agent.providers.scripted import ModelScript
from support.checkpoints import git
from support.command_line import command
from support.daemons import stopping_daemon
from support.scripted_server import ScriptServer
from support.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = "def is_dry(moisture):\n    return moisture < 0.3\n"
EDIT = {"path": "watering.py", "old_string": "moisture < 0.3", "new_string": "moisture < 0.5"}
PASTED = "\n".join(f"reading {number}" for number in range(30))
STORY = " ".join(f"word{number}" for number in range(1_000))
LIMIT = {
    "status": 429,
    "retry_after": 600,
    "message": "3 requests per minute are allowed.",
    "request_id": "req_42",
}
TODO = {"items": ["[x] read the code", "[>] write a test"]}
TEST = "from watering import is_dry\n\n\ndef test_dry():\n    assert is_dry(0.1)\n"
STEPS = [
    {"say": "It has **one** function, `is_dry`.\n\n- it compares the moisture\n- with 0.3\n"},
    {"calls": [{"name": "terminal", "arguments": {"command": "rm -rf build && echo removed"}}]},
    {"say": "The build folder is gone."},
    {"calls": [{"name": "patch", "arguments": EDIT}]},
    {"say": "It waters earlier now."},
    {"say": "Two lines, as attached."},
    {"say": "Thirty readings."},
    {"calls": [{"name": "todo", "arguments": TODO}]},
    {"say": "One step is left."},
    {"calls": [{"name": "present_plan", "arguments": {"plan": "Add a test of `is_dry`."}}]},
    {"calls": [{"name": "write_file", "arguments": {"path": "test_it.py", "content": TEST}}]},
    {"say": "The test is written."},
    {"say": STORY, "pause": 0.05},
    {"fail": LIMIT},
    {"say": "This sentence ends in the", "finish": "length"},
    *[{"say": "This line is", "cut": True}] * MAX_ATTEMPTS,  # asked for again each time
]
BORDERED = re.compile(r"^.*?│(.*)│.*$")


class Screen:
    """The terminal of the user."""

    def __init__(self, terminal: Tmux) -> None:
        self.terminal = terminal

    def lines(self, screen: str) -> list[str]:
        """The lines of a screen: of a box its content; without scroll bars, ports and times."""
        found = []
        for line in screen.splitlines():
            inner = BORDERED.sub(r"\1", line)
            inner = re.sub(r"[╭╰]─+[╮╯]|[▁▂▃▄▅▆▇█] *$", "", inner)
            inner = re.sub(r"127\.0\.0\.1:\d+", "SERVER", inner)
            inner = re.sub(r"\b\d+\.\d s\b", "0.0 s", inner)
            found.append(inner.rstrip())
        return found

    def shows(self, text: str) -> None:
        """Wait until the screen has a text; where it is wrapped does not matter."""
        wanted = " ".join(text.split())
        self.terminal.wait_until(
            lambda screen: wanted in " ".join(" ".join(self.lines(screen)).split()), repr(wanted)
        )

    def rows(self, block: str) -> None:
        """Wait until the screen has these lines, one below the other; empty ones do not count."""
        wanted = _dense(textwrap.dedent(block).splitlines())
        count = len(wanted)
        self.terminal.wait_until(
            lambda screen: any(
                lines[start : start + count] == wanted
                for lines in [_dense(textwrap.dedent(line) for line in self.lines(screen))]
                for start in range(len(lines))
            ),
            "\n".join(wanted),
        )

    def lacks(self, text: str) -> None:
        """Wait until a text is gone."""
        self.terminal.wait_until(lambda screen: text not in screen, f"no {text!r}")

    def ask(self, text: str) -> None:
        """Send a message or a command."""
        self.terminal.type(f"{text}\n")

    def idle(self) -> None:
        """Wait for the end of the turn: the status line begins with the mode."""
        self.terminal.wait_until(
            lambda screen: screen.rstrip().splitlines()[-1].strip().startswith("workspace"),
            "the end of the turn",
        )


def _dense(lines: Iterator[str] | list[str]) -> list[str]:
    return [re.sub(r" {2,}", "  ", line.strip()) for line in lines if line.strip()]


@pytest.fixture
def server() -> Iterator[ScriptServer]:
    with stopping_daemon(), ScriptServer(ModelScript.parse(f"steps: {json.dumps(STEPS)}")) as found:
        found.models = [
            {
                "id": "scripted",
                "context_length": 128_000,
                "pricing": {"prompt": "0.000002", "completion": "0.00001"},
            },
            {"id": "scripted-mini", "context_length": 32_000},
        ]
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "garden"
    (path / "build").mkdir(parents=True)
    (path / "build" / "x").write_text("x")
    git(path, "init", "-q")
    (path / "watering.py").write_text(SOURCE)
    return path


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_the_first_hour(
    tmp_path: Path, folder: Path, server: ScriptServer, columns: int, lines: int
) -> None:
    key = {"OPENAI_API_KEY": "sk-found", "OPENAI_BASE_URL": server.base_url}
    with Tmux(tmp_path, columns, lines, **key) as terminal:
        screen = Screen(terminal)
        terminal.type(f"cd {shlex.quote(str(folder))}\n")
        _start_and_ask(screen)
        _change_files_and_take_it_back(screen, folder)
        _type_as_in_other_agents(screen, folder, server)
        _look_at_the_state(screen)
        _plan_and_act(screen, folder)
        _see_what_went_wrong(screen)
        _leave_and_come_back(screen, folder)


def _start_and_ask(screen: Screen) -> None:
    screen.terminal.run(command())
    screen.shows("Hermes, scripted. /help lists commands, F1 shows keys, Ctrl+D quits.")
    screen.shows(
        "No model is configured: using scripted (http://SERVER/v1) with OPENAI_API_KEY. "
        "Run `hermes setup` to choose another one."
    )
    screen.rows("Ask anything; / commands, @ files, ! shell, # memory, F1 keys")
    screen.ask("what does watering.py do?")
    screen.rows("""
        █ what does watering.py do?
        It has one function, is_dry.
        • it compares the moisture
        • with 0.3
    """)
    screen.idle()
    screen.terminal.press("F1")  # the keys fit the screen: the first and the last are visible
    screen.rows("Enter  send (steers the current turn if one is running)")
    screen.rows("F1  show these keys; /help lists commands, /copy copies")
    screen.terminal.press("C-c")
    screen.lacks("show these keys")


def _change_files_and_take_it_back(screen: Screen, folder: Path) -> None:
    screen.ask("remove the build folder")
    screen.shows("Deletes folders recursively")
    screen.rows("▶ rm -rf build && echo removed")
    screen.shows("Tab, Enter choose · Esc denies")  # from now on keys are an answer
    assert (folder / "build").exists()
    screen.terminal.press("o")
    screen.rows("""
        ✓ terminal rm -rf build && echo removed  0.0 s
        removed
        The build folder is gone.
    """)
    screen.idle()
    assert not (folder / "build").exists()
    screen.ask("water earlier")
    screen.rows("""
        ✓ patch watering.py  0.0 s
        @@ -1,2 +1,2 @@
        def is_dry(moisture):
        -    return moisture < 0.3
        +    return moisture < 0.5
        It waters earlier now.
    """)
    screen.idle()
    screen.ask("/diff")
    screen.rows("""
        @@ -1,2 +1,2 @@
        def is_dry(moisture):
        -    return moisture < 0.3
        +    return moisture < 0.5
        arrows, PgUp, PgDn scroll · Esc close
    """)
    screen.terminal.press("C-c")
    screen.lacks("Esc close")
    screen.ask("/undo")
    screen.rows("""
        [x] watering.py (modified by the agent)
        diff --git a/watering.py b/watering.py
    """)
    screen.rows("""
        -    return moisture < 0.5
        +    return moisture < 0.3
        Enter conversation and files · c conversation only · f files only
        Space select · Tab scroll the diff · Esc cancel
    """)
    screen.terminal.press("Space")
    screen.rows("[ ] watering.py (modified by the agent)")
    screen.terminal.press("Space")
    screen.rows("[x] watering.py (modified by the agent)")
    screen.terminal.press("Enter")
    screen.rows("""
        Undid 4 messages. /redo restores them.
        Restored 1 file: watering.py
        /checkpoints restore 3 undoes this.
        water earlier
    """)
    assert (folder / "watering.py").read_text() == SOURCE
    screen.terminal.press("C-c")
    screen.rows("Ask anything; / commands, @ files, ! shell, # memory, F1 keys")


def _type_as_in_other_agents(screen: Screen, folder: Path, server: ScriptServer) -> None:
    terminal = screen.terminal
    terminal.type("explain @wtr")
    screen.rows("❯ watering.py")  # noqa: RUF001 - the mark of the selection
    terminal.press("Tab")
    screen.rows("explain @watering.py")
    terminal.press("Enter")
    screen.rows("""
        █ explain @watering.py
        █ + file watering.py, 2 lines
        Two lines, as attached.
    """)
    screen.idle()
    screen.ask("!echo from the shell; exit 4")
    screen.rows("""
        ✗ ! echo from the shell; exit 4  exit code 4  0.0 s
        from the shell
    """)
    screen.ask("#the pump runs at night")
    screen.shows("Remembered in")
    terminal.paste(PASTED)
    screen.rows("[pasted text #1, 30 lines]")
    terminal.press("Enter")
    screen.rows("Thirty readings.")
    screen.idle()
    sent = json.dumps(server.requests[-1]["messages"])
    assert "reading 29" in sent
    assert "from the shell" in sent
    assert "return moisture < 0.3" in sent
    terminal.type("/")
    screen.rows("""
        ❯ /new  end this conversation and start a new one
        /resume [ID or title]  continue another conversation
    """)  # noqa: RUF001 - the mark of the selection
    terminal.type("permi")
    screen.rows("❯ /permissions [plan|workspace|full|remove RULE]  show or change permissions")  # noqa: RUF001 - as above
    terminal.press("C-c")
    screen.lacks("Enter accept")


def _look_at_the_state(screen: Screen) -> None:
    screen.ask("/model")
    screen.rows("""
        http://SERVER/v1#scripted  128k  $2 / $10
        http://SERVER/v1#scripted-mini  32k  -
        Enter choose · Esc close
    """)
    screen.terminal.press("Escape")
    screen.lacks("Esc close")
    screen.ask("/context")
    screen.shows("of 128,000 tokens")
    screen.ask("/todo")
    screen.shows("The todo list is empty.")
    screen.ask("keep a list")
    screen.rows("""
        ✓ todo  0.0 s
        ☑ read the code
        ▶ write a test
        One step is left.
    """)
    screen.idle()
    screen.ask("/help")  # no command takes two lines
    screen.rows("""
        /help  list commands, or explain one
        /quit  exit; the conversation is saved
        /help COMMAND shows its arguments.
    """)
    screen.ask("/help /clear")
    screen.rows("""
        /new
        end this conversation and start a new one
        other names: /reset, /clear
    """)


def _plan_and_act(screen: Screen, folder: Path) -> None:
    screen.terminal.press("BTab")
    screen.terminal.wait_until(
        lambda text: text.rstrip().splitlines()[-1].strip().startswith("plan ·"), "plan mode"
    )
    screen.ask("add a test")
    screen.rows("""
        Add a test of `is_dry`.
        Start? The agent may then change files in the working folder.
        Start with this plan
        Keep planning
    """)
    assert not (folder / "test_it.py").exists()
    screen.terminal.press("Down", "Up")
    screen.terminal.press_until("Enter", lambda text: "Keep planning" not in text)
    screen.rows("""
        ✓ write_file test_it.py  0.0 s
        @@ -0,0 +1,5 @@
        +from watering import is_dry
        +
        +
        +def test_dry():
        +    assert is_dry(0.1)
        The test is written.
    """)
    screen.idle()
    assert (folder / "test_it.py").read_text() == TEST


def _see_what_went_wrong(screen: Screen) -> None:
    screen.ask("tell me a story")
    screen.shows("word3 word4")
    screen.terminal.press("C-c")
    screen.shows("Interrupted. Partial output was saved.")
    screen.idle()
    screen.ask("and now?")
    screen.shows(
        "Rate limit of SERVER reached (429): 3 requests per minute are allowed (request ID "
        "req_42). The provider requests a pause of 10 min. Ask again in 10 min with /retry, or "
        "choose another model with /model."
    )
    screen.idle()
    screen.ask("once more")
    screen.shows(
        "This sentence ends in the The answer was cut off at the output limit of scripted. "
        "Send `continue` for the rest"
    )
    screen.idle()
    screen.ask("and again")
    screen.shows(
        "This line is The connection to SERVER was lost before the answer was complete. Tried 4 "
        "times. What arrived is kept. Ask again with /retry"
    )
    screen.idle()


def _leave_and_come_back(screen: Screen, folder: Path) -> None:
    terminal = screen.terminal
    screen.ask("/export story.md")
    screen.shows("Saved to")
    exported = (folder / "story.md").read_text()
    assert "explain @watering.py" in exported
    terminal.press("C-d")
    left = terminal.wait_for_end()
    assert re.search(r"To continue: `hermes -r \w+`", left)
    terminal.run(command("-c"))
    screen.rows("""
        █ once more
        This sentence ends in the
        Cut off at the output limit.
        █ and again
        This line is
        Incomplete: the request failed.
        Ask anything; / commands, @ files, ! shell, # memory, F1 keys
    """)
    terminal.press("C-d")
    terminal.wait_for_end()
    usage = _output(terminal, "usage")
    assert re.search(r"day +conversations +input +output +from cache +to cache +cost", usage)
    assert re.search(r"total +1 +[\d,]+ +[\d,]+ +0 +0 +\$0\.00", usage)
    listed = _output(terminal, "sessions", "list")
    assert re.search(r"just now +tui +\d+ +what does watering.py do\?", listed)


def _output(terminal: Tmux, *arguments: str) -> str:
    """The output of a command; that of the one before must be gone first."""
    terminal.type("clear\n")
    terminal.wait_until(lambda screen: "END-" not in screen, "an empty screen")
    terminal.run(command(*arguments))
    return terminal.wait_for_end()
