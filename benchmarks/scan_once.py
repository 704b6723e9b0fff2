"""A cold scan of a history in its own process; prints its figures as JSON."""

from __future__ import annotations

import functools
import json
import os
import resource
import sys
import time
from pathlib import Path

from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.scanner import Scanner, ScanProgress
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history


def main(database: str, folder: str) -> None:
    """Scan *database*, with the ledger in *folder*."""
    ledger = LedgerFile(Path(folder) / "state.db")
    scanner = Scanner(
        functools.partial(open_history, database), ledger, "UTC", processes=os.cpu_count()
    )
    firsts: list[float] = []
    partials = 0

    def report(_progress: ScanProgress) -> None:
        nonlocal partials
        partials += 1
        if not firsts:
            firsts.append(time.monotonic() - started)

    started = time.monotonic()
    scan = scanner.refresh(on_progress=report)
    wall = time.monotonic() - started
    parent, workers = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    ledger.close()
    figures = {
        "wall": wall,
        "cpu": parent.ru_utime + parent.ru_stime + workers.ru_utime + workers.ru_stime,
        "first_partial": firsts[0] if firsts else wall,
        "partials": partials,
        "ledger_mb": ledger.size() / 1e6,
        "tool_calls": compute_values(scan.tally).get("total_tool_calls", 0),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
