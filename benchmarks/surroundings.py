"""Where a benchmark runs: its histories, copies to write into, facts about the machine."""

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
from hermes_state.engine.driver import sqlite3
from history import PRESETS, make

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK_MESSAGES: Final = 3_000
QUICK_SESSIONS: Final = 60
FSYNCS: Final = 50


@dataclass(frozen=True)
class Surroundings:
    """What every benchmark is given."""

    data: Path
    is_quick: bool = False

    def rounds(self, wanted: int) -> int:
        """How often to measure."""
        return max(2, wanted // 40) if self.is_quick else wanted

    def history(self, preset: str) -> Path:
        """A history of that size, made when first needed and kept."""
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
        """A history to write into; it is gone afterwards."""
        original = self.history(preset)
        with self.folder() as folder:
            yield Path(shutil.copyfile(original, folder / "state.db"))

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder on the same disk; it is gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self.data, prefix="run-") as name:
            yield Path(name)

    @contextlib.contextmanager
    def home(self) -> Iterator[Path]:
        """A home of Hermes for this process and those it starts; it is gone afterwards."""
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
        """What a reader needs to judge the figures, and nothing that names a place."""
        return {
            "cpu_count": os.cpu_count(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "fsync_p50_ms": round(self._fsync_milliseconds(), 3),
        }

    def _fsync_milliseconds(self) -> float:
        times = []
        with self.folder() as folder, (folder / "probe").open("wb", buffering=0) as probe:
            for _ in range(FSYNCS):
                probe.write(bytes(4096))
                began = time.perf_counter()
                os.fsync(probe.fileno())
                times.append((time.perf_counter() - began) * 1000)
        return percentile(times, 0.5)


def forget_pages(path: Path) -> None:
    """Have the system read *path* from the disk again; nothing may have it open."""
    os.sync()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
