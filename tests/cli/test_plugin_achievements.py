"""Achievements of plugins and the unlock hook, as real processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from achievements.history_builder import HistoryBuilder
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes

BRINGING = """
def register(ctx):
    ctx.register_achievement(
        id="{id}", name="Green Thumb", text="Everything you plant comes up.",
        counts="Commands in the shell.", icon="{icon}", kind="counter",
        value="{value}", unit="commands", category="{category}", tiers={tiers},
    )
"""
GOOD = {
    "id": "green-thumb",
    "icon": "sprout",
    "value": "total_shell_commands",
    "category": "shell",
    "tiers": "[2, 3, 100, 1000, 10000]",
}
RECORDER_CODE = """
import json, os, pathlib
def record(**fields):
    with (pathlib.Path(os.environ["HERMES_HOME"]) / "unlocks.jsonl").open("a") as file:
        file.write(json.dumps(fields) + "\\n")
def register(ctx):
    ctx.register_hook("on_achievement_unlocked", record)
"""


@pytest.fixture
def builder(hermes_home: Path) -> Iterator[HistoryBuilder]:
    assert hermes_home.is_dir()
    result = HistoryBuilder()
    result.start("garden").send("hello")
    for _ in range(4):
        result.run_shell("ls")
    yield result
    result.close()


def test_achievements_of_a_plugin_are_earned_and_dated(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    make_plugin(hermes_home, "garden", BRINGING.format(**GOOD))
    assert hermes("plugins", "enable", "garden").code == 0
    listed = json.loads(hermes("achievements", "list", "--json").out)
    result = next(item for item in listed if item["id"] == "green-thumb")
    results = [row for row in builder.db.get_messages("garden") if row["role"] == "assistant"]
    assert (result["origin"], result["tier"], result["progress"]) == ("garden", "bronze", 4)
    assert result["unlocked_at"] == results[1]["timestamp"]
    assert [step["message_id"] for step in result["tier_history"]] == [
        results[1]["id"],
        results[2]["id"],
    ]
    assert "from the plugin garden" in hermes("achievements", "show", "green-thumb").out


def test_without_its_plugin_an_achievement_is_hidden_until_it_returns(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    make_plugin(hermes_home, "garden", BRINGING.format(**GOOD))
    hermes("plugins", "enable", "garden")
    before = json.loads(hermes("achievements", "show", "green-thumb", "--json").out)
    hermes("plugins", "disable", "garden")
    assert hermes("achievements", "show", "green-thumb").code == 2
    builder.run_shell("ls")
    hermes("achievements", "rescan")
    hermes("plugins", "enable", "garden")
    after = json.loads(hermes("achievements", "show", "green-thumb", "--json").out)
    assert after["tier_history"] == before["tier_history"]


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("id", "Green Thumb", "lower-case words joined by dashes"),
        ("id", "first-words", "already has one with this id"),
        ("icon", "no-such-icon", "icon is 'no-such-icon'"),
        ("category", "gardens", "accepted: one of conversation"),
        ("value", "total_tomatoes", "value is 'total_tomatoes'"),
        ("tiers", "[3, 2, 1]", "a list of 5 numbers"),
        ("tiers", "[5, 4, 3, 2, 1]", "each larger than the last"),
    ],
)
@pytest.mark.usefixtures("builder")
def test_an_invalid_achievement_fails_only_its_plugin(
    hermes: Hermes, hermes_home: Path, field: str, value: str, complaint: str
) -> None:
    make_plugin(hermes_home, "garden", BRINGING.format(**{**GOOD, field: value}))
    assert hermes("plugins", "enable", "garden").code == 1
    plugins = {item["name"]: item for item in json.loads(hermes("plugins", "list", "--json").out)}
    assert plugins["garden"]["state"] == "failed"
    assert complaint in plugins["garden"]["problem"]
    result = hermes("achievements", "list", "--json")
    assert result.code == 0
    assert "Green Thumb" not in result.out


def test_plugins_are_notified_once_per_scan(
    hermes: Hermes, hermes_home: Path, builder: HistoryBuilder
) -> None:
    make_plugin(hermes_home, "ears", RECORDER_CODE)
    assert hermes("plugins", "enable", "ears").code == 0

    def recorded_unlocks() -> list[dict[str, object]]:
        text = (hermes_home / "unlocks.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    hermes("achievements")
    (first,) = recorded_unlocks()
    assert first["is_first_scan"] is True
    assert first["count"] == len(first["unlocks"]) > 3  # type: ignore[arg-type]
    hermes("achievements", "rescan", "--full")
    assert len(recorded_unlocks()) == 1
    for number in range(5):
        builder.start(f"more{number}").send("hello")
    hermes("achievements", "list")
    assert len(recorded_unlocks()) == 2
    second = recorded_unlocks()[1]
    assert second["is_first_scan"] is False
    assert "open-doors" in [unlock["id"] for unlock in second["unlocks"]]  # type: ignore[attr-defined]
