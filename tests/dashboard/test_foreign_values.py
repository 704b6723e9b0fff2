"""Rows of another program with values of other types, or invalid text, hurt no page.

SQLite stores any value in any column, and hermes-agent writes to the same file.
"""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest

from hermes_dashboard.analytics import analysis
from hermes_dashboard.resources import analytics, overview, search, sessions, transcripts
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from support.data_resources import serve_resources
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

    from support.command_line import Hermes

NOON: Final = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
MARCH: Final = {"since": "2026-03-01", "until": "2026-03-31"}
SESSION_NUMBERS: Final = (
    "started_at", "ended_at", "message_count", "tool_call_count", "input_tokens", "output_tokens",
    "cache_read_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "archived",
    "pinned", "hidden", "last_read_at",
)  # fmt: skip
SESSION_TEXTS: Final = (
    "source", "model", "title", "cwd", "git_repo_root", "user_id", "end_reason", "model_config",
)  # fmt: skip
MESSAGE_NUMBERS: Final = ("timestamp", "token_count", "active", "compacted", "observed")
MESSAGE_TEXTS: Final = ("role", "content", "tool_name", "tool_calls")
OTHER_TYPES: Final = ("'many'", "x'ff00'", "9e999", "-9e999", "CAST(x'ff41' AS TEXT)")
INVALID_TEXTS: Final = ("CAST(x'ff41' AS TEXT)", "x'ff00'", "7")
PAGES: Final = (
    "/api/overview", "/api/analytics/calendar?year=2026", "/api/analytics/choices",
    "/api/sessions", "/api/sessions?state=all", "/api/sessions?sort=started",
    "/api/sessions?sort=messages", "/api/sessions?sort=tokens", "/api/sessions?sort=cost",
    "/api/search?q=hello", "/api/search?q=hello&tools=true",
)  # fmt: skip


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    (hermes_home / "config.yaml").write_text("display:\n  timezone: UTC\n")
    with SessionDB() as db:
        yield db


@pytest.fixture
def client(
    db: SessionDB, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[httpx.Client]:
    monkeypatch.setattr(analysis, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(analysis, "MAX_WAIT_SECONDS", 30.0)
    with serve_resources(
        db, hermes_home, analytics, overview, search, sessions, transcripts
    ) as client:
        yield client


def add_own(db: SessionDB) -> None:
    db.create_session("own", "cli", model="gpt-5", started_at=NOON, is_owned=False)
    db.append_message("own", "user", "please", timestamp=NOON)
    db.append_message("own", "assistant", "done", timestamp=NOON + 30)
    db.update_token_counts("own", input_tokens=100, output_tokens=50, estimated_cost_usd=1.0)


def add_foreign(home: Path, table: str, column: str, value: str) -> None:
    """A conversation of another program, with one odd value."""
    name = f"{table} {column} {value}"
    with contextlib.closing(sqlite3.connect(home / "state.db")) as other:
        other.execute(
            "INSERT INTO sessions (id, source, model, started_at, message_count, input_tokens)"
            " VALUES (?, 'cli', 'gpt-5', ?, 1, 10)",
            (name, NOON),
        )
        other.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES (?, 'user', 'hello', ?)",
            (name, NOON),
        )
        key = "id" if table == "sessions" else "session_id"
        other.execute(f"UPDATE {table} SET {column} = {value} WHERE {key} = ?", (name,))
        other.commit()


def odd_values() -> Iterator[tuple[str, str, str]]:
    columns = {
        "sessions": (SESSION_NUMBERS, SESSION_TEXTS),
        "messages": (MESSAGE_NUMBERS, MESSAGE_TEXTS),
    }
    for table, (numbers, texts) in columns.items():
        for column in numbers:
            yield from ((table, column, value) for value in OTHER_TYPES)
        for column in texts:
            yield from ((table, column, value) for value in INVALID_TEXTS)


def complete_analytics(client: httpx.Client) -> dict[str, Any]:
    result: dict[str, Any] = {}

    def is_complete() -> bool:
        response = client.get("/api/analytics", params=MARCH)
        assert response.status_code == 200, response.text
        result.update(response.json())
        assert result["error"] is None
        return bool(result["is_complete"])

    wait_until(is_complete)
    return result


@pytest.mark.clock
def test_odd_values_of_another_program_hurt_no_page(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    add_own(db)
    odd = list(odd_values())
    for table, column, value in odd:
        add_foreign(hermes_home, table, column, value)
    totals = complete_analytics(client)["totals"]
    # Each odd conversation has the message, the tokens or both; only its odd value is left out.
    assert len(odd) - 30 <= totals["sessions"] <= len(odd) + 1
    assert 100 + 10 * (len(odd) - 30) <= totals["input_tokens"] <= 100 + 10 * len(odd)
    assert totals["output_tokens"] == 50
    assert totals["cost_usd"] == 1.0
    for page in PAGES:
        response = client.get(page)
        assert response.status_code == 200, f"{page}: {response.text}"
        assert response.json().get("error") is None
    assert db.append_message("own", "user", "thanks", timestamp=NOON + 60)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "stats"], ["sessions", "list", "--all", "--limit", "500"], ["usage"],
        ["recap"], ["doctor"], ["sessions", "search", "hello"],
        ["sessions", "search", "hello", "--json"], ["sessions", "search", "hello", "--tools"],
        ["achievements"],
    ],
)  # fmt: skip
def test_odd_values_of_another_program_stop_no_command(
    hermes: Hermes, db: SessionDB, hermes_home: Path, arguments: list[str]
) -> None:
    add_own(db)
    for table, column, value in odd_values():
        add_foreign(hermes_home, table, column, value)
    result = hermes(*arguments)
    assert "Traceback" not in result.err
    assert result.code == 0, result.err


def test_odd_values_of_another_program_hide_no_message(
    hermes: Hermes, db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    for table, column, value in odd_values():
        add_foreign(hermes_home, table, column, value)
        name = quote(f"{table} {column} {value}")
        if table == "messages":
            response = client.get(f"/api/sessions/{name}/messages")
            assert response.status_code == 200, f"{name}: {response.text}"
            assert len(response.json()["items"]) == 1, name
    for column in ("role", "timestamp"):
        for value in OTHER_TYPES:
            add_foreign(hermes_home, "messages", column, f"{value} ")
            result = hermes("sessions", "show", f"messages {column} {value} ")
            assert result.code == 0, result.err
            assert "hello" in result.out


def test_an_export_with_odd_values_of_another_program_can_be_imported(
    hermes: Hermes, db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    add_own(db)
    for table, column, value in odd_values():
        add_foreign(hermes_home, table, column, value)
    for form in ("md", "html"):
        result = hermes("sessions", "export", "--all", "--format", form, str(tmp_path / form))
        assert result.code == 0, result.err
    file = tmp_path / "history.jsonl"
    result = hermes("sessions", "export", "--all", str(file))
    assert result.code == 0, result.err
    result = hermes("sessions", "import", str(file))
    assert result.code == 0, result.err


def test_a_conversation_whose_id_is_not_text_is_listed(
    hermes: Hermes, db: SessionDB, hermes_home: Path
) -> None:
    add_own(db)
    add_foreign(hermes_home, "sessions", "id", "x'ff00'")
    result = hermes("sessions", "list")
    assert result.code == 0, result.err
    assert "own" in result.out


def test_an_estimate_counts_if_the_cost_is_not_a_number(
    hermes: Hermes, db: SessionDB, hermes_home: Path
) -> None:
    add_own(db)
    with contextlib.closing(sqlite3.connect(hermes_home / "state.db")) as other:
        other.execute("UPDATE sessions SET actual_cost_usd = 'unknown', estimated_cost_usd = 2.5")
        other.executemany(
            "INSERT OR REPLACE INTO session_model_usage"
            " (session_id, model, actual_cost_usd, estimated_cost_usd)"
            " VALUES ('own', ?, 'unknown', ?)",
            [("gpt-5", 1.0), ("gpt-5-mini", 1.5)],
        )
        other.commit()
    assert json.loads(hermes("sessions", "stats", "--json").out)["estimated_cost_usd"] == 2.5
    assert [row.cost_usd for row in db.totals.per_model()["own"]] == [1.0, 1.5]
