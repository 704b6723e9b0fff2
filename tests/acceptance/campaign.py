"""Campaigns of faults: how large they are, their figures, and the processes they run.

A campaign has a short form for every day and a long one (`HERMES_CAMPAIGN=full`, which
`make faults` sets). Its figures are printed at the end of the run.
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

from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.upkeep import health
from support.command_line import FORK_SERVER, GATEWAY_MODULES, needs_own_interpreter
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Process

ROOT = Path(__file__).resolve().parents[2]
WORKERS = Path(__file__).resolve().parent / "workers"
RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
IS_FULL = os.environ.get("HERMES_CAMPAIGN") == "full"
# Workers that are started often, and do not test what an interpreter does at its start.
FORKED_SCRIPTS = {"append_and_stream.py", "deliver.py", "run_schedules.py"}

Figures = dict[str, dict[str, Any]]


def size(short: int, full: int) -> int:
    """The number of faults in this run."""
    return full if IS_FULL else short


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of the values lies; 0 for an empty list."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def wait_until(is_true: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds; fail the test after the deadline."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {seconds:.0f} s waiting for {what}")
        time.sleep(0.002)


def _start(script: Path, arguments: list[str], output: int, prefix: tuple[str, ...]) -> Process:
    if script.name in FORKED_SCRIPTS and not prefix and not needs_own_interpreter({}):
        streams = (output, output)
        return FORK_SERVER.start(str(script), arguments, dict(os.environ), streams, GATEWAY_MODULES)
    return subprocess.Popen(
        [*prefix, sys.executable, "-P", str(script), *arguments],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{WORKERS}"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


class Worker:
    """A program of `workers/` as a separate process, and its reports."""

    def __init__(
        self, script: str, folder: Path, *arguments: object, prefix: tuple[str, ...] = ()
    ) -> None:
        number = len(list(folder.glob("report-*")))
        self.report = folder / f"report-{number}-{time.monotonic_ns()}"
        self.report.touch()
        self.errors = self.report.with_name(self.report.name.replace("report", "stderr"))
        worker_arguments = [str(self.report), *map(str, arguments)]
        with self.errors.open("wb") as errors:
            self.process = _start(WORKERS / script, worker_arguments, errors.fileno(), prefix)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    def reports(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The reports of the worker so far, without an incomplete last line."""
        lines = self.report.read_bytes().split(b"\n")[:-1]
        reports = [json.loads(line) for line in lines]
        return [report for report in reports if kind is None or report["kind"] == kind]

    def wait_for(self, kind: str, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Wait for the first report of a kind."""
        mark = f'{{"kind": "{kind}"'.encode()

        def has_reported_or_exited() -> bool:
            return mark in self.report.read_bytes() or self.process.poll() is not None

        wait_until(has_reported_or_exited, f"{kind!r} of {self.process.args}", seconds)
        reports = self.reports(kind)
        assert reports, f"the worker ended without {kind!r}: {self.error_output()}"
        return reports[0]

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the worker's end; its exit code."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # faulthandler shows where it hangs
            self.process.wait(timeout=PATIENCE_SECONDS)
            raise AssertionError(f"the worker hangs: {self.error_output()}") from None

    def kill(self) -> float:
        """Send SIGKILL; return the time just before it."""
        killed_at = time.monotonic()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE_SECONDS)
        return killed_at

    def error_output(self) -> str:
        """The end of the worker's stderr."""
        return self.errors.read_text(errors="replace")[-4000:]


class Contents:
    """The rows of a store, read without SessionDB."""

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
        """The acknowledged messages that are missing."""
        return [uid for uid in uids if self.row_of.get(uid) not in self.content_of]

    def doubled(self) -> int:
        """Rows beyond the first with the same content (every worker's contents are unique)."""
        return len(self.rows) - len({content for _id, _session, content in self.rows})


def assert_healthy(path: Path) -> None:
    """Assert that the health check passes and the session index matches the rows."""
    findings = health.examine(path)
    assert [finding for finding in findings if finding.status == "failed"] == []
    assert [finding.status for finding in findings if finding.name == "session index"] == ["ok"], (
        findings
    )


def save(figures: Figures) -> None:
    """Save the figures of a full run; those of other campaigns are left unchanged."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    saved: Figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**saved, **figures}, indent=2, sort_keys=True) + "\n")
