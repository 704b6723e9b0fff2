"""The first opening of a large history of hermes-agent, each in a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import Figure, median, seconds
from hermes_state.engine.sqlite.driver import sqlite3
from surroundings import drop_page_cache

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

PROGRAM: Final = Path(__file__).resolve().parent / "first_open.py"
ROUNDS: Final = 60
OWN_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'hermes_*'"


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    rounds = max(1, context.rounds(ROUNDS) // 20)
    with context.copy("seeds") as path:
        warm = [_pair(path, is_cold=False) for _ in range(rounds)]
        cold = [_pair(path, is_cold=True) for _ in range(rounds)]
        listed = _cold_command(path)
        _drop_own_tables(path)
        drop_page_cache(path)
        built = _run("build", path)
    return [
        _first_list("first list, pages in memory", warm),
        _first_list("first list, pages on disk", cold),
        Figure("hermes sessions list, pages on disk", listed, "ms"),
        Figure("index complete after", built["built"], "ms", warm[0][1]),
        *_during_build(built),
    ]


def _during_build(built: dict[str, Any]) -> list[Figure]:
    """Latencies while the index is built; commits to another file show the disk."""
    appends, commits, lists = (built[name] or [0.0] for name in ("appends", "commits", "lists"))
    return [
        Figure("append meanwhile, p50", median(appends), "ms", median(commits)),
        Figure("append meanwhile, longest", max(appends), "ms", max(commits)),
        Figure("list meanwhile, longest", max(lists), "ms"),
        Figure("time between readings of progress", built["built"] / _readings(built), "ms"),
    ]


def _readings(built: dict[str, Any]) -> int:
    return max(1, int(built["progress_readings"]))


def _first_list(name: str, pairs: list[tuple[float, float]]) -> Figure:
    store_ms, sqlite_ms = (median(times) for times in zip(*pairs, strict=True))
    return Figure(name, store_ms, "ms", sqlite_ms, 1000)


def _pair(path: Path, *, is_cold: bool) -> tuple[float, float]:
    """The store and SQLite alone, each in its own process, one after the other."""
    times = []
    for mode in ("ours", "bare"):
        _drop_own_tables(path)
        if is_cold:
            drop_page_cache(path)
        times.append(float(_run(mode, path)["listed"]))
    return times[0], times[1]


def _run(mode: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), mode, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _cold_command(path: Path) -> float:
    """Time of the complete command, with no page of the file in memory."""
    _drop_own_tables(path)
    drop_page_cache(path)
    home = path.parent
    environment = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home)}
    command = [sys.executable, "-I", "-m", "hermes_cli", "sessions", "list"]
    return 1000 * seconds(
        lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    )


def _drop_own_tables(path: Path) -> None:
    """Drop the tables of Hermes, as if it had never opened the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (name,) in connection.execute(OWN_TABLES).fetchall():
            connection.execute(f"DROP TABLE {name}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
