"""Measures the CPU seconds of each test, with all processes that it starts.

    HERMES_TESTS_CPU=FILE python -m pytest [-n 4] ...     appends a line per test to FILE
    python tests/support/cpu_seconds.py FILE [--tests]    adds them up, per folder, file or test

Each pytest process puts itself and its later children into a control group of its own, as root on
Linux with the controller `cpuacct`: daemons that outlive their parent are counted, too. Elsewhere
only processes that have been waited for are counted. What a shared server uses later, and the
start of a shared fixture, count for the test that runs meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTROLLER: Final = Path("/sys/fs/cgroup/cpuacct")
VARIABLE: Final = "HERMES_TESTS_CPU"
OUTSIDE_TESTS: Final = "(start and collection)"
MAX_LINES: Final = 60


class CpuSeconds:
    """A pytest plugin: the CPU seconds between the ends of two tests."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._group = _own_group()
        self._last = 0.0
        self._add(OUTSIDE_TESTS, used=self._used())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: object) -> Iterator[None]:
        del nextitem
        self._add(OUTSIDE_TESTS, used=self._used())
        result = yield
        self._add(item.nodeid, used=self._used())
        return result

    def pytest_unconfigure(self) -> None:
        """Leave the control group; it stays while a process of a test still runs."""
        if self._group is not None:
            with contextlib.suppress(OSError):
                (CONTROLLER / "cgroup.procs").write_text(str(os.getpid()))
                self._group.rmdir()

    def _used(self) -> float:
        if self._group is not None:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        usages = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def _add(self, name: str, used: float) -> None:
        with self._report.open("a") as file:
            file.write(f"{used - self._last:.4f}\t{name}\n")
        self._last = used


def plugin() -> CpuSeconds | None:
    """The plugin, if a report is wanted."""
    path = os.environ.get(VARIABLE)
    return CpuSeconds(Path(path)) if path else None


def _own_group() -> Path | None:
    group = CONTROLLER / f"hermes-tests-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return None
    return group


def totals(report: str, level: str) -> Counter[str]:
    """The CPU seconds of a report, per "folder", "file" or "test"."""
    result: Counter[str] = Counter()
    for line in report.splitlines():
        seconds, _, name = line.partition("\t")
        file = name.partition("::")[0]
        key = {"folder": "/".join(file.split("/")[:2]), "file": file, "test": name}[level]
        result[key] += float(seconds)  # type: ignore[assignment]  # a counter of seconds
    return result


def main(path: str, *options: str) -> None:
    """Print the totals."""
    report = Path(path).read_text()
    levels = ("folder", "test") if "--tests" in options else ("folder", "file")
    for level in levels:
        counted = totals(report, level)
        sys.stdout.write(f"{sum(counted.values()):8.1f} CPU seconds, per {level}:\n")
        for name, seconds in counted.most_common(MAX_LINES):
            sys.stdout.write(f"{seconds:8.2f}  {name}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
