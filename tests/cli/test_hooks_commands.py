"""`hermes hooks …` and the events of commands, as real processes."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from hermes_agent.shell_hooks.config import parse_hooks
from hermes_agent.shell_hooks.failures import record_failure
from hermes_state import SessionDB
from support.plugin_folders import (
    RECORDER_PLUGIN,
    add_misbehaving_plugin,
    make_plugin,
    recorded_calls,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock

DAY = 86_400


@pytest.fixture
def conversations(hermes_home: Path) -> None:
    """Three ended conversations, two of them old."""
    with SessionDB() as db:
        for number in range(3):
            at = time.time() - number * 200 * DAY
            db.create_session(f"talk{number}", "telegram", started_at=at)
            db.append_message(f"talk{number}", "user", "hello", timestamp=at)
            db.end_session(f"talk{number}", "cli_close")


@pytest.fixture
def recorder_plugin(hermes: Hermes, hermes_home: Path, conversations: None) -> None:
    """A plugin that listens, enabled after all that has happened."""
    make_plugin(hermes_home, "ears", RECORDER_PLUGIN)
    assert hermes("plugins", "enable", "ears").code == 0


def events(hermes: Hermes) -> list[dict]:
    return json.loads(hermes("hooks", "log", "--json").out)


@pytest.mark.usefixtures("recorder_plugin")
def test_the_list_shows_hooks_and_their_plugins(hermes: Hermes) -> None:
    rows = {row["name"]: row for row in json.loads(hermes("hooks", "list", "--json").out)}
    assert rows["on_session_finalize"]["plugins"] == ["ears"]
    assert rows["pre_llm_call"]["plugins"] == []
    assert rows["on_session_finalize"]["facts"] == ["platform", "session_id"]
    assert "ears" in hermes("hooks", "list").out


def test_the_log_of_a_home_without_a_history_is_empty(hermes: Hermes) -> None:
    assert "No conversations yet" in hermes("hooks", "log").out
    assert hermes("hooks", "log", "--json").out.strip() == "[]"


@pytest.mark.usefixtures("conversations")
def test_the_log_shows_boundaries_newest_first(hermes: Hermes) -> None:
    assert [event["session_id"] for event in events(hermes)] == ["talk2", "talk1", "talk0"]
    data = json.loads(hermes("hooks", "log", "--session", "talk1", "--json").out)
    assert [event["session_id"] for event in data] == ["talk1"]
    assert len(json.loads(hermes("hooks", "log", "--limit", "1", "--json").out)) == 1
    text = hermes("hooks", "log").out
    assert "talk0" in text
    assert "waiting" in text


@pytest.mark.usefixtures("recorder_plugin")
def test_a_replay_reaches_plugins_with_the_same_id(hermes: Hermes, hermes_home: Path) -> None:
    event = events(hermes)[0]["event_id"]
    result = hermes("hooks", "replay", event)
    assert (result.code, result.out) == (0, f"{event} delivered\n")
    assert hermes("hooks", "replay", event, "--json").code == 0
    ids = [json.loads(line).get("event_id") for line in recorded_calls(hermes_home)]
    assert ids.count(event) == 2


@pytest.mark.usefixtures("recorder_plugin")
def test_a_prefix_of_several_or_no_events_is_refused(hermes: Hermes, hermes_home: Path) -> None:
    ids = [event["event_id"] for event in events(hermes)]
    common = ids[0][:2]
    assert all(item.startswith(common) for item in ids)
    result = hermes("hooks", "replay", common)
    assert result.code == 2
    assert f"3 event IDs start with '{common}'" in result.err
    assert "No event ID starts with 'zz'" in hermes("hooks", "replay", "zz").err
    assert recorded_calls(hermes_home) == []


def test_a_failed_replay_is_reported(
    hermes: Hermes, conversations: None, hermes_home: Path
) -> None:
    add_misbehaving_plugin(hermes_home)
    hermes("plugins", "enable", "misbehaving")
    event = events(hermes)[0]["event_id"]
    result = hermes("hooks", "replay", event, HERMES_MISBEHAVE="raise")
    assert result.code == 1
    assert "waiting" in result.out
    assert "configured to fail" in result.out
    logged = hermes("hooks", "log").out
    assert "configured to fail" in logged


@pytest.mark.usefixtures("recorder_plugin")
def test_a_hook_is_called_with_the_passed_fields(hermes: Hermes, hermes_home: Path) -> None:
    result = hermes("hooks", "test", "on_session_start", "session_id=x", "answer=7=7")
    assert result.code == 0
    assert "ears: answered '7=7'" in result.out
    assert json.loads(recorded_calls(hermes_home)[0])["session_id"] == "x"
    outcomes = json.loads(hermes("hooks", "test", "on_session_start", "--json").out)
    assert [(outcome["plugin"], outcome["error"]) for outcome in outcomes] == [("ears", "")]
    assert "No plugin registered" in hermes("hooks", "test", "pre_llm_call").out
    assert hermes("hooks", "test", "on_session_start", "nonsense").code == 2
    unknown = hermes("hooks", "test", "on_session_stat")
    assert unknown.code == 2
    assert "on_session_start" in unknown.err


def test_a_hanging_hook_times_out(hermes: Hermes, hermes_home: Path) -> None:
    add_misbehaving_plugin(hermes_home)
    hermes("plugins", "enable", "misbehaving")
    result = hermes("hooks", "test", "on_session_boundary", HERMES_MISBEHAVE="hang")
    assert result.code == 1
    assert "did not return within 2 s" in result.out


def boundary_calls(home: Path) -> list[tuple[str, str, str]]:
    path = home / "logs" / "boundaries.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    fields = [json.loads(line) for line in lines]
    return [
        (field["kind"], field["reason"], field["session_id"])
        for field in fields
        if "reason" in field
    ]


@pytest.mark.usefixtures("conversations")
def test_deleting_restoring_and_pruning_are_announced(hermes: Hermes, hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("running", "cli")
    hermes("plugins", "enable", "boundary-log")
    for arguments, expected in (
        (("delete", "talk0", "--yes"), [("prune", "deleted", "talk0")]),
        (("restore", "talk0"), []),  # it had ended, and still has
        (("delete", "running", "--yes"), [("prune", "deleted", "running")]),
        (("restore", "running"), [("resume", "reopened", "running")]),
        (("prune", "--yes"), [("prune", "pruned", "talk1"), ("prune", "pruned", "talk2")]),
    ):
        before = len(boundary_calls(hermes_home))
        assert hermes("sessions", *arguments).code == 0
        assert sorted(boundary_calls(hermes_home)[before:]) == expected, arguments
    assert {event["state"] for event in events(hermes)} == {"delivered"}


@pytest.mark.usefixtures("conversations")
def test_without_plugins_nothing_is_delivered(hermes: Hermes, hermes_home: Path) -> None:
    states = [event["state"] for event in events(hermes)]
    assert hermes("sessions", "delete", "talk0", "--yes").code == 0
    assert [event["attempts"] for event in events(hermes)] == [0] * len(events(hermes))
    assert states == ["waiting"] * 3
    assert not (hermes_home / "logs" / "boundaries.jsonl").exists()


def test_shell_hooks_are_listed_with_their_last_error(
    hermes: Hermes, hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hermes_home.mkdir(parents=True, exist_ok=True)
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check --all"}]}
    (hermes_home / "config.yaml").write_text(f"hooks: {json.dumps({'PreToolUse': [entry]})}\n")
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "hooks.json").write_text(json.dumps({"Stop": [entry]}))
    monkeypatch.chdir(tmp_path)
    (hook,) = parse_hooks({"PreToolUse": [entry]}, "x").hooks  # type: ignore[list-item]
    record_failure(hook, "exit code 1: broken")
    rows = json.loads(hermes("hooks", "list", "--json").out)
    (row,) = [row for row in rows if row["name"] == "PreToolUse"]
    assert row["commands"][0]["command"] == "./check --all"
    assert row["commands"][0]["last_error"] == "exit code 1: broken (1 times)"
    assert "Stop" not in [row["name"] for row in rows]
    shown = hermes("hooks", "list")
    assert "./check --all" in shown.out
    assert "hermes trust" in shown.out
