"""Scan a history for statistics, with two processes, saving as often as it can.

scan.py REPORT DATABASE LEDGER_FOLDER
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from reporting import Report

from hermes_achievements.scan.scanner import Scanner, ScanProgress
from hermes_core.errors import HermesError
from hermes_state.ledger.file import open_ledger
from hermes_state.ledger.history import open_history


def main() -> None:
    """Scan, and report the outcome."""
    report = Report()
    database, folder = sys.argv[2:4]
    scanner = Scanner(
        functools.partial(open_history, database),
        open_ledger(Path(folder) / "state.db"),
        "UTC",
        processes=2,
        save_seconds=0,
    )

    def report_progress(progress: ScanProgress) -> None:
        report.write("progress", sessions=progress.sessions)

    report.write("began")
    try:
        scan = scanner.refresh(on_progress=report_progress)
    except HermesError as error:
        report.write("failed", error=str(error))
    else:
        report.write("done", mode=scan.mode, rescanned=scan.rescanned, reused=scan.reused)


if __name__ == "__main__":  # the scanner's own processes import this module again
    main()
