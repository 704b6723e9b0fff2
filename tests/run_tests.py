"""Runs pytest: temporary folders in memory, nothing left running, CPU seconds counted.

    python tests/run_tests.py [--part quick|rest] [pytest's options]
    python tests/run_tests.py --check-cost

`--part quick` is what `make test` runs, `--part rest` what it leaves out: see
tests/support/selection.py.

The tests write ten gigabytes and wait for the disk at every `fsync`. As root on Linux they get a
file system in memory, in a mount namespace that ends with the run; elsewhere, and on a machine
with little free memory, they run on disk as `python -m pytest` does. Tests of full and faulty
disks limit or inject what they need, on either.

Orphans of tests become children of this process (Linux) and are killed at the end, also after
Ctrl+C.

A quick run writes the CPU seconds of each test to a file, and lists those above the limit that
are not smoke tests; `--check-cost` repeats these alone and fails if one is still above it. The
limit is in loops of this interpreter, so it is the same on slow machines.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.cpu_seconds import OUTSIDE_TESTS, VARIABLE, totals
from support.selection import SMOKE

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_AVAILABLE_GIB: Final = 6
MAX_SIZE_GIB: Final = 4
IMPORT_SECONDS: Final = 1.0  # what a test that runs alone is the first to import
QUICK_COST: Final = Path(".pytest_cache/cpu-seconds-quick.txt")
QUICK: Final = ("--part", "quick")
MAX_TEST_SECONDS: Final = 2.0  # CPU, on a machine that runs the loop in LOOP_SECONDS
LOOP_SECONDS: Final = 0.025
LOOP_NUMBERS: Final = 1_000_000
MAX_CANDIDATES: Final = 40
SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER
MOUNT: Final = (
    "unshare", "--mount", "sh", "-c",
    f'mount -t tmpfs -o size={MAX_SIZE_GIB}g,mode=700 hermes-tests "$0" && exec "$@"',
)  # fmt: skip


def main(options: Sequence[str]) -> int:
    """Run pytest; its exit code."""
    adopt_orphans()
    if "--check-cost" in options:
        return check_cost()
    is_quick = " ".join(QUICK) in " ".join(options)
    if is_quick:
        QUICK_COST.parent.mkdir(exist_ok=True)
        QUICK_COST.unlink(missing_ok=True)
        os.environ[VARIABLE] = str(QUICK_COST)
    start = time.monotonic()
    code = run(options)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print_message(
        f"{used.ru_utime + used.ru_stime:.0f} CPU seconds in {time.monotonic() - start:.0f} s"
    )
    os.environ.pop(VARIABLE, None)
    if is_quick and code == 0:
        report_costly()
    return code


def run(options: Sequence[str]) -> int:
    """Run pytest to its end, and end what it leaves behind; its exit code."""
    pytest = [sys.executable, "-m", "pytest", *options]
    folder = Path(tempfile.mkdtemp(prefix="hermes-tests-"))
    try:
        if available_gib() >= MIN_AVAILABLE_GIB and can_mount(folder):
            # Kept only for failed tests: everything would be more than the memory of a laptop.
            kept = ["-o", "tmp_path_retention_policy=failed", f"--basetemp={folder / 'pytest'}"]
            pytest = [*MOUNT, str(folder), *pytest, *kept]
        # In a group of its own, so that Ctrl+C reaches it once, from here.
        return wait_for(subprocess.Popen(pytest, process_group=0))
    finally:
        end_orphans()
        folder.rmdir()


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process, and give it the signals that would end this one; its exit code."""
    previous = {
        number: signal.signal(number, lambda number, _frame: process.send_signal(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        while True:  # also for adopted processes: one that nobody waits for stays in /proc
            ended, status = os.waitpid(-1, 0)
            if ended == process.pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def adopt_orphans() -> None:
    """Become the parent of processes whose own has ended, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """Kill the children of this process until none is left."""
    while children := child_processes():
        for process in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def child_processes() -> list[int]:
    """The children of this process."""
    if sys.platform != "linux":
        return []
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if parent_of(folder) == os.getpid()
    ]


def parent_of(folder: Path) -> int:
    """The parent of a process, by its folder; 0 if it has ended."""
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def costly_tests() -> list[str]:
    """The tests of the last quick run above the limit that are not smoke tests, costliest first."""
    limit = limit_seconds()
    return [
        f"{name}\t{seconds:.1f}"
        for name, seconds in totals(QUICK_COST.read_text(), "test").most_common(MAX_CANDIDATES)
        if seconds > limit and name not in SMOKE and name != OUTSIDE_TESTS
    ]


def report_costly() -> None:
    """List the tests above the limit."""
    for line in costly_tests():
        name, _, seconds = line.partition("\t")
        print_message(f"COSTLY {name} - {seconds} CPU seconds, also what it was first to import")


def check_cost() -> int:
    """Repeat the costly tests of the last quick run alone; fail if one is above the limit."""
    if not QUICK_COST.exists():
        print_message("No report of a quick run here (`make test` writes it): costs not checked")
        return 0
    failed = 0
    for line in costly_tests():
        name = line.partition("\t")[0]
        report = QUICK_COST.with_name("cpu-seconds-alone.txt")
        report.unlink(missing_ok=True)
        os.environ[VARIABLE] = str(report)
        run(["-q", "-n", "0", "-p", "no:cacheprovider", name])
        os.environ.pop(VARIABLE)
        seconds = totals(report.read_text(), "test")[name]
        if seconds > (limit := limit_seconds() + IMPORT_SECONDS):
            print_message(
                f"TOO COSTLY {name}: {seconds:.1f} CPU seconds, limit {limit:.1f}. Leave it to "
                "`make test-all` (tests/support/selection.py), or make it cheaper."
            )
            failed += 1
    return int(failed > 0)


def limit_seconds() -> float:
    """The limit of a test on this machine as it is now."""
    return MAX_TEST_SECONDS * max(1.0, min(loop_seconds() for _ in range(5)) / LOOP_SECONDS)


def loop_seconds() -> float:
    """The CPU seconds of a loop."""
    start = time.process_time()
    sum(number * number for number in range(LOOP_NUMBERS))
    return time.process_time() - start


def available_gib() -> float:
    """The memory that programs can still use; 0 where the system does not tell."""
    try:
        memory = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return 0
    match = re.search(r"^MemAvailable: +(\d+) kB", memory, re.MULTILINE)
    return int(match[1]) / 2**20 if match else 0


def can_mount(folder: Path) -> bool:
    """Whether this process may mount a file system on *folder*."""
    if os.geteuid() != 0:
        return False
    try:
        done = subprocess.run([*MOUNT, str(folder), "true"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def print_message(text: str) -> None:
    """Print a line of the runner itself."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
