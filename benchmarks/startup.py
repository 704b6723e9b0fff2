"""Start-up time, compared with the interpreter alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Figure, Work, interleave

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

ROOT: Final = Path(__file__).resolve().parents[1]
ROUNDS: Final = 40
HERMES: Final = [sys.executable, "-I", "-c", "from hermes_cli.main import entry; entry()"]


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark: the minimum of many runs, which noise affects least."""
    with context.folder() as home:
        (home / "state.db").symlink_to(context.history("power").resolve())
        commands = [
            [sys.executable, "-c", "pass"],
            [*HERMES, "--help"],
            [*HERMES, "--version"],
            [*HERMES, "sessions", "list"],
            [str(ROOT / "hermes"), "--version"],
        ]
        works = [_command_work(command, home) for command in commands]
        for work in works:
            work()
        times = [min(work_times) for work_times in interleave(context.rounds(ROUNDS), *works)]
    bare, help_time, version, listed, launcher = times
    return [
        Figure("python -c pass", bare, "ms", bare),
        Figure("hermes --help", help_time, "ms", bare, 5, "ratio"),
        Figure("hermes --version", version, "ms", bare),
        Figure("hermes sessions list", listed, "ms", bare, 10, "ratio"),
        Figure("./hermes over the command", launcher - version, "ms", bare, 50),
    ]


def _command_work(command: list[str], home: Path) -> Work:
    environment = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home)}
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
