"""What is kept on disk: whatever anybody writes into it, and without a word of anybody's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_achievements.evaluation.views import SessionTitles, with_titles
from hermes_achievements.service import AchievementService
from hermes_conversation import achievements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from achievements.history_builder import HistoryBuilder

pytestmark = pytest.mark.clock

SAID = "my lawyer is called Saul"


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
def test_odd_values_in_the_state_are_left_out(
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


def test_what_is_good_beside_odd_values_stays(
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
def test_odd_values_in_the_snapshot_are_not_served(
    service: AchievementService, snapshot: dict[str, Any]
) -> None:
    store("scan_snapshot.json", {"version": 2, **snapshot})
    assert service.current() is None


def test_no_conversation_is_named_on_disk(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send(SAID)
    scan(service)
    for name in ("state.json", "scan_snapshot.json"):
        assert "Saul" not in (achievements.folder() / name).read_text()


def test_names_that_an_older_release_kept_are_taken_out(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send()
    old = {"at": 5.0, "session_id": "gone", "message_id": 3, "title": SAID}
    theirs = {"unlocked_at": 1, "evidence": {"session_id": "gone", "title": SAID}}
    unlocks = {"well-spoken": {"tiers": {"clay": old}}, "some_badge": theirs}
    store("state.json", {"version": 2, "unlocks": unlocks})
    assert "Saul" not in json.dumps(service.records.state())
    scan(service)
    assert "Saul" not in (achievements.folder() / "state.json").read_text()
    assert stored("state.json")["inherited"]["some_badge"]["unlocked_at"] == 1


def test_names_are_looked_up_and_what_is_gone_has_none(
    builder: HistoryBuilder, service: AchievementService
) -> None:
    builder.send(SAID)
    scan(service)
    names = SessionTitles(achievements.source().open_history, cache_seconds=0)

    def first_words() -> dict[str, Any]:
        shown = with_titles(service.current() or {}, names)["achievements"]
        evidence: dict[str, Any] = {item["id"]: item for item in shown}["first-words"]["evidence"]
        return evidence

    assert (first_words()["title"], first_words()["is_gone"]) == (SAID, False)
    builder.db.delete_session("s1")
    builder.db.purge_session("s1")
    assert (first_words()["title"], first_words()["is_gone"]) == (None, True)
    assert first_words()["session_id"] == "s1"


def test_a_scan_that_does_not_know_the_moments_is_not_recorded(
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


def test_the_first_zone_is_remembered(
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


def test_reading_makes_no_folder(hermes_home: Path) -> None:
    result = achievements.service()
    assert result.current() is None
    assert result.records.state()["unlocks"] == {}
    assert not (hermes_home / "plugins").exists()


def test_where_nothing_can_be_written_everything_is_shown_and_nothing_announced(
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
