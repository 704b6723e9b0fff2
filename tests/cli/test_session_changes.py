"""`hermes sessions` rename, delete, restore, prune and search, as real processes."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_state import SessionDB
from support.terminal import spawn

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock

DAY = 86_400


@pytest.fixture(autouse=True)
def conversations(hermes_home: Path) -> None:
    now = time.time()
    with SessionDB() as db:
        for number, age in enumerate((1, 10, 200, 400)):
            name = f"talk{number}"
            at = now - age * DAY
            db.create_session(name, "cli" if number % 2 else "telegram", started_at=at,
                              model=f"model-{number}", cwd=f"/work{number}/here")  # fmt: skip
            db.append_message(name, "user", f"question number{number} about 图片", timestamp=at)
            db.append_message(name, "assistant", f"answer {number}", timestamp=at)
            db.end_session(name, "cli_close")


def ids(hermes: Hermes, *options: str) -> list[str]:
    return [row["id"] for row in json.loads(hermes("sessions", "list", "--json", *options).out)]


def test_a_conversation_is_renamed(hermes: Hermes) -> None:
    result = hermes("sessions", "rename", "talk0", "Trip", "to", "Oslo")
    assert (result.code, result.out) == (0, "talk0 renamed\n")
    assert "Trip to Oslo" in hermes("sessions", "list").out
    taken = hermes("sessions", "rename", "talk1", "Trip to Oslo")
    assert taken.code == 2
    assert "taken" in taken.err


def test_filters_narrow_the_list(hermes: Hermes) -> None:
    assert ids(hermes, "--since", "2w") == ["talk0", "talk1"]
    assert ids(hermes, "--until", "100d") == ["talk2", "talk3"]
    assert ids(hermes, "--model", "EL-2") == ["talk2"]
    assert ids(hermes, "--dir", "/work3") == ["talk3"]
    assert ids(hermes, "--min-messages", "3") == []
    assert ids(hermes, "--source", "cli", "--since", "1y") == ["talk1"]
    wrong = hermes("sessions", "list", "--since", "yesterday")
    assert wrong.code == 2
    assert "invalid time" in wrong.err


@pytest.mark.parametrize(
    ("zone", "is_listed"), [("Asia/Tokyo", True), ("UTC", False), ("America/New_York", False)]
)
def test_a_date_is_a_day_in_the_local_time_zone(hermes: Hermes, zone: str, is_listed: bool) -> None:
    with SessionDB() as db:
        db.create_session("evening", "matrix")
        moment = datetime(2026, 2, 28, 20, tzinfo=UTC).timestamp()
        db.append_message("evening", "user", "hello", timestamp=moment)
    options = ("--source", "matrix", "--since", "2026-03-01")
    listed = hermes("sessions", "list", "--json", *options, TZ=zone)
    assert [row["id"] for row in json.loads(listed.out)] == ["evening"] * is_listed


def test_archived_conversations_are_hidden_and_can_be_restored(hermes: Hermes) -> None:
    hermes("sessions", "archive", "talk0", "talk1")
    assert ids(hermes) == ["talk2", "talk3"]
    hermes("sessions", "unarchive", "talk0")
    assert ids(hermes) == ["talk0", "talk2", "talk3"]


def test_deleting_asks_for_confirmation_and_can_be_undone(hermes: Hermes) -> None:
    refused = hermes("sessions", "delete", "talk0")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert hermes("sessions", "delete", "talk0", "talk1", "--yes").code == 0
    assert ids(hermes) == ["talk2", "talk3"]
    trash = json.loads(hermes("sessions", "restore", "--json").out)
    assert {row["session_id"] for row in trash} == {"talk0", "talk1"}
    assert "talk0" in hermes("sessions", "restore").out
    assert hermes("sessions", "restore", "talk0").out == "talk0 restored\n"
    assert ids(hermes) == ["talk0", "talk2", "talk3"]
    assert hermes("sessions", "restore", "talk2").code == 2


def test_on_a_terminal_the_question_is_put(hermes: Hermes) -> None:
    for answer, left in (("n", 4), ("y", 3)):
        terminal = spawn("sessions", "delete", "talk0")
        terminal.expect(r"\[y/N\]")
        terminal.sendline(answer)
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert len(ids(hermes)) == left


def test_purging_leaves_nothing(hermes: Hermes) -> None:
    hermes("sessions", "search", "number0")
    result = hermes("sessions", "delete", "talk0", "--purge", "--yes", "--json")
    assert json.loads(result.out) == {"purged": ["talk0"]}
    assert "No matching messages" in hermes("sessions", "search", "number0").out
    assert hermes("sessions", "show", "talk0").code == 2


def test_pruning_shows_before_it_does(hermes: Hermes) -> None:
    hermes("sessions", "pin", "talk3")
    preview = hermes("sessions", "prune", "--older-than", "12w")
    assert "Would move 1 conversation" in preview.out
    assert "talk2" in preview.out
    assert "Kept 1: pinned" in preview.out
    assert len(ids(hermes)) == 4
    result = hermes("sessions", "prune", "--older-than", "90", "--yes", "--json")
    assert json.loads(result.out) == {
        "pruned": ["talk2"], "spared": {"pinned": 1}, "is_dry_run": False,
    }  # fmt: skip
    hermes("sessions", "unpin", "talk3")
    assert "Would move 1 conversation" in hermes("sessions", "prune").out


def test_search_terms_are_found(hermes: Hermes) -> None:
    result = hermes("sessions", "search", "number1")
    assert result.code == 0
    assert "talk1" in result.out
    assert "question number1 about" in result.out
    hits = json.loads(hermes("sessions", "search", "图片", "--json").out)
    assert [hit["session_id"] for hit in hits] == ["talk0", "talk1", "talk2", "talk3"][::-1]
    assert hits[0]["snippet_text"][slice(*hits[0]["offsets"][0])] == "图片"
    narrow = hermes("sessions", "search", "question", "--since", "2w", "--json")
    assert len(json.loads(narrow.out)) == 2
    assert "talk2" in hermes("sessions", "search", "umber2", "--inside").out
    item = hermes("sessions", "search", "question", "--session", "talk3", "--json").out
    assert [hit["session_id"] for hit in json.loads(item)] == ["talk3"]
    assert "No matching messages" in hermes("sessions", "search", "zebra").out


def test_matches_are_highlighted_on_a_terminal() -> None:
    terminal = spawn("sessions", "search", "number1")
    terminal.expect(pexpect.EOF)
    assert "\x1b[1;33mnumber1\x1b[0m" in terminal.before


def test_upkeep_reports_what_it_did(hermes: Hermes, hermes_home: Path) -> None:
    with SessionDB() as db:
        db.set_meta("long", "x" * 300_000)
        db.meta.delete("long")
    sizes = json.loads(hermes("sessions", "optimize", "--json").out)
    assert sizes["bytes_after"] <= sizes["bytes_before"] - 200_000
    (hermes_home / "search.db").write_bytes(b"garbage" * 5000)
    result = json.loads(hermes("sessions", "repair", "--json").out)
    assert result == {"sessions_indexed_anew": 0, "search_is_whole": True}


@pytest.mark.parametrize("action", ["rename x y", "pin x", "delete x --yes", "prune", "optimize"])
def test_without_a_history_there_is_nothing_to_change(
    hermes: Hermes, hermes_home: Path, action: str
) -> None:
    (hermes_home / "state.db").unlink()
    result = hermes("sessions", *action.split())
    assert result.code == 1
    assert "no history" in result.err.lower()
