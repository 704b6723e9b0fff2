"""Runs pytest with the temporary folders of the tests in memory, where that is possible.

    python tests/run_in_memory.py [pytest's options]

The tests write ten gigabytes and wait for the disk at every `fsync`. As root on Linux they get a
file system in memory, in a mount namespace that ends with the run; elsewhere, and on a machine
with little free memory, they run on disk as `python -m pytest` does. Tests of full and faulty
disks limit or inject what they need, on either.

A few failed tests are run once more, one after the other: a run of thousands on a shared machine
must not be lost because of one. Those that pass then are listed at the end; they have a defect.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_AVAILABLE_GIB: Final = 6
MAX_SIZE_GIB: Final = 4
MAX_REPEATED_TESTS: Final = 5
FAILED_TESTS_EXIT_CODE: Final = 1
FAILED_TESTS: Final = Path(".pytest_cache/v/cache/lastfailed")
MOUNT: Final = (
    "unshare", "--mount", "sh", "-c",
    f'mount -t tmpfs -o size={MAX_SIZE_GIB}g,mode=700 hermes-tests "$0" && exec "$@"',
)  # fmt: skip


def main(options: Sequence[str]) -> int:
    """Run pytest, and a few failed tests once more; the exit code."""
    FAILED_TESTS.unlink(missing_ok=True)
    code = run(options)
    failed = failed_tests()
    if code != FAILED_TESTS_EXIT_CODE or not 0 < len(failed) <= MAX_REPEATED_TESTS:
        return code
    sys.stderr.write(f"\nRunning the failed tests once more: {len(failed)}\n")
    code = run(["-n", "0", *failed])
    still_failed = failed_tests() if code else []
    for name in failed:
        if name not in still_failed:
            sys.stderr.write(f"UNRELIABLE {name} - failed among other tests, passed alone\n")
    return code


def failed_tests() -> list[str]:
    """The tests that failed in the last run."""
    try:
        return list(json.loads(FAILED_TESTS.read_text("utf-8")))
    except FileNotFoundError:
        return []


def run(options: Sequence[str]) -> int:
    """Run pytest; its exit code."""
    pytest = [sys.executable, "-m", "pytest", *options]
    folder = Path(tempfile.mkdtemp(prefix="hermes-tests-"))
    try:
        if available_gib() >= MIN_AVAILABLE_GIB and can_mount(folder):
            # Kept only for failed tests: everything would be more than the memory of a laptop.
            kept = ["-o", "tmp_path_retention_policy=failed", f"--basetemp={folder / 'pytest'}"]
            pytest = [*MOUNT, str(folder), *pytest, *kept]
        return subprocess.run(pytest, check=False).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        folder.rmdir()


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
