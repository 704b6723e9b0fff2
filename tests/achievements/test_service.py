"""What is served, recorded, announced and kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_achievements.catalogue import achievement_from, load
from hermes_achievements.evaluation import evaluate, standing
from hermes_achievements.service import Service
from hermes_cli import achievements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from achievements.life import Life

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
def service() -> Iterator[Service]:
    made = Service(achievements.folder)
    yield made
    made.close()


def shown(snapshot: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    assert snapshot is not None
    return {one["id"]: one for one in snapshot["achievements"]}


def test_a_new_definition_is_dated_from_what_is_already_known(life: Life, service: Service) -> None:
    rows = [life.shell("ls") for _ in range(3)]
    service.run(achievements.source(), service.compute)
    one = achievement_from(ADDED, "a plugin")
    later = Service(achievements.folder, added=lambda: [one])
    assert later.is_stale(later.current() or {})
    found = shown(later.run(achievements.source(), later.compute))["very-own"]
    later.close()
    assert found["origin"] == "a plugin"
    assert found["tier"] == "silver"
    assert [step["message_id"] for step in found["tier_history"]] == [row - 1 for row in rows]
    assert later.current() is not None
    assert (later.current() or {})["scan_meta"]["sessions_rescanned"] == 0


def test_what_was_earned_is_never_taken_back(life: Life, service: Service) -> None:
    life.shell("ls")
    before = shown(service.run(achievements.source(), service.compute))
    fewer = service.compute({"aggregate": {}, "scan_meta": {"mode": "full"}})
    after = shown(fewer)
    assert {name for name, one in before.items() if one["unlocked"]} == {
        name for name, one in after.items() if one["unlocked"]
    }


def test_losing_the_state_costs_nothing_but_a_scan(life: Life, service: Service) -> None:
    life.say()
    life.shell("pytest")
    before = shown(service.run(achievements.source(), service.compute))
    service.reset()
    assert service.records.state()["unlocks"] == {}
    after = shown(service.run(achievements.source(), service.compute, full=True))
    assert before == after


def test_a_hidden_achievement_is_not_shown(life: Life) -> None:
    life.say()
    made = Service(achievements.folder, hidden=lambda: ["first-words"])
    assert "first-words" not in shown(made.run(achievements.source(), made.compute))
    made.close()


def test_a_scan_is_announced_once_for_all_it_has_found(life: Life) -> None:
    told: list[dict[str, Any]] = []
    made = Service(achievements.folder, announce=told.append)
    life.say()
    life.shell("pytest")
    made.run(achievements.source(), made.compute)
    assert len(told) == 1
    assert told[0]["is_first_scan"]
    assert told[0]["count"] == len(told[0]["unlocks"]) > 3
    life.use("write_file", {"path": "a.py"})
    made.run(achievements.source(), made.compute)
    assert len(told) == 2
    assert not told[1]["is_first_scan"]
    assert {"id", "name", "tier", "at", "session_id", "message_id"} <= set(told[1]["unlocks"][0])
    made.run(achievements.source(), made.compute)
    assert len(told) == 2
    made.close()


def test_a_listener_that_fails_does_not_stop_a_scan(life: Life) -> None:
    def fail(_announcement: dict[str, Any]) -> None:
        raise RuntimeError("not today")

    made = Service(achievements.folder, announce=fail)
    life.say()
    assert made.run(achievements.source(), made.compute) is not None
    made.close()


def test_a_snapshot_of_the_original_is_not_served_as_ours(life: Life, service: Service) -> None:
    life.say()
    old = {"achievements": [{"id": "x", "name": "X"}], "generated_at": 1_900_000_000}
    (achievements.folder() / "scan_snapshot.json").write_text(json.dumps(old))
    assert service.current() is None


def test_nothing_is_read_when_nothing_was_written(
    life: Life, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.say()
    source = achievements.source()
    service.run(source, service.compute)
    monkeypatch.setattr("hermes_achievements.service.survey", None)
    first = service.current() or {}
    again = service.run(source, service.compute)
    assert again is not None
    assert again["generated_at"] >= first["generated_at"]
    assert again["achievements"] == first["achievements"]


def test_what_is_new_makes_the_snapshot_stale(life: Life, service: Service) -> None:
    life.say()
    snapshot = service.run(achievements.source(), service.compute)
    assert snapshot is not None
    assert not service.is_stale(snapshot)
    life.say()
    service._looked_at = 0.0
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
    one = achievement_from({**ADDED, "tiers": [10, 100, 1_000, 10_000, 100_000]}, "test")
    where = standing(one, value)
    assert (where.tier, where.next_tier, where.percent) == (tier, next_tier, percent)


def test_a_newcomer_earns_something_in_the_first_minutes(life: Life, service: Service) -> None:
    life.say("hello")
    life.answer()
    life.shell("ls")
    life.use("write_file", {"path": "hello.py"})
    life.answer()
    found = shown(service.run(achievements.source(), service.compute))
    assert sum(one["unlocked"] for one in found.values()) >= 4


def test_the_heaviest_user_is_not_finished() -> None:
    heavy = dict.fromkeys((one.value for one in load()), 260000)
    left = [one for one in evaluate(load(), heavy, {}) if one["next_tier"]]
    assert any(one["id"] == "turn-of-the-crank" for one in left)
    assert len(left) >= 10
