"""`hermes store`: check a database and copy the history into it, as a user does."""

from __future__ import annotations

import json
import os
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gateway import status
from hermes_agent.memory.facts import AgentMemory
from hermes_core import media_store
from hermes_core.clock import SystemClock
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from hermes_state.engine.engine import open_database
from hermes_state.portable import store_copy
from hermes_state.portable.store_copy import StoreCopy
from support.postgres import running_postgres
from support.waiting import wait_until

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


@pytest.fixture
def protected() -> Iterator[str]:
    """The URL of a database that needs a password, which it does not have."""
    with running_postgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE hermes PASSWORD 'secret word'")
            (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        yield server.url


def test_the_password_of_the_setting_is_used(hermes: Hermes, protected: str) -> None:
    advice = "hermes config set store.password"
    wait_until(lambda: advice in hermes("store", "check", protected).err)
    ConfigFile.of_home().set("store.password", "secret word")
    assert "0 sessions" in hermes("store", "check", protected).out
    assert hermes("config", "set", "store.url", protected).code == 0
    assert hermes("chat", "-q", "hello").err.count("password") == 0


@pytest.mark.parametrize("value", ["mysql://h/d", "/tmp/foo.db", "garbage", "service="])
def test_what_is_no_database_is_refused_when_it_is_set(hermes: Hermes, value: str) -> None:
    done = hermes("config", "set", "store.url", value)
    assert done.code != 0
    assert "postgresql://USER@HOST/DATABASE" in done.err


def test_a_history_in_postgresql_is_optimized(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "Where is the lighthouse?")
        assert db.search.progress() == (0, 1)
        done = hermes("sessions", "optimize")
        assert (done.code, "error" in done.err) == (0, False)
        assert db.search.progress() is None


@pytest.mark.usefixtures("history")
def test_a_folder_is_no_target_and_keeps_its_rights(hermes: Hermes, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    for target in (str(folder), "", "mysql://x/y"):
        assert hermes("store", "copy", "--to", target).code != 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.usefixtures("history")
def test_a_database_with_tables_of_another_program_is_refused(hermes: Hermes, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE sessions (x int)")
    assert "tables of another program" in hermes("store", "copy", "--to", url).err


@pytest.mark.usefixtures("history")
def test_files_are_copied_again_and_come_back(
    hermes: Hermes, url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with SessionDB() as db:
        AgentMemory(db).add("memory", "apples")
    media_store.of_home().keep(b"picture", "a.png")
    for _ in range(2):  # the second time, the files are there already
        copied = hermes("store", "copy", "--to", url, "--json")
        assert json.loads(copied.out)["files"] == 2, copied.err
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        AgentMemory(db).add("memory", "plums")
    # As if another machine had written it.
    (hermes_home / "memories" / "MEMORY.md").write_text("apples\n")
    archive = tmp_path / "backup.zip"
    assert hermes("backup", str(archive)).code == 0
    assert hermes("store", "copy", "--to", str(tmp_path / "new.db")).code == 0
    assert (hermes_home / "memories" / "MEMORY.md").read_text() == "apples\n§\nplums\n"
    monkeypatch.delenv("HERMES_STORE_URL")
    restored = tmp_path / "restored"
    assert hermes("restore", str(archive), "--to", str(restored), "--yes").code == 0
    assert "plums" in (restored / "memories" / "MEMORY.md").read_text()


@pytest.mark.usefixtures("history")
def test_unlocks_survive_copies_in_both_directions_and_a_backup(
    hermes: Hermes, url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unlocks = hermes_home / "plugins" / "hermes-achievements" / "state.json"
    assert hermes("achievements", "rescan").code == 0
    before = json.loads(unlocks.read_text())
    assert before["unlocks"]
    before["unlocks"]["first-words"]["tiers"]["of-old"] = {
        "at": 5.0, "session_id": "purged", "message_id": 1,
    }  # fmt: skip
    unlocks.write_text(json.dumps(before))
    copied = hermes("store", "copy", "--to", url, "--json")
    assert json.loads(copied.out)["files"] == 1, copied.err
    unlocks.unlink()
    monkeypatch.setenv("HERMES_STORE_URL", url)
    scanned = json.loads(hermes("achievements", "rescan", "--json").out)
    assert scanned["new"] == []
    archive = tmp_path / "backup.zip"
    assert hermes("backup", str(archive)).code == 0
    assert hermes("store", "copy", "--to", str(tmp_path / "new.db")).code == 0
    assert _tiers(unlocks) == _tiers_of(before)
    monkeypatch.delenv("HERMES_STORE_URL")
    restored = tmp_path / "restored"
    assert hermes("restore", str(archive), "--to", str(restored), "--yes").code == 0
    assert _tiers(restored / "plugins" / "hermes-achievements" / "state.json") == _tiers_of(before)


def _tiers(path: Path) -> dict[str, list[str]]:
    return _tiers_of(json.loads(path.read_text()))


def _tiers_of(state: dict[str, Any]) -> dict[str, list[str]]:
    return {name: sorted(unlock["tiers"]) for name, unlock in state["unlocks"].items()}


@pytest.mark.usefixtures("history")
def test_a_copy_that_was_interrupted_takes_over_later_changes(
    hermes: Hermes, url: str, hermes_home: Path
) -> None:
    assert hermes("store", "copy", "--to", url).code == 0
    with SessionDB(hermes_home / "state.db") as db:
        db.append_message("s1", "assistant", "Over there.")
        db.set_session_title("s1", "Lighthouses")
    done = hermes("store", "copy", "--to", url)
    assert done.code == 0, done.err
    assert hermes("config", "set", "store.url", url).code == 0
    assert "Lighthouses" in hermes("sessions", "list").out


def test_a_copy_is_not_made_while_another_machine_answers(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        db.nodes.join("attic", {})
        done = hermes("store", "copy", "--to", str(tmp_path / "new.db"))
        assert "Gateways are running on attic" in done.err
        db.nodes.leave()
    assert hermes("store", "copy", "--to", str(tmp_path / "new.db")).code == 0


def test_releasing_chats_creates_no_history(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes("nodes", "release", "attic").code != 0
    assert not (hermes_home / "state.db").exists()


def test_the_gateways_status_is_shown_while_the_server_is_down(
    hermes: Hermes, hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_STORE_URL", f"postgresql:///db?host={tmp_path}")
    status.write_runtime_status("degraded", platforms={"local": {"state": "connected"}})
    with status.hold_lock():
        shown = hermes("gateway", "status")
        as_json = hermes("gateway", "status", "--json")
    assert f"PID {os.getpid()}" in shown.out
    assert "degraded" in shown.out
    assert "local  connected" in shown.out
    assert "cannot reach the history" in shown.err
    facts = json.loads(as_json.out)
    assert (facts["pid"], facts["gateway_state"]) == (os.getpid(), "degraded")
    assert (facts["waiting"], facts["asking"]) == (None, None)
    assert "cannot reach the history" in facts["error"]
    assert (shown.code, as_json.code) == (1, 1)


class Interrupted(Exception):  # noqa: N818 - not an error
    """The copy was interrupted."""


def _interrupt_copy(path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the history at *path* until some of its messages are in the other database."""
    monkeypatch.setattr(store_copy, "SLICE_ROWS", 1)

    def interrupt(_step: str, done: int, _total: int) -> None:
        if done > 2:
            raise Interrupted

    with (
        SessionDB(path) as db,
        closing(open_database(place, read_only=False, may_be_unfinished=True)) as target,
    ):
        writer = target.open_writer(SystemClock())
        try:
            with pytest.raises(Interrupted):
                StoreCopy(db.engine.database, target, writer).run(interrupt)
        finally:
            writer.close()


@pytest.mark.parametrize("kind", ["database", "file"])
def test_an_unfinished_copy_is_not_used(
    hermes: Hermes, url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    original = hermes_home / "original.db"
    with SessionDB(original) as db:
        db.create_session("s1", "cli")
        for number in range(5):
            db.append_message("s1", "user", f"message {number}")
    place = url if kind == "database" else str(hermes_home / "state.db")
    _interrupt_copy(original, place, monkeypatch)
    if kind == "database":
        monkeypatch.setenv("HERMES_STORE_URL", url)
    for command in (("sessions", "list"), ("sessions", "rename", "s1", "title"), ("doctor",)):
        done = hermes(*command)
        assert done.code != 0, command
        assert "unfinished copy" in done.err + done.out, command
        assert "hermes store copy --to" in done.err + done.out
    checked = hermes("store", "check", place)
    assert "unfinished copy" in checked.out + checked.err
    monkeypatch.delenv("HERMES_STORE_URL", raising=False)
    _finish_copy(original, place)
    if kind == "database":
        monkeypatch.setenv("HERMES_STORE_URL", url)
    assert hermes("sessions", "list").code == 0


def _finish_copy(path: Path, place: str) -> None:
    with (
        SessionDB(path) as db,
        closing(open_database(place, read_only=False, may_be_unfinished=True)) as target,
    ):
        writer = target.open_writer(SystemClock())
        StoreCopy(db.engine.database, target, writer).run(lambda *_progress: None)
        writer.close()


@pytest.mark.usefixtures("history")
def test_rules_of_permissions_survive_copies_in_both_directions(
    hermes: Hermes, url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def rules() -> list[str]:
        result: list[str] = json.loads(hermes("permissions", "list", "--json").out)["rules"]
        return result

    hermes("permissions", "add", "run: ls *")
    assert hermes("store", "copy", "--to", url).code == 0
    (hermes_home / "approvals.json").unlink()  # as on another machine
    monkeypatch.setenv("HERMES_STORE_URL", url)
    assert rules() == ["run: ls *"]
    hermes("permissions", "add", "network")
    archive = tmp_path / "backup.zip"
    assert hermes("backup", str(archive)).code == 0
    assert hermes("store", "copy", "--to", str(tmp_path / "new.db")).code == 0
    monkeypatch.delenv("HERMES_STORE_URL")
    assert rules() == ["network", "run: ls *"]
    restored = tmp_path / "restored"
    assert hermes("restore", str(archive), "--to", str(restored), "--yes").code == 0
    assert not (restored / "approvals.json").exists()  # a backup grants nothing by itself
    options = ("--to", str(tmp_path / "accepted"), "--accept-settings")
    assert hermes("restore", str(archive), *options).code == 0
    accepted = json.loads((tmp_path / "accepted" / "approvals.json").read_text())
    assert accepted == json.loads((hermes_home / "approvals.json").read_text())


@pytest.mark.usefixtures("history")
def test_a_copy_names_the_files_that_stay_on_this_machine(
    hermes: Hermes, url: str, hermes_home: Path
) -> None:
    (hermes_home / "skills" / "tea").mkdir(parents=True)
    (hermes_home / "skills" / "tea" / "SKILL.md").write_text("How to make tea.")
    hermes("permissions", "add", "run: ls *")
    copied = hermes("store", "copy", "--to", url)
    assert "Copied 1 file:" in copied.out
    assert "rules of `hermes permissions`" in copied.out
    assert "Not copied: skills." in copied.err


@pytest.mark.usefixtures("history")
def test_a_history_is_not_copied_onto_itself(
    hermes: Hermes, url: str, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = hermes_home / "link.db"
    link.symlink_to(hermes_home / "state.db")
    for target in (hermes_home / "state.db", link):
        done = hermes("store", "copy", "--to", str(target))
        assert done.code == 2
        assert "is the history that would be copied" in done.err
    assert hermes("store", "copy", "--to", url).code == 0
    monkeypatch.setenv("HERMES_STORE_URL", url)
    done = hermes("store", "copy", "--to", url)
    assert (done.code, "is the history that would be copied" in done.err) == (2, True), done.err


def test_a_missing_history_is_named_with_the_next_step(hermes: Hermes, hermes_home: Path) -> None:
    done = hermes("store", "check")
    assert done.code != 0
    assert f"{hermes_home / 'state.db'} does not exist yet" in done.err
    assert "hermes store check URL" in done.err


def test_stopping_a_gateway_of_several_says_what_continues(
    hermes: Hermes, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hermes("gateway", "stop").out == "The gateway is not running.\n"
    monkeypatch.setenv("HERMES_STORE_URL", url)
    stopped = hermes("gateway", "stop")
    assert "not running on this machine" in stopped.out
    assert "hermes nodes" in stopped.out + stopped.err
