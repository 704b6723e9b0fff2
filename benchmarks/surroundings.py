"""The context of a benchmark: histories, writable copies, data about the machine."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import percentile
from hermes_state.engine.sqlite.driver import sqlite3
from history import PRESETS, make

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK_MESSAGES: Final = 800
QUICK_SESSIONS: Final = 30
FSYNC_COUNT: Final = 50


@dataclass(frozen=True)
class BenchmarkContext:
    """Histories, folders and options of a benchmark run."""

    data: Path
    is_quick: bool = False

    def rounds(self, count: int) -> int:
        """Number of repetitions."""
        return max(1, count // 40) if self.is_quick else count

    def history(self, preset: str) -> Path:
        """A history of a preset size, generated at first use and kept."""
        size = PRESETS[preset]
        if self.is_quick:
            size = replace(size, sessions=QUICK_SESSIONS, messages=QUICK_MESSAGES, total_bytes=None)
        path = self.data / f"{preset}{'-quick' if self.is_quick else ''}.db"
        if not path.exists():
            self.data.mkdir(parents=True, exist_ok=True)
            print(f"making {path.name}: {size.sessions:,} sessions, {size.messages:,} messages …")
            make(path, size)
        return path

    @contextlib.contextmanager
    def copy(self, preset: str) -> Iterator[Path]:
        """A writable copy of a history, deleted afterwards."""
        original = self.history(preset)
        with self.folder() as folder:
            yield Path(shutil.copyfile(original, folder / "state.db"))

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder on the same disk, deleted afterwards."""
        with tempfile.TemporaryDirectory(dir=self.data, prefix="run-") as name:
            yield Path(name)

    @contextlib.contextmanager
    def home(self) -> Iterator[Path]:
        """A Hermes home for this process and its children, deleted afterwards."""
        names = ("HERMES_HOME", "HOME")
        before = {name: os.environ.get(name) for name in names}
        with self.folder() as folder:
            os.environ.update(dict.fromkeys(names, str(folder)))
            try:
                yield folder
            finally:
                for name, value in before.items():
                    os.environ.pop(name, None)
                    if value is not None:
                        os.environ[name] = value

    def machine(self) -> dict[str, Any]:
        """Data for the interpretation of the figures, without paths or host names."""
        return {
            "cpu_count": os.cpu_count(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "fsync_p50_ms": round(self._fsync_milliseconds(), 3),
        }

    def _fsync_milliseconds(self) -> float:
        times = []
        with self.folder() as folder, (folder / "probe").open("wb", buffering=0) as probe:
            for _ in range(FSYNC_COUNT):
                probe.write(bytes(4096))
                started = time.perf_counter()
                os.fsync(probe.fileno())
                times.append((time.perf_counter() - started) * 1000)
        return percentile(times, 0.5)


def drop_page_cache(path: Path) -> None:
    """Drop *path* from the page cache; the file must not be open."""
    os.sync()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
