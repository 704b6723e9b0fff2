"""Files that nodes share through the database: media, and the agent's memory."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from hermes_core.errors import StoreError
from hermes_core.media_store import embed_media
from hermes_core.paths import hermes_home
from hermes_core.paths import hermes_home as hermes_home_path
from hermes_state import SessionDB
from hermes_state.files import AdapterRecords, media_of, path_in_home, shared_files
from hermes_state.portable.backup.writer import BackupWatcher, write_backup
from hermes_state.portable.restore import Restore
from state.conftest import POSTGRES

if TYPE_CHECKING:
    from collections.abc import Callable

    from state.conftest import OpenStore

PNG = b"\x89PNG\r\n\x1a\n picture"

on_postgres = pytest.mark.parametrize("db_path", [POSTGRES], indirect=True)


@pytest.fixture
def move_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Continue on another machine: a home of its own, the same database."""

    def move(name: str) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setenv("HERMES_HOME", str(tmp_path / name))

    return move


def test_a_file_is_stored_once_and_changed_in_a_transaction(open_store: OpenStore) -> None:
    files = open_store().files
    assert files.get("a") is None
    files.add("a", b"one")
    files.add("a", b"other")
    assert files.get("a") == b"one"
    assert files.change("a", lambda before: (before or b"") + b" two") == b"one two"
    assert files.get("a") == b"one two"


@pytest.mark.engines
def test_records_change_together_and_only_by_their_owner(open_store: OpenStore) -> None:
    db = open_store()
    records = AdapterRecords(db.files, "matrix")
    assert records.change("a/", {"owner": b"first", "key": b"1", "other": b"2"})
    assert records.change("a/", {"key": b"3", "other": None}, ("owner", b"first"))
    assert records.change("a/", {"owner": b"second"})
    assert not records.change("a/", {"key": b"4"}, ("owner", b"first"))
    assert not records.change("b/", {"key": b"4"}, ("owner", b"first"))
    assert records.load("a/") == {"owner": b"second", "key": b"3"}
    assert records.load("b/") == {}
    assert AdapterRecords(db.files, "other").load("a/") == {}


@pytest.mark.parametrize("with_secrets", [False, True])
def test_private_keys_are_in_a_backup_with_secrets_only(
    open_store: OpenStore, tmp_path: Path, with_secrets: bool
) -> None:
    db = open_store()
    AdapterRecords(db.files, "matrix").change("a/", {"key": b"a private key"})
    path = tmp_path / "backup.zip"
    write_backup(db.engine, path, with_secrets=with_secrets, watcher=BackupWatcher(None, None))
    with zipfile.ZipFile(path) as archive:
        content = archive.read("state.db")
    assert (b"a private key" in content) == with_secrets


def test_a_restore_keeps_the_present_keys(tmp_path: Path) -> None:
    """Keys of a backup are outdated: with them, messages could not be read."""
    path, home, other = tmp_path / "backup.zip", tmp_path / "home", tmp_path / "other"
    for folder in (home, other):
        folder.mkdir()
    with SessionDB(home / "state.db") as db:
        records = AdapterRecords(db.files, "matrix")
        records.change("a/", {"key": b"old", "gone": b"x"})
        write_backup(db.engine, path, with_secrets=True, watcher=BackupWatcher(None, None))
        records.change("a/", {"key": b"new", "gone": None})
    for folder in (home, other):
        with Restore(path, folder) as restore:
            restore.check()
            restore.put()
    found = []
    for folder in (home, other):
        with SessionDB(folder / "state.db") as db:
            found.append(AdapterRecords(db.files, "matrix").load("a/"))
    assert found == [{"key": b"new"}, {"key": b"old", "gone": b"x"}]


@on_postgres
def test_a_picture_that_arrived_on_one_machine_is_sent_to_a_model_by_another(
    open_store: OpenStore, move_to: Callable[[str], None]
) -> None:
    db = open_store()
    move_to("first")
    media = media_of(db)
    stored = media.keep(PNG, "a.png")
    part = {"type": "image_url", "image_url": {"url": media.reference(stored.path)}}
    move_to("second")
    (embedded,) = embed_media([part], media_of(db))
    assert embedded["image_url"]["url"].startswith("data:image/png;base64,")
    local = media_of(db).local_path(stored.path)
    assert (local.is_file(), local == stored.path) == (True, False)
    assert local.read_bytes() == PNG


@on_postgres
def test_a_file_that_no_machine_has_stays_missing(open_store: OpenStore) -> None:
    path = Path("/elsewhere/media/ab/ab12.png")
    assert media_of(open_store()).local_path(path) == path


@on_postgres
def test_memory_is_the_same_on_all_machines(
    open_store: OpenStore, move_to: Callable[[str], None]
) -> None:
    db = open_store()
    move_to("first")
    local = hermes_home() / "memories" / "MEMORY.md"
    local.parent.mkdir()
    local.write_text("from before the database\n")
    first = AgentMemory(db)
    first.add("memory", "on the first")
    assert first.entries("memory") == ["from before the database", "on the first"]
    move_to("second")
    second = AgentMemory(db)
    assert second.entries("memory") == ["from before the database", "on the first"]
    second.rewrite(
        "memory", second.entries("memory"), ["from before the database", "on the second"]
    )
    move_to("first")
    assert AgentMemory(db).entries("memory")[-1] == "on the second"


@on_postgres
def test_what_is_always_allowed_is_allowed_on_all_machines_until_it_is_revoked(
    open_store: OpenStore, move_to: Callable[[str], None]
) -> None:
    db = open_store()
    move_to("first")
    Grants(hermes_home_path() / GRANTS_FILE).add(["network"])
    first = Grants(hermes_home_path() / GRANTS_FILE, shared=shared_files(db))
    first.add(["run: make"])
    move_to("second")
    second = Grants(hermes_home_path() / GRANTS_FILE, shared=shared_files(db))
    assert second.always() == ["network", "run: make"]
    assert second.revoke("network")
    assert not second.revoke("network")
    assert first.always() == ["run: make"]


def test_a_name_does_not_lead_out_of_the_home(hermes_home: Path) -> None:
    assert path_in_home("media/ab12.png") == hermes_home / "media" / "ab" / "ab12.png"
    with pytest.raises(StoreError):
        path_in_home("memory/../../etc/passwd")
