"""The CPU time of a checkpoint of a folder, compared with `git add` of the same folder."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Final

from figures import Figure
from hermes_agent.checkpoints.archive import CheckpointArchive
from hermes_agent.checkpoints.git_process import isolated_environment
from hermes_agent.checkpoints.records import TURN, Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from surroundings import BenchmarkContext

FILES: Final = 1_000
QUICK_FILES: Final = 100
FOLDERS: Final = 40
FILE_BYTES: Final = 16_000
ROUNDS: Final = 40
MAX_RATIO: Final = 3.0
MAX_FIRST_RATIO: Final = 2.0


def measure(context: BenchmarkContext) -> list[Figure]:
    """The first checkpoint of a folder, and one snapshot of those that follow."""
    with context.home() as home:
        folder = home / "home" / "project"
        _fill(folder, QUICK_FILES if context.is_quick else FILES)
        first = _cpu_milliseconds(lambda: _turn(folder))
        plain_first = _cpu_milliseconds(lambda: _add(folder, is_first=True))
        times, plain = [], []
        for number in range(context.rounds(ROUNDS)):
            (folder / "0" / "0.txt").write_text(str(number))
            times.append(_cpu_milliseconds(lambda: _turn(folder)) / 2)  # before and after
            plain.append(_cpu_milliseconds(lambda: _add(folder)))
    ours, baseline = statistics.median(times), statistics.median(plain)
    return [
        Figure("first checkpoint, CPU", first, "ms", plain_first, MAX_FIRST_RATIO, "ratio"),
        Figure("snapshot of a turn, CPU", ours, "ms", baseline, MAX_RATIO, "ratio"),
    ]


def _fill(folder: Path, count: int) -> None:
    for number in range(count):
        path = folder / str(number % FOLDERS) / f"{number // FOLDERS}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(FILE_BYTES // 2).hex().encode())


def _turn(folder: Path) -> None:
    archive = CheckpointArchive.of_home()
    store = archive.store(folder)
    number = archive.next_number()
    opened = store.begin(Checkpoint(number, TURN, str(folder), "s", 1, time.time(), ""))
    (folder / "0" / "1.txt").write_text(str(number))
    store.finish(opened, time.time())


def _add(folder: Path, *, is_first: bool = False) -> None:
    """What git alone needs, in a repository beside the folder."""
    git = ("git", f"--git-dir={folder.parent / 'plain'}", f"--work-tree={folder}")
    commands = [("init", "-q")] if is_first else []
    for command in [*commands, ("add", "-A"), ("write-tree",)]:
        subprocess.run(
            [*git, *command],
            check=True,
            cwd=folder,
            env=isolated_environment(),
            stdout=subprocess.DEVNULL,
        )


def _cpu_milliseconds(work: Callable[[], object]) -> float:
    before = _cpu_seconds()
    work()
    return (_cpu_seconds() - before) * 1000


def _cpu_seconds() -> float:
    """CPU time of this process and its finished children."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)
