"""Starting up, against the interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Figure, Work, in_turns

if TYPE_CHECKING:
    from surroundings import Surroundings

ROOT: Final = Path(__file__).resolve().parents[1]
ROUNDS: Final = 40
HERMES: Final = [sys.executable, "-I", "-c", "from hermes_cli.main import entry; entry()"]


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark; the quickest of many runs, which noise disturbs least."""
    with around.folder() as home:
        (home / "state.db").symlink_to(around.history("power").resolve())
        commands = [
            [sys.executable, "-c", "pass"],
            [*HERMES, "--help"],
            [*HERMES, "--version"],
            [*HERMES, "sessions", "list"],
            [str(ROOT / "hermes"), "--version"],
        ]
        works = [_running(command, home) for command in commands]
        for work in works:
            work()
        times = [min(own) for own in in_turns(around.rounds(ROUNDS), *works)]
    bare, shown_help, version, listed, launched = times
    return [
        Figure("python -c pass", bare, "ms", bare),
        Figure("hermes --help", shown_help, "ms", bare, 5, "ratio"),
        Figure("hermes --version", version, "ms", bare),
        Figure("hermes sessions list", listed, "ms", bare, 10, "ratio"),
        Figure("./hermes over the command", launched - version, "ms", bare, 50),
    ]


def _running(command: list[str], home: Path) -> Work:
    environment = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home)}
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
