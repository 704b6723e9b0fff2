"""`hermes store`: check a database and copy the history into it, as a user does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.postgres import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.history() as address:
        yield address


@pytest.fixture
def history(hermes_home: Path) -> None:
    with SessionDB(hermes_home / "state.db") as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "Where is the lighthouse?")


@pytest.mark.usefixtures("history")
def test_a_copied_history_is_used_after_the_setting_is_changed(hermes: Hermes, url: str) -> None:
    copied = json.loads(hermes("store", "copy", "--to", url, "--json").out)
    assert copied["tables"]["messages"] == 1
    assert hermes("config", "set", "store.url", url).code == 0
    (row,) = json.loads(hermes("sessions", "list", "--json").out)
    assert row["id"] == "s1"
    (hit,) = json.loads(hermes("sessions", "search", "lighthouse", "--json").out)
    assert hit["session_id"] == "s1"
    assert json.loads(hermes("store", "check", "--json").out)["sessions"] == 1
    checks = {c["name"]: c for c in json.loads(hermes("doctor", "--json").out)["checks"]}
    assert checks["store"]["status"] == "ok"
    assert "PostgreSQL" in checks["store"]["detail"]


def test_a_server_that_does_not_answer_is_reported(hermes: Hermes, tmp_path: Path) -> None:
    done = hermes("store", "check", f"postgresql://u:secret@/db?host={tmp_path}")
    assert done.code == 1
    assert "cannot reach the history" in done.err
    assert "secret" not in done.out + done.err


def test_a_missing_history_is_not_copied(hermes: Hermes, url: str) -> None:
    done = hermes("store", "copy", "--to", url)
    assert done.code == 2
    assert "No history to copy" in done.err


def test_a_history_in_postgresql_is_backed_up_and_restored_into_a_file(
    hermes: Hermes, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "Where is the lighthouse?")
    archive = tmp_path / "backup.zip"
    assert json.loads(hermes("backup", str(archive), "--json").out)["messages"] == 1
    monkeypatch.delenv("HERMES_STORE_URL")
    target = tmp_path / "restored"
    assert hermes("restore", str(archive), "--to", str(target), "--yes").code == 0
    with SessionDB(target / "state.db") as db:
        assert [m["content"] for m in db.get_messages("s1")] == ["Where is the lighthouse?"]


def test_the_processes_of_a_shared_history_are_listed(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        session = db.create_session("s1", "cli")
        db.leases.acquire(session)
        (node,) = json.loads(hermes("nodes", "--json").out)
        assert node["is_alive"]
        assert (node["turns"], node["platforms"]) == (1, [])
        assert node["name"] in hermes("nodes").out


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@db/hermes", "host=db password=hunter2 dbname=hermes"]
)
def test_a_password_in_the_url_is_refused_and_not_shown(hermes: Hermes, url: str) -> None:
    done = hermes("config", "set", "store.url", url)
    assert done.code != 0
    assert "store.password" in done.err
    assert "hunter2" not in done.err + done.out + hermes("config", "list").out


def test_the_chats_of_a_machine_that_will_not_return_are_released(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        db.nodes.bind("place")
        name = db.identity.host
    assert hermes("nodes", "release", name).out == "1 chat released; any machine answers now.\n"
    assert "No chat is bound" in hermes("nodes", "release", name).err


def test_a_search_that_only_reads_indexes_what_is_pending(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "Where is the lighthouse?")
        assert db.search.progress() == (0, 1)
        assert len(json.loads(hermes("sessions", "search", "lighthouse", "--json").out)) == 1
        assert db.search.progress() is None
        assert json.loads(hermes("sessions", "stats", "--json").out)["database_bytes"] > 100_000
