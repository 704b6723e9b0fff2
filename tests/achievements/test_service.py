"""The achievements service: snapshots, records and announcements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from achievements.history_builder import HistoryBuilder
from hermes_achievements import service as service_module
from hermes_achievements.catalogue import achievement_from, load
from hermes_achievements.evaluation.standings import compute_standing, evaluate
from hermes_achievements.scan.survey import SurveyReport
from hermes_achievements.service import AchievementService
from hermes_conversation import achievements
from hermes_core.clock import ManualClock
from hermes_core.errors import ScanError
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ADDED = {
    "id": "very-own",
    "name": "Very Own",
    "text": "A plugin's own.",
    "counts": "Shell calls.",
    "icon": "star",
    "category": "shell",
    "kind": "counter",
    "value": "total_shell_commands",
    "unit": "shell calls",
    "tiers": [1, 2, 3, 4, 5],
}


@pytest.fixture
def service() -> Iterator[AchievementService]:
    result = AchievementService(achievements.folder)
    yield result
    result.close()


def shown(snapshot: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    assert snapshot is not None
    return {achievement["id"]: achievement for achievement in snapshot["achievements"]}


def test_a_new_achievement_is_dated_from_the_ledger(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    rows = [builder.run_shell("ls") for _ in range(3)]
    service.run(achievements.source(), service.compute)
    item = achievement_from(ADDED, "a plugin")
    later = AchievementService(achievements.folder, added=lambda: [item])
    assert later.is_stale(later.current() or {})
    result = shown(later.run(achievements.source(), later.compute))["very-own"]
    later.close()
    assert result["origin"] == "a plugin"
    assert result["tier"] == "silver"
    assert [step["message_id"] for step in result["tier_history"]] == [row - 1 for row in rows]
    assert later.current() is not None
    assert (later.current() or {})["scan_meta"]["sessions_rescanned"] == 0


def test_an_old_snapshot_is_served_without_plugins_and_catalogue(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    service.run(achievements.source(), service.compute)
    now = service_module.SystemClock().now()

    def load_nothing() -> Any:
        raise AssertionError("loaded")

    monkeypatch.setattr("hermes_achievements.catalogue.load", load_nothing)
    later = AchievementService(
        achievements.folder, clock=ManualClock(now + 3600), added=load_nothing, hidden=load_nothing
    )
    started: list[bool] = []
    snapshot = later.evaluate(force=True, run=list, start=list)
    assert snapshot["scan_meta"]["mode"] == "full"
    snapshot = later.evaluate(force=False, run=list, start=lambda: started.append(True))
    assert snapshot["is_stale"]
    assert started == [True]


def test_a_current_snapshot_is_served_without_the_catalogue(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    service.run(achievements.source(), service.compute)
    monkeypatch.delattr("hermes_achievements.catalogue.load")
    later = AchievementService(achievements.folder)
    assert not later.evaluate(force=False, run=list, start=list)["is_stale"]


def test_unlocks_are_never_removed(builder: HistoryBuilder, service: AchievementService) -> None:
    builder.run_shell("ls")
    before = shown(service.run(achievements.source(), service.compute))
    fewer = service.compute({"aggregate": {}, "scan_meta": {"mode": "full"}})
    after = shown(fewer)
    assert {name for name, item in before.items() if item["unlocked"]} == {
        name for name, item in after.items() if item["unlocked"]
    }


def test_a_full_scan_restores_a_lost_state(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    builder.run_shell("pytest")
    before = shown(service.run(achievements.source(), service.compute))
    service.reset()
    assert service.records.state()["unlocks"] == {}
    after = shown(service.run(achievements.source(), service.compute, full=True))
    assert before == after


def test_a_hidden_achievement_is_not_shown(builder: HistoryBuilder) -> None:
    builder.send()
    result = AchievementService(achievements.folder, hidden=lambda: ["first-words"])
    assert "first-words" not in shown(result.run(achievements.source(), result.compute))
    result.close()


def test_the_unlocks_of_a_scan_are_announced_once(builder: HistoryBuilder) -> None:
    results: list[dict[str, Any]] = []
    result = AchievementService(achievements.folder, announce=results.append)
    builder.send()
    builder.run_shell("pytest")
    result.run(achievements.source(), result.compute)
    assert len(results) == 1
    assert results[0]["is_first_scan"]
    assert results[0]["count"] == len(results[0]["unlocks"]) > 3
    builder.call_tool("write_file", {"path": "a.py"})
    result.run(achievements.source(), result.compute)
    assert len(results) == 2
    assert not results[1]["is_first_scan"]
    assert {"id", "name", "tier", "at", "session_id", "message_id"} <= set(results[1]["unlocks"][0])
    result.run(achievements.source(), result.compute)
    assert len(results) == 2
    result.close()


def test_a_failing_announcement_does_not_stop_a_scan(builder: HistoryBuilder) -> None:
    def fail(_announcement: dict[str, Any]) -> None:
        raise RuntimeError("not today")

    result = AchievementService(achievements.folder, announce=fail)
    builder.send()
    assert result.run(achievements.source(), result.compute) is not None
    result.close()


def test_a_snapshot_of_the_original_program_is_not_served(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    old = {"achievements": [{"id": "x", "name": "X"}], "generated_at": 1_900_000_000}
    (achievements.folder() / "scan_snapshot.json").write_text(json.dumps(old))
    assert service.current() is None


def test_an_unchanged_history_is_not_scanned(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    source = achievements.source()
    service.run(source, service.compute)
    monkeypatch.setattr("hermes_achievements.service.survey", None)
    first = service.current() or {}
    again = service.run(source, service.compute)
    assert again is not None
    assert again["generated_at"] >= first["generated_at"]
    assert again["achievements"] == first["achievements"]


def test_new_messages_make_the_snapshot_stale(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    assert not service.is_stale(snapshot)
    builder.send()
    service._checked_at = 0.0
    assert service.is_stale(snapshot)


@pytest.mark.parametrize(
    ("value", "tier", "next_tier", "percent"),
    [
        (0, None, "clay", 0),
        (3, None, "clay", 30),
        (10, "clay", "bronze", 0),
        (55, "clay", "bronze", 50),
        (99, "clay", "bronze", 98),
        (100_000, "aether", None, 100),
    ],
)
def test_progress_runs_from_one_tier_to_the_next(
    value: int, tier: str | None, next_tier: str | None, percent: int
) -> None:
    item = achievement_from({**ADDED, "tiers": [10, 100, 1_000, 10_000, 100_000]}, "test")
    standing = compute_standing(item, value)
    assert (standing.tier, standing.next_tier, standing.percent) == (tier, next_tier, percent)


def test_a_new_user_unlocks_something_in_the_first_minutes(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send("hello")
    builder.reply()
    builder.run_shell("ls")
    builder.call_tool("write_file", {"path": "hello.py"})
    builder.reply()
    result = shown(service.run(achievements.source(), service.compute))
    assert sum(item["unlocked"] for item in result.values()) >= 4


def test_heavy_usage_leaves_tiers_to_reach() -> None:
    heavy = dict.fromkeys((item.value for item in load()), 260000)
    left = [item for item in evaluate(load(), heavy, {}) if item["next_tier"]]
    assert any(item["id"] == "turn-of-the-crank" for item in left)
    assert len(left) >= 10


def test_after_a_reset_the_same_unlocks_are_found(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    source = achievements.source()
    before = shown(service.run(source, service.compute))
    service.reset()
    assert service.current() is None
    assert shown(service.run(source, service.compute)) == before


def test_a_reset_during_a_scan_keeps_dates(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    before = shown(service.run(achievements.source(), service.compute))
    builder.send()
    real, times = service_module.survey, []

    def interrupted(order: Any, on_report: Any) -> Any:
        result = real(order, on_report)
        if not times:
            service.reset()
        times.append(1)
        return result

    monkeypatch.setattr(service_module, "survey", interrupted)
    after = shown(service.run(achievements.source(), service.compute))
    assert after["first-words"]["evidence"] == before["first-words"]["evidence"]


def evaluate_without_waiting(service: AchievementService) -> tuple[dict[str, Any], list[int]]:
    """The response without waiting for a scan, and whether a scan was started."""
    started: list[int] = []
    served = service.evaluate(
        force=False,
        run=lambda: None,
        start=lambda: service.start(lambda: started.append(1)),
    )
    if service.thread is not None:
        service.thread.join(120)
    return served, started


def fail(*_: object, **__: object) -> None:
    raise ScanError("the disk is on fire")


def test_a_failed_scan_is_reported_and_retried_with_backoff(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    result = AchievementService(achievements.folder, clock=clock)
    builder.send()
    survey_in_subprocess = service_module.survey_in_subprocess
    monkeypatch.setattr(service_module, "survey_in_subprocess", fail)
    assert evaluate_without_waiting(result)[0]["scan_meta"]["mode"] == "pending"
    pauses = []
    for _ in range(7):
        assert result.run(achievements.source(), result.compute) is None
        served, started = evaluate_without_waiting(result)
        assert served["scan_meta"]["mode"] == "failed"
        assert served["error"] == "the disk is on fire"
        assert served["is_stale"]
        assert started == []
        seconds = 0
        while not evaluate_without_waiting(result)[1]:
            clock.advance(10)
            seconds += 10
        pauses.append(seconds)
    assert pauses == [30, 60, 120, 240, 480, 600, 600]
    monkeypatch.setattr(service_module, "survey_in_subprocess", survey_in_subprocess)
    assert result.run(achievements.source(), result.compute) is not None
    assert evaluate_without_waiting(result)[0]["error"] is None
    result.close()


def test_the_snapshot_is_served_with_the_error_of_the_last_scan(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    before = shown(service.run(achievements.source(), service.compute))
    builder.send()
    monkeypatch.setattr(service_module, "survey", fail)
    service.run(achievements.source(), service.compute)
    served, _ = evaluate_without_waiting(service)
    assert shown(served) == before
    assert (served["error"], served["is_stale"]) == ("the disk is on fire", True)


def test_a_failed_scan_removes_partial_snapshots(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    service.show_partial(service.compute({"scan_meta": {}}, is_partial=True))
    monkeypatch.setattr(service_module, "survey", fail)
    service.run(achievements.source(), service.compute)
    assert evaluate_without_waiting(service)[0]["scan_meta"]["mode"] == "failed"


def test_a_partial_snapshot_holds_back_badges_that_can_fall(
    service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a history can have a tidy month that the whole has not."""
    seen: list[Any] = []
    monkeypatch.setattr(service, "show_partial", seen.append)
    values = {"tidy_months": 3, "total_tool_calls": 50_000}
    report = SurveyReport(sessions=5, total=10, values=values, seconds_left=None)
    service_module._PartialSnapshots(service, service.compute).publish(report)
    unlocked = {item["id"] for item in seen[0]["achievements"] if item["unlocked"]}
    assert unlocked
    assert "neat-shelves" not in unlocked


def test_an_unexpected_exception_is_a_failed_scan(
    builder: HistoryBuilder, service: AchievementService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_key_error(*_: object) -> None:
        raise KeyError("x")

    builder.send()
    service.run(achievements.source(), service.compute)
    builder.send()
    monkeypatch.setattr(service_module, "survey", raise_key_error)
    assert service.run(achievements.source(), service.compute) is None
    assert "KeyError" in service.status.facts().last_error


def test_a_running_service_follows_hidden_achievements(builder: HistoryBuilder) -> None:
    builder.send()
    hidden: list[str] = []
    result = AchievementService(achievements.folder, hidden=lambda: hidden)
    assert "first-words" in shown(result.run(achievements.source(), result.compute))
    hidden.append("first-words")
    assert "first-words" not in shown(result.run(achievements.source(), result.compute))
    hidden.clear()
    assert "first-words" in shown(result.run(achievements.source(), result.compute))
    result.close()


REPLACE = """
import os, sys
from hermes_state.engine.sqlite import driver
driver.install()
from pathlib import Path
from achievements.history_builder import HistoryBuilder
path = Path(sys.argv[1])
other = path.with_name("other.db")
builder = HistoryBuilder(other)
for number in range(7):
    builder.start(f"other{number}").send()
builder.close()
os.replace(other, path)
for tail in ("-wal", "-shm"):
    path.with_name(path.name + tail).unlink(missing_ok=True)
"""


def run_in_subprocess(program: str, path: Path) -> None:
    """Run *program* in another process, like the restore of a backup."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, env=environment)


def test_a_replaced_or_deleted_history_is_detected(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    builder = HistoryBuilder(path)
    builder.start("s1").send()
    builder.close()
    result = AchievementService(achievements.folder)
    snapshot = result.run(achievements.source(), result.compute)
    assert snapshot is not None
    run_in_subprocess(REPLACE, path)
    result._checked_at = 0.0
    assert result.is_stale(snapshot)
    snapshot = result.run(achievements.source(), result.compute)
    assert snapshot is not None
    assert snapshot["scan_meta"]["sessions_total"] == 7
    run_in_subprocess("import sys, os; os.unlink(sys.argv[1])", path)
    result._checked_at = 0.0
    assert result.is_stale(snapshot)
    assert result.run(achievements.source(), result.compute) is None
    assert str(path) in result.status.facts().last_error
    assert evaluate_without_waiting(result)[0]["error"]
    result.close()


def test_a_closed_service_writes_nothing(hermes_home: Path, service: AchievementService) -> None:
    written = threading.Event()

    def scan() -> None:
        time.sleep(0.2)
        written.set()

    service.start(scan)
    service.close()
    assert written.is_set()  # afterwards another user of the folder would find the snapshot


SLOW = """
import multiprocessing, sys, time
from pathlib import Path
from hermes_achievements.scan.plain_history import MemoryLedger
from hermes_achievements.service import AchievementService, HistorySource

class Nothing:
    def version(self): return 0
    def close(self): pass

def open_history():
    if multiprocessing.parent_process() is not None:
        time.sleep(600)
    return Nothing()

if __name__ == "__main__":
    service = AchievementService(lambda: Path(sys.argv[1]))
    source = HistorySource(open_history, MemoryLedger, "UTC", is_shareable=True)
    service.start(lambda: service.run(source, service.compute))
    while not multiprocessing.active_children():
        time.sleep(0.01)
    time.sleep(0.5)
    if sys.argv[2] == "close":
        service.close()
        service.thread.join(120)
        assert not service.thread.is_alive()
"""


@pytest.mark.parametrize("ending", ["close", "exit"])
def test_exit_does_not_wait_for_a_scan(tmp_path: Path, ending: str) -> None:
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(program), str(tmp_path / "kept"), ending]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS, env=environment)
