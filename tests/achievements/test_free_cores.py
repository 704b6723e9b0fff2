"""The number of workers follows the cores that are idle now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hermes_achievements.scan import scanner
from hermes_achievements.scan.scanner import busy_share, count_free_cores, read_core_times

if TYPE_CHECKING:
    from pathlib import Path

STATISTICS = """cpu  999 0 0 999 0 0 0 0 0 0
cpu0 10 5 5 70 10 0 0 0 3 0
cpu1 90 0 0 10 0 0 0 0 0 0
cpu10 1 1 1 1 1 1 1 1 1 1
intr 12345

"""


@pytest.mark.parametrize(
    ("cores", "expected"), [({0}, (80, 100)), ({0, 1}, (90, 200)), ({10}, (2, 8)), ({7}, None)]
)
def test_times_of_the_usable_cores_are_read(
    tmp_path: Path, cores: set[int], expected: tuple[int, int] | None
) -> None:
    file = tmp_path / "stat"
    file.write_text(STATISTICS)
    assert read_core_times(frozenset(cores), file) == expected


def test_times_are_unknown_without_statistics(tmp_path: Path) -> None:
    assert read_core_times(frozenset({0}), tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("after", "share"), [((20, 20), 0.0), ((10, 20), 1.0), ((15, 20), 0.5), ((10, 10), 0.0)]
)
def test_share_of_busy_time(after: tuple[int, int], share: float) -> None:
    assert busy_share((10, 10), after) == share


@pytest.mark.parametrize(
    ("cores", "idle_ticks", "workers"),
    [(2, 20, 2), (2, 10, 2), (2, 0, 1), (1, 0, 1), (4, 0, 2), (32, 320, 8)],
)
def test_workers_follow_idle_cores_and_not_the_load_average(
    monkeypatch: pytest.MonkeyPatch, cores: int, idle_ticks: int, workers: int
) -> None:
    readings = iter([(0, 0), (idle_ticks, 10 * cores)])
    monkeypatch.setattr(scanner, "_usable_cores", lambda: frozenset(range(cores)))
    monkeypatch.setattr(scanner, "read_core_times", lambda _cores: next(readings))
    monkeypatch.setattr(scanner, "SAMPLE_SECONDS", 0)
    monkeypatch.setattr(os, "getloadavg", lambda: (50.0, 50.0, 50.0))
    assert count_free_cores() == workers


def test_load_average_is_used_without_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_usable_cores", lambda: frozenset(range(4)))
    monkeypatch.setattr(scanner, "read_core_times", lambda _cores: None)
    monkeypatch.setattr(os, "getloadavg", lambda: (4.0, 0.0, 0.0))
    assert count_free_cores() == 2
