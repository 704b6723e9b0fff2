"""Campaigns of faults: how large they are, their figures, and the processes they run.

A campaign has a short form for every day and a long one (`HERMES_CAMPAIGN=full`, which
`make faults` sets). Its figures are shown at the end of the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_state.engine.driver import sqlite3
from hermes_state.upkeep import health

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
WORKERS = Path(__file__).resolve().parent / "workers"
RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
IS_FULL = os.environ.get("HERMES_CAMPAIGN") == "full"
PATIENCE_SECONDS = 120.0

Figures = dict[str, dict[str, Any]]


def size(short: int, full: int) -> int:
    """How many faults this run makes."""
    return full if IS_FULL else short


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def wait_until(is_true: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something holds; fail the test when it takes too long."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.002)


class Worker:
    """A program of `workers/` as a process of its own, and what it reported."""

    def __init__(
        self, script: str, folder: Path, *arguments: object, prefix: tuple[str, ...] = ()
    ) -> None:
        number = len(list(folder.glob("report-*")))
        self.report = folder / f"report-{number}-{time.monotonic_ns()}"
        self.report.touch()
        self.errors = self.report.with_name(self.report.name.replace("report", "stderr"))
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{WORKERS}"}
        words = [str(self.report), *map(str, arguments)]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-P", str(WORKERS / script), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    def said(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What the worker reported so far; a torn last line was not said."""
        lines = self.report.read_bytes().split(b"\n")[:-1]
        facts = [json.loads(line) for line in lines]
        return [fact for fact in facts if kind is None or fact["kind"] == kind]

    def wait_for(self, kind: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Wait until the worker has said something of a kind."""
        mark = f'{{"kind": "{kind}"'.encode()

        def has_said_or_died() -> bool:
            return mark in self.report.read_bytes() or self.process.poll() is not None

        wait_until(has_said_or_died, f"{kind!r} of {self.process.args}", seconds)
        said = self.said(kind)
        assert said, f"the worker ended without {kind!r}: {self.complaints()}"
        return said[0]

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the worker's end; its exit code."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # faulthandler shows where it hangs
            self.process.wait(timeout=10)
            raise AssertionError(f"the worker hangs: {self.complaints()}") from None

    def kill(self) -> float:
        """SIGKILL, and the moment just before it."""
        at = time.monotonic()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE_SECONDS)
        return at

    def complaints(self) -> str:
        """What the worker wrote to stderr."""
        return self.errors.read_text(errors="replace")[-4000:]


class Contents:
    """What a store holds, read past it."""

    def __init__(self, path: Path) -> None:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.integrity = connection.execute("PRAGMA integrity_check").fetchall()
        rows = connection.execute("SELECT id, session_id, content FROM messages ORDER BY id")
        self.rows: list[tuple[int, str, str]] = rows.fetchall()
        rows = connection.execute("SELECT lower(hex(uid)), message_id FROM hermes_message")
        self.row_of: dict[str, int] = dict(rows.fetchall())
        connection.close()
        self.content_of = {row_id: content for row_id, _session, content in self.rows}

    def missing(self, uids: list[str]) -> list[str]:
        """Acknowledged messages that are not there."""
        return [uid for uid in uids if self.row_of.get(uid) not in self.content_of]

    def doubled(self) -> int:
        """Rows beyond the first with the same content (every worker's contents are unique)."""
        return len(self.rows) - len({content for _id, _session, content in self.rows})


def assert_healthy(path: Path) -> None:
    """The store's own examination finds nothing failed, and the index agrees with the rows."""
    findings = health.examine(path)
    assert [finding for finding in findings if finding.status == "failed"] == []
    assert [finding.status for finding in findings if finding.name == "session index"] == ["ok"], (
        findings
    )


def save(figures: Figures) -> None:
    """Keep a full run's figures; campaigns that did not run this time keep theirs."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    known: Figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, **figures}, indent=2, sort_keys=True) + "\n")
