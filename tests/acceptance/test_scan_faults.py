"""A scan is killed, the disk is full: afterwards the totals are those of a clean scan."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import Worker, size, wait_until
from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.scanner import Scanner
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history

# The benchmarks are programs, not a package: their folder is put on the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from history import Size, make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SESSIONS, MESSAGES = 500, 16_000


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scanned") / "state.db"
    make(path, Size(SESSIONS, MESSAGES), seed=11)
    return path


@pytest.fixture(scope="module")
def expected(history: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    return scan(history, tmp_path_factory.mktemp("clean"))


def scan(history: Path, folder: Path) -> dict[str, int]:
    ledger = LedgerFile(folder / "state.db")
    open_it = functools.partial(open_history, str(history))
    scanner = Scanner(open_it, ledger, "UTC", processes=0)
    return compute_values(scanner.refresh().tally)


def children_of(worker: Worker) -> list[int]:
    pid = worker.process.pid
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(child) for child in text.split()]


def is_running(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_scan_can_be_killed_at_any_moment(
    history: Path, expected: dict[str, int], tmp_path: Path, figures: Callable[..., None]
) -> None:
    choose = random.Random(7)
    kills = finished = resumed = 0
    for number in range(size(6, 150)):
        folder = tmp_path / f"ledger{number // 4}"  # four kills in a row on each
        folder.mkdir(exist_ok=True)
        with Worker("scan.py", tmp_path, history, folder) as worker:
            worker.wait_for("began")
            time.sleep(choose.uniform(0.02, 0.6))
            children = children_of(worker)
            is_killed = worker.process.poll() is None
            worker.kill()
            kills += is_killed
        for child in children:
            wait_until(lambda child=child: not is_running(child), "a worker's own end", 20)
        done = worker.reports("done")
        finished += bool(done)
        resumed += any(report["reused"] for report in done)
    for folder in tmp_path.glob("ledger*"):
        assert scan(history, folder) == expected
    figures("scan killed", kills=kills, finished=finished, resumed=resumed, wrong_totals=0)
    assert kills


def test_sessions_scanned_before_a_kill_are_not_scanned_again(
    history: Path, expected: dict[str, int], tmp_path: Path
) -> None:
    with Worker("scan.py", tmp_path, history, tmp_path) as worker:
        wait_until(lambda: len(worker.reports("progress")) > 1, "two reports of progress")
        worker.kill()
    with Worker("scan.py", tmp_path, history, tmp_path) as again:
        done = again.wait_for("done")
    assert done["reused"] > 0
    assert scan(history, tmp_path) == expected


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount_point = tmp_path / "small"
    mount_point.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(mount_point)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", "--lazy", str(mount_point)], check=True)


def test_a_full_disk_stops_a_scan_with_a_reason_and_costs_nothing(
    history: Path, expected: dict[str, int], small_disk: Path, tmp_path: Path
) -> None:
    with Worker("scan.py", tmp_path, history, small_disk) as worker:
        worker.wait()
    assert "full" in worker.reports("failed")[0]["error"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert scan(history, small_disk) == expected
