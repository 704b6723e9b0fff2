"""Memory of a process and all its descendants."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import subprocess

PSS_LINE: Final = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
SAMPLE_SECONDS: Final = 0.05


class MemoryPeak:
    """The largest memory of a process tree, sampled from outside so that it costs it nothing.

    Memory is the proportional set size: pages that several processes share count once.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.megabytes = 0.0
        self._process = process

    def sample(self) -> None:
        """Compare the present memory with the peak."""
        kilobytes = sum(_pss_kilobytes(pid) for pid in _tree(self._process.pid))
        self.megabytes = max(self.megabytes, kilobytes / 1000)


def _tree(pid: int) -> list[int]:
    children: list[str] = []
    with contextlib.suppress(OSError):  # it has just ended
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            children += file.read_text("ascii").split()
    return [pid, *(item for child in children for item in _tree(int(child)))]


def _pss_kilobytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        match = PSS_LINE.search(Path(f"/proc/{pid}/smaps_rollup").read_text("ascii"))
        return int(match[1]) if match else 0
    return 0
