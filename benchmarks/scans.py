"""Scans for achievements: first scan, refresh, and requests during a scan."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import Figure, median, percentile
from hermes_achievements.calendar import Calendar
from hermes_achievements.scan.scanner import Scanner
from hermes_achievements.scan.workers import ScanJob, run_job
from hermes_core.time_zones import find_zone
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history
from history import PRESETS, make
from process_tree import SAMPLE_SECONDS, MemoryPeak

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_achievements.scan.history import History
    from surroundings import BenchmarkContext

FOLDER: Final = Path(__file__).resolve().parent
sys.path.append(str(FOLDER.parent / "tests"))  # the reference metrics are test code

from achievements import reference_metrics  # noqa: E402 - the path is set up above

# The columns that the scanner reads, in the order of the table.
COLUMNS: Final = """
    SELECT id, session_id, role, timestamp,
           CASE role WHEN 'tool' THEN CAST(content AS BLOB)
                     ELSE CAST(substr(content, 1, 200) AS BLOB) END,
           CASE role WHEN 'user' THEN coalesce(length(content), 0) ELSE 0 END,
           CAST(tool_calls AS BLOB), tool_name, tool_call_id, coalesce(observed, 0)
    FROM messages
"""
SAMPLE_SESSIONS: Final = 25  # sessions for the slow methods
QUICK_SAMPLE_SESSIONS: Final = 2
QUICK_DIVISOR: Final = 2_000
GROWTH: Final = (1, 2, 4)
QUICK_GROWTH: Final = (1, 2)
# A program that counts by searching for words: one pass over the text for each number.
WORD_PATTERNS: Final = [
    re.compile(rf"\b(?:{pair.replace('/', '|')})\w*", re.IGNORECASE)
    for pair in (
        "error/trace", "plan/build", "git/push", "docker/image", "test/pass", "file/path",
        "code/line", "merge/view", "fail/stop", "read/seek", "write/save", "list/sort",
        "open/shut", "close/start", "store/keep", "count/sum", "check/look", "load/take",
        "drop/cut", "apply/use", "retry/again", "parse/split", "find/hunt", "set/put",
        "token/word", "queue/wait", "page/leaf", "row/line", "user/who", "batch/group",
        "lock/key", "path/way", "reply/answer", "event/fact", "index/entry", "config/option",
        "session/talk", "message/text",
    )
]  # fmt: skip


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    path = context.history("seeds")
    return [
        *_cold(context, path),
        *_slow_methods(path, QUICK_SAMPLE_SESSIONS if context.is_quick else SAMPLE_SESSIONS),
        *_warm(context),
        *_append(context),
        _served(context, path),
        *_growth(context),
    ]


def _scan(path: Path, folder: Path) -> dict[str, float]:
    command = [sys.executable, str(FOLDER / "scan_once.py"), str(path), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = MemoryPeak(process)
        while process.poll() is None:
            peak.sample()
            time.sleep(SAMPLE_SECONDS)
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    result: dict[str, float] = json.loads(output)
    return {**result, "tree_peak_mb": peak.megabytes}


def _cold(context: BenchmarkContext, path: Path) -> list[Figure]:
    with context.folder() as folder:
        _plain_read(path)  # warms the page cache
        result = _scan(path, folder)
        reading = _plain_read(path)
    return [
        Figure("cold scan, wall", result["wall"], "s"),
        Figure("cold scan, CPU", result["cpu"], "s", reading, limit=8, limits="ratio"),
        Figure("first partial after", result["first_partial"], "s", limit=1),
        Figure("peak memory of all processes", result["tree_peak_mb"], "MB", limit=200),
        Figure("ledger", result["ledger_mb"], "MB", path.stat().st_size / 1e6),
    ]


def _plain_read(path: Path) -> float:
    """CPU seconds to read the same columns, row by row, without processing."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        started = time.process_time()
        for _row in connection.execute(COLUMNS):
            pass
        return time.process_time() - started


def _slow_methods(path: Path, sample: int) -> list[Figure]:
    with closing(open_history(str(path))) as history:
        ids = [session_id for session_id, _ in history.session_sizes()[:sample]]
        history_rows = reference_metrics.ReferenceHistory(
            [row for session_id in ids if (row := history.session(session_id))],
            {session_id: list(history.rows(session_id)) for session_id in ids},
        )
        scanner = min(_scanner_seconds(history, ids) for _ in range(3))
        reference = _reference_seconds(history_rows)
        word_search = _word_search_seconds(path, ids)
    return [
        Figure("our CPU, to the naive reference", scanner, "s", reference, 1 / 80, "ratio"),
        Figure("our CPU, to looking for words", scanner, "s", word_search, 1 / 80, "ratio"),
    ]


def _scanner_seconds(history: History, ids: list[str]) -> float:
    gc.disable()  # as in a worker
    started = time.process_time()
    run_job(
        ScanJob([(session_id, None) for session_id in ids], True, 1),
        history,
        Calendar(find_zone("UTC")),
    )
    seconds = time.process_time() - started
    gc.enable()
    return seconds


def _reference_seconds(history_rows: reference_metrics.ReferenceHistory) -> float:
    zone = find_zone("UTC")
    started = time.process_time()
    for metric in reference_metrics.COUNTS:
        reference_metrics.count_by_day(metric, history_rows, zone)
        reference_metrics.max_in_session(metric, history_rows, zone)
    for metric in reference_metrics.PEAKS:
        reference_metrics.peak(metric, history_rows, zone)
    for metric in reference_metrics.VARIETY:
        reference_metrics.variety(metric, history_rows, zone)
    return time.process_time() - started


def _word_search_seconds(path: Path, ids: list[str]) -> float:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        sql = "SELECT content, tool_calls FROM messages WHERE session_id = ?"
        started = time.process_time()
        for session_id in ids:
            rows = connection.execute(sql, (session_id,)).fetchall()
            text = "\n".join(part for row in rows for part in row if part)
            for pattern in WORD_PATTERNS:
                len(pattern.findall(text))
        return time.process_time() - started


def _warm(context: BenchmarkContext) -> list[Figure]:
    """CPU time of a refresh after 0, 1 and 100 changed sessions."""
    with context.copy("seeds") as path, SessionDB(path) as db:
        db.wait_for_index(600)
        scanner = _scanner(path)
        scanner.refresh()
        scanner.refresh()
        ids = [session_id for session_id, _ in db.ledger.history().session_sizes()[:100]]
        figures = []
        for number, limit in ((0, 20), (1, 30), (100, 500)):
            times = []
            for _ in range(context.rounds(10)):
                for session_id in ids[:number]:
                    db.append_message(session_id, "user", "one more thing")
                started = time.process_time()
                scanner.refresh()
                times.append(1000 * (time.process_time() - started))
            name = f"refresh, {number} sessions changed, CPU"
            figures.append(Figure(name, median(times), "ms", limit=limit))
        return figures


def _scanner(path: Path) -> Scanner:
    return Scanner(functools.partial(open_history, str(path)), LedgerFile(path), "UTC")


def _append(context: BenchmarkContext) -> list[Figure]:
    """Appending with refreshes of the ledger, compared with appending without them."""
    with context.copy("small") as path, SessionDB(path) as db:
        session_id = db.list_sessions_rich(limit=1)[0]["id"]
        scanner = _scanner(path)
        scanner.refresh()
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(context.rounds(400)):
            is_followed = number % 2 == 0
            for _ in range(8):
                started = time.perf_counter()
                db.append_message(session_id, "user", "a line\n" * 500)
                times[is_followed].append(1000 * (time.perf_counter() - started))
            if is_followed:
                scanner.refresh()
    with_ledger, without_ledger = median(times[True]), median(times[False])
    return [
        Figure(
            "append with a ledger following",
            with_ledger,
            "ms",
            without_ledger,
            limit=1.1,
            limits="ratio",
        )
    ]


def _served(context: BenchmarkContext, path: Path) -> Figure:
    """GET /achievements over HTTP during a full scan."""
    with context.folder() as home:
        (home / "state.db").symlink_to(path)
        with _server(home) as address:
            _get(f"{address}/achievements")
            times: list[float] = []
            _wait_for_idle(address)
            scan = threading.Thread(target=_post, args=(f"{address}/rescan?full=true",))
            scan.start()
            while scan.is_alive():
                started = time.perf_counter()
                _get(f"{address}/achievements")
                times.append(1000 * (time.perf_counter() - started))
                time.sleep(0.01)
    return Figure(
        f"GET while scanning, p95 of {len(times)}", percentile(times, 0.95), "ms", limit=20
    )


@contextlib.contextmanager
def _server(home: Path) -> Iterator[str]:
    environment = {**os.environ, "HERMES_HOME": str(home)}
    server = subprocess.Popen(
        [sys.executable, str(FOLDER / "serve_achievements.py")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(timeout=30)


def _get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=600) as answer:  # noqa: S310 - our own server
        return json.load(answer)


def _post(address: str) -> None:
    request = urllib.request.Request(address, method="POST")  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310 - as above
        answer.read()


def _wait_for_idle(address: str) -> None:
    while _get(f"{address}/scan-status")["state"] == "running":
        time.sleep(0.2)


def _growth(context: BenchmarkContext) -> list[Figure]:
    """CPU time per message of histories that are several times as long."""
    figures: list[Figure] = []
    base = 0.0
    for factor in QUICK_GROWTH if context.is_quick else GROWTH:
        path = _growth_history(context, factor)
        with context.folder() as folder:
            result = _scan(path, folder)
            _plain_read(path)
        messages = _size(context, factor).messages
        per_message = 1e6 * result["cpu"] / messages
        base = base or per_message
        figures.append(
            Figure(f"{messages:,} messages: CPU each", per_message, "µs", base, 1.3, "ratio")
        )
    return figures


def _size(context: BenchmarkContext, factor: int) -> Any:
    seeds = PRESETS["seeds"]
    divisor = QUICK_DIVISOR if context.is_quick else 1
    return replace(
        seeds,
        sessions=factor * seeds.sessions // divisor,
        messages=factor * seeds.messages // divisor,
        total_bytes=None,
        has_search=False,
        kind="native",
    )


def _growth_history(context: BenchmarkContext, factor: int) -> Path:
    """A history without the search index of hermes-agent, which scans do not read."""
    path = context.data / f"growth-{factor}{'-quick' if context.is_quick else ''}.db"
    if not path.exists():
        size = _size(context, factor)
        print(f"making {path.name}: {size.sessions:,} sessions, {size.messages:,} messages …")
        make(path, size)
    return path
