"""CPU time and size of a backup, whole and continued after a kill."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from figures import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from surroundings import BenchmarkContext

HERMES: Final = [sys.executable, "-I", "-c", "from hermes_cli.main import entry; entry()"]
COPY: Final = [sys.executable, "-I", "-c", "import shutil, sys; shutil.copyfile(*sys.argv[1:])"]
ROUNDS: Final = 3
MAX_MS_PER_MB: Final = 10  # 100 MB of the history in a second of CPU time


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark: the minimum of some runs, which noise affects least."""
    rounds = 1 if context.is_quick else ROUNDS
    with context.home() as home, context.folder() as target:
        store = home / "state.db"
        shutil.copyfile(context.history("power"), store)
        megabytes = store.stat().st_size / 1e6
        whole, copied = [], []
        for number in range(rounds):
            copied.append(_cpu_ms([*COPY, str(store), str(target / f"{number}.db")]))
            whole.append(_cpu_ms([*HERMES, "backup", str(target / f"{number}.zip")]))
        archive_bytes = (target / "0.zip").stat().st_size
        _kill_late(target)
        continued = _cpu_ms([*HERMES, "backup", str(target / "continued.zip")])
    baseline = min(copied) / megabytes
    limit = None if context.is_quick else MAX_MS_PER_MB
    return [
        Figure("backup, CPU per MB of history", min(whole) / megabytes, "ms", baseline, limit),
        Figure("continued after a kill", continued / megabytes, "ms", baseline),
        Figure("backup over the history", 100 * archive_bytes / (megabytes * 1e6), "%", 100.0),
    ]


def _cpu_ms(command: list[str]) -> float:
    """CPU time of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _kill_late(target: Path) -> None:
    """Kill a backup when nine tenths of its archive are written."""
    command = [*HERMES, "backup", str(target / "killed.zip")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as backup:
        size = 0.9 * (target / "0.zip").stat().st_size
        while backup.poll() is None:
            if any(_size_of(path) >= size for path in target.glob(".hermes-backup-*/archive")):
                os.kill(backup.pid, signal.SIGKILL)
            time.sleep(0.001)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
