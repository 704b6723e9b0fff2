"""Machines that share a history scan it in turn: one is killed or frozen, another goes on."""

from __future__ import annotations

import functools
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from acceptance.campaign import Worker, wait_until
from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.scanner import Scanner
from hermes_core.clock import SystemClock
from hermes_core.paths import state_db_path
from hermes_state import SessionDB
from hermes_state.engine.engine import open_database
from hermes_state.ledger.file import LedgerFile, open_ledger
from hermes_state.ledger.history import open_history
from hermes_state.portable.store_copy import StoreCopy

# The benchmarks are programs, not a package: their folder is put on the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from history import Size, make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.ledger.shared import SharedLedger
    from support.postgres import PostgresServer

    Move = Callable[[str], Path]

SESSIONS, MESSAGES = 500, 12_000
NODE_TIMEOUT_SECONDS = "3"


class SharedHistory(NamedTuple):
    """A history in a database, and what a scan finds in the file that it is a copy of."""

    url: str
    values: dict[str, int]


@pytest.fixture(scope="module")
def history(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedHistory]:
    path = tmp_path_factory.mktemp("original") / "state.db"
    make(path, Size(SESSIONS, MESSAGES), seed=5)
    with postgres.history() as url:
        with SessionDB(path) as db, closing(open_database(url, read_only=False)) as target:
            writer = target.open_writer(SystemClock())
            StoreCopy(db.engine.database, target, writer).run(lambda *_progress: None)
            writer.close()
        yield SharedHistory(url, _scan(path, LedgerFile(path)))


@pytest.fixture
def expected(history: SharedHistory, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The values of the history, which has no ledger yet."""
    monkeypatch.setenv("HERMES_STORE_URL", history.url)
    monkeypatch.setenv("HERMES_STORE_NODE_TIMEOUT_SECONDS", NODE_TIMEOUT_SECONDS)
    with closing(open_ledger(state_db_path())) as ledger, ledger.try_lock():
        ledger.clear()
    return history.values


@pytest.fixture
def move_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    """Continue on another machine: a home of its own."""

    def move(name: str) -> Path:
        home = tmp_path / name
        home.mkdir()
        monkeypatch.setenv("HERMES_HOME", str(home))
        return home

    return move


def _scan(path: Path, ledger: LedgerFile | SharedLedger) -> dict[str, int]:
    with closing(ledger):
        scanner = Scanner(functools.partial(open_history, str(path)), ledger, "UTC", processes=0)
        return compute_values(scanner.refresh().tally)


def _start(folder: Path, home: Path) -> Worker:
    return Worker("scan.py", folder, home / "state.db", home)


def _freeze_in_mid_scan(worker: Worker) -> None:
    """Stop the process of a scan after it has stored some results."""
    with closing(open_ledger(state_db_path())) as ledger:
        wait_until(lambda: ledger.count() > 0 or bool(worker.reports("done")), "some results")
    worker.process.send_signal(signal.SIGSTOP)
    assert worker.reports("done") == []


def _is_free(home: Path) -> bool:
    with closing(open_ledger(home / "state.db")) as ledger, ledger.try_lock() as is_locked:
        return is_locked


def test_a_killed_scan_is_continued_on_another_machine(
    expected: dict[str, int], move_to: Move, tmp_path: Path
) -> None:
    with _start(tmp_path, move_to("first")) as worker:
        _freeze_in_mid_scan(worker)
        with _start(tmp_path, move_to("busy")) as other:
            assert "another process" in other.wait_for("failed")["error"]
        worker.kill()
    home = move_to("second")
    with _start(tmp_path, home) as again:
        done = again.wait_for("done")
    assert done["reused"] > 0
    assert done["rescanned"] < SESSIONS
    assert _scan(home / "state.db", open_ledger(home / "state.db")) == expected


def test_a_frozen_scan_is_taken_over_and_writes_nothing_when_it_wakes(
    expected: dict[str, int], move_to: Move, tmp_path: Path
) -> None:
    with _start(tmp_path, move_to("first")) as frozen:
        _freeze_in_mid_scan(frozen)
        home = move_to("second")
        wait_until(lambda: _is_free(home), "the end of the frozen process's lock")
        with _start(tmp_path, home) as other:
            assert other.wait_for("done")["reused"] > 0
        frozen.process.send_signal(signal.SIGCONT)
        frozen.wait()
        assert frozen.reports("done") == []
        assert frozen.reports("failed") != []
    assert _scan(home / "state.db", open_ledger(home / "state.db")) == expected
