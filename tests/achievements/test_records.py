"""Stored records: invalid content is tolerated, and no message text is stored."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermes_achievements.evaluation.views import SessionTitles, with_titles
from hermes_achievements.service import AchievementService
from hermes_conversation import achievements
from hermes_core.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from achievements.history_builder import HistoryBuilder

pytestmark = pytest.mark.clock

PRIVATE_TITLE = "my lawyer is called Saul"


@pytest.fixture
def service() -> Iterator[AchievementService]:
    result = AchievementService(achievements.folder)
    yield result
    result.close()


def scan(service: AchievementService, **options: Any) -> dict[str, dict[str, Any]]:
    snapshot = service.run(achievements.source(), service.compute, **options)
    assert snapshot is not None
    return {achievement["id"]: achievement for achievement in snapshot["achievements"]}


def stored(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((achievements.folder() / name).read_text())
    return data


def store(name: str, value: Any) -> None:
    (achievements.folder() / name).write_text(json.dumps(value))


@pytest.mark.parametrize(
    "tiers",
    [
        {"clay": None},
        {"clay": {}},
        {"clay": {"at": "soon"}},
        {"clay": {"at": True}},
        {"clay": 7, "bronze": [1]},
    ],
)
def test_invalid_values_in_the_state_are_ignored(
    builder: HistoryBuilder,
    service: AchievementService,
    tiers: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    builder.send()
    store("state.json", {"version": 2, "unlocks": {"first-words": {"tiers": tiers}}})
    result = scan(service)["first-words"]
    assert result["evidence"]["session_id"] == "s1"
    assert "first-words" in caplog.text


def test_valid_tiers_beside_invalid_ones_are_kept(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    good = {"at": 5.0, "session_id": "old", "message_id": 3}
    tiers = {"clay": good, "bronze": {"at": float("inf")}}
    store("state.json", {"version": 2, "unlocks": {"well-spoken": {"tiers": tiers}}})
    assert [step["at"] for step in scan(service)["well-spoken"]["tier_history"]] == [5.0]


@pytest.mark.parametrize(
    "snapshot",
    [
        {"achievements": []},
        {"achievements": [{}], "generated_at": "x"},
        {"achievements": [1], "generated_at": 1, "scan_meta": None},
    ],
)
def test_an_invalid_snapshot_is_not_served(
    service: AchievementService, snapshot: dict[str, Any]
) -> None:
    store("scan_snapshot.json", {"version": 2, **snapshot})
    assert service.current() is None


def test_files_contain_no_session_titles(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send(PRIVATE_TITLE)
    scan(service)
    for name in ("state.json", "scan_snapshot.json"):
        assert "Saul" not in (achievements.folder() / name).read_text()


def test_titles_stored_by_an_older_release_are_removed(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    old = {"at": 5.0, "session_id": "gone", "message_id": 3, "title": PRIVATE_TITLE}
    inherited = {"unlocked_at": 1, "evidence": {"session_id": "gone", "title": PRIVATE_TITLE}}
    unlocks = {"well-spoken": {"tiers": {"clay": old}}, "some_badge": inherited}
    store("state.json", {"version": 2, "unlocks": unlocks})
    assert "Saul" not in json.dumps(service.records.state())
    scan(service)
    assert "Saul" not in (achievements.folder() / "state.json").read_text()
    assert stored("state.json")["inherited"]["some_badge"]["unlocked_at"] == 1


def test_titles_are_looked_up_and_purged_sessions_have_none(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send(PRIVATE_TITLE)
    scan(service)
    titles = SessionTitles(achievements.source().open_history, cache_seconds=0)

    def first_words() -> dict[str, Any]:
        shown = with_titles(service.current() or {}, titles)["achievements"]
        evidence: dict[str, Any] = {item["id"]: item for item in shown}["first-words"]["evidence"]
        return evidence

    assert (first_words()["title"], first_words()["is_gone"]) == (PRIVATE_TITLE, False)
    builder.db.delete_session("s1")
    builder.db.trash.purge("s1")
    assert (first_words()["title"], first_words()["is_gone"]) == (None, True)
    assert first_words()["session_id"] == "s1"


def test_a_scan_without_moments_is_not_recorded(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    row = builder.send()
    scanned = {"aggregate": {"total_messages_sent": 1}, "scan_meta": {"mode": "full"}}
    shown = {
        achievement["id"]: achievement for achievement in service.compute(scanned)["achievements"]
    }
    assert shown["first-words"]["unlocked"]
    assert service.records.state()["unlocks"] == {}
    assert scan(service)["first-words"]["evidence"]["message_id"] == row


def test_an_unlock_without_evidence_is_dated_by_the_next_scan(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    row = builder.send()
    undated = {"at": 9e9, "session_id": None, "message_id": None}
    store("state.json", {"version": 2, "unlocks": {"first-words": {"tiers": {"clay": undated}}}})
    result = scan(service)["first-words"]
    assert result["evidence"]["message_id"] == row
    assert result["unlocked_at"] == builder.now
    results = stored("state.json")["unlocks"]["first-words"]
    assert (results["unlocked_at"], results["tiers"]["clay"]["session_id"]) == (builder.now, "s1")


def test_the_first_time_zone_is_recorded(
    builder: HistoryBuilder,
    service: AchievementService,
    monkeypatch: pytest.MonkeyPatch,
    hermes_home: Path,
) -> None:
    builder.send()
    monkeypatch.setenv("TZ", "Pacific/Niue")
    scan(service)
    assert stored("state.json")["zone"] == "Pacific/Niue"
    monkeypatch.setenv("TZ", "UTC")
    assert achievements.source().zone == "Pacific/Niue"
    builder.send()
    service.run(achievements.source(), service.compute)
    assert (service.current() or {})["scan_meta"]["mode"] == "incremental"
    (hermes_home / "config.yaml").write_text("display:\n  timezone: Europe/Berlin\n")
    assert achievements.source().zone == "Europe/Berlin"
    scan(service)
    assert stored("state.json")["zone"] == "Pacific/Niue"
    service.reset()
    assert stored("state.json")["zone"] == "Pacific/Niue"


def test_reading_creates_no_folder(hermes_home: Path) -> None:
    result = achievements.service()
    assert result.current() is None
    assert result.records.state()["unlocks"] == {}
    assert not (hermes_home / "plugins").exists()


def test_unlocks_of_a_process_that_died_before_announcing_them_are_announced_by_the_next(
    builder: HistoryBuilder,
) -> None:
    announced: list[str] = []

    def die(_item: Any) -> None:
        raise KeyboardInterrupt

    def scan_at(now: float, announce: Callable[[Any], object]) -> None:
        result = AchievementService(
            achievements.folder, announce=announce, clock=ManualClock(time.time() + now)
        )
        try:
            result.run(achievements.source(), result.compute)
        finally:
            result.close()

    def announce(item: Any) -> None:
        announced.extend(unlock["id"] for unlock in item["unlocks"])

    builder.send()
    with pytest.raises(KeyboardInterrupt):
        scan_at(0, die)
    scan_at(1, announce)  # the other one may still be about to announce them
    assert announced == []
    scan_at(1000, announce)
    assert "first-words" in announced
    assert len(announced) == len(set(announced))
    scan_at(2000, announce)
    assert len(announced) == len(set(announced))
    assert "unannounced" not in stored("state.json")


def test_without_write_access_unlocks_are_shown_but_not_announced(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("hermes_achievements.evaluation.records.folder_locked", refuse)
    monkeypatch.setattr("hermes_achievements.evaluation.records.write_atomically", refuse)
    builder.send()
    results: list[dict[str, Any]] = []
    result = AchievementService(achievements.folder_path, announce=results.append)
    assert scan(result)["first-words"]["evidence"]["session_id"] == "s1"
    assert "Read-only" in (result.records.problem or "")
    assert results == []
    result.close()
