"""The check of wording in user-visible text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_words.py"

AVOIDED = (
    "Nobody is connected",
    "somebody else",
    "for whoever asks",
    "'foo' is no age",
    "these are no sessions",
    "It is used no more.",
    "It is not used any more.",
    "not used anymore",
    "make it anew",
    "go on with it",
    "the turn goes on",
    "Take one of them away",
    "it takes secrets along",
    "Let them in",
    "who was let in",
    "put a backup back",
    "bring it back",
    "plugins hear of it",
    "an event was told",
    "reconnects by itself",
    "deleted for good",
    "which model shall answer",
    "The gateway does not run.",
    "Switch it on",
    "a made-up history",
    "a toy model",
    "messages of a stranger",
    "changes can be taken back",
    "take the last change back",
    "The daemon is of another release.",
    "work.txt exists already",
    "Mend the permissions",
    "a start-up file of the shell",
    "a message says so",
    "The page says which model is used.",
    "the database said 'locked'",
    "Error of anthropic: overloaded",
)
ACCEPTED = (
    "The session is no longer open.",
    "no more than 40 characters",
    "No results",
    "Remove a filter to see more.",
    "Click here to log in",
    "The outlet is indoors",
    "Sessions are shown again.",
    "Switch to the dark theme",
    "The user said: no",
    "If you are stuck, say so.",
    "Take a backup",
    "another machine takes over",
    "work.txt already exists",
    "a recommendation",
)


def check(*paths: Path) -> tuple[int, str]:
    command = [sys.executable, str(TOOL), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr or "no such file" in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def write(tmp_path: Path):
    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_every_avoided_wording_is_found(write) -> None:
    path = write("texts.ts", "".join(f'x("{words}");\n' for words in AVOIDED))
    code, out = check(path)
    assert code == 1
    results = {int(line.split(":")[1]) for line in out.splitlines()}
    missed = [words for number, words in enumerate(AVOIDED, 1) if number not in results]
    assert missed == []
    assert all(": write " in line for line in out.splitlines())


def test_similar_wording_is_accepted(write) -> None:
    path = write("texts.ts", "".join(f'x("{words}");\n' for words in ACCEPTED))
    assert check(path) == (0, "")


def test_typescript_literals_and_comments_are_checked(write) -> None:
    path = write(
        "page.tsx",
        'import { x } from "./nobody";\n'
        "/** Nobody reads this. */\n"
        "// nobody: https://example.org\n"
        "export const a = 'nobody';\n"
        "const b = (n: string) => `two lines\nwith nobody ${n}`;\n"
        'const c = "http://nobody.example"; // words: allow\n',
    )
    code, out = check(path)
    assert code == 1
    assert [line.split(":")[1] for line in out.splitlines()] == ["2", "3", "4", "6"]


def test_python_literals_docstrings_and_comments_are_checked(write) -> None:
    path = write(
        "program.py",
        '"""Nobody reads this."""\n'
        "# nobody\n"
        "def f(name):\n"
        '    """Nobody."""\n'
        '    g("--x", help="let somebody in")\n'
        '    print(f"{name} is no time")\n'
        '    return ("folded "\n'
        '            "anew")\n'
        'NAME = "nobody"  # the user id of the system; words: allow\n',
    )
    code, out = check(path)
    assert code == 1
    assert [line.split(":")[1] for line in out.splitlines()] == ["1", "2", "4", "5", "6", "7"]


def test_a_script_without_a_suffix_is_read_by_its_first_line(write) -> None:
    assert check(write("program", "#!/usr/bin/env python3\nprint('nobody')\n"))[0] == 1
    assert check(write("launcher", "#!/bin/sh\n# nobody\necho 'all is well'\n")) == (0, "")
    assert check(write("launcher", "#!/bin/sh\n    echo 'nobody'\n"))[0] == 1
    assert check(write("LICENSE", "nobody\n")) == (0, "")


def test_prose_is_checked_across_lines_and_code_is_not(write) -> None:
    path = write(
        "page.md",
        "# Title\n\nIt goes\non here.\n\n```\nnobody\n```\n\nThe user `nobody` exists.\n\nanew\n",
    )
    code, out = check(path)
    assert code == 1
    assert [line.split(":")[1] for line in out.splitlines()] == ["3", "12"]


def test_generated_folders_are_skipped(tmp_path: Path, write) -> None:
    (tmp_path / "dist").mkdir()
    write("dist/index.ts", 'x("nobody");\n')
    assert check(tmp_path) == (0, "")


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    assert check(tmp_path / "missing")[0] == 1
