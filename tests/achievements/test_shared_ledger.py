"""Machines that share a history in PostgreSQL: one ledger, one scan at a time, unlocks once."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from achievements.history_builder import HistoryBuilder
from hermes_achievements.scan import scanner as scanner_module
from hermes_achievements.scan.scanner import Scanner
from hermes_achievements.service import AchievementService, scan_from_survey
from hermes_conversation import achievements
from hermes_core.errors import ScanBusyError, ScanError, StoreError
from hermes_core.history_rows import LedgerEntry
from hermes_core.paths import state_db_path
from hermes_state.engine.postgres import database
from hermes_state.ledger.file import open_ledger
from hermes_state.ledger.history import open_history
from support.command_line import run_hermes
from support.plugin_folders import make_plugin
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.shared import SharedLedger
    from support.postgres import PostgresServer

    MakeHome = Callable[[str], Path]

FILE, DATABASE = "file", "postgresql"
# Appends every unlock to a file that all machines of the test share.
ANNOUNCED_PLUGIN = """
import os, pathlib
def announce(unlocks, **_fields):
    with pathlib.Path(os.environ["ANNOUNCED"]).open("a") as file:
        file.write("".join(f"{each['id']} {each['tier']}\\n" for each in unlocks))
def register(ctx):
    ctx.register_hook("on_achievement_unlocked", announce)
"""


@pytest.fixture
def url(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The history of every home of this test is in one database."""
    with postgres.history() as address:
        monkeypatch.setenv("HERMES_STORE_URL", address)
        yield address


@pytest.fixture
def ledger(
    request: pytest.FixtureRequest, hermes_home: Path
) -> Iterator[LedgerFile | SharedLedger]:
    if request.param == DATABASE:
        request.getfixturevalue("url")
    with closing(open_ledger(hermes_home / "state.db")) as result:
        yield result


@pytest.fixture
def make_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHome:
    """Homes of machines, each with the plugin that writes down unlocks."""
    monkeypatch.setenv("ANNOUNCED", str(tmp_path / "announced"))

    def make(name: str) -> Path:
        home = tmp_path / name
        home.mkdir()
        make_plugin(home, "announced", ANNOUNCED_PLUGIN)
        (home / "config.yaml").write_text("plugins:\n  enabled: [announced]\n")
        return home

    return make


def _rescan(home: Path) -> dict[str, Any]:
    done = run_hermes("achievements", "rescan", "--json", HERMES_HOME=str(home))
    assert done.code == 0, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


def _entry(session_id: str, *days: str, facts: bytes = b"facts") -> LedgerEntry:
    return LedgerEntry(session_id, 5.0, days, facts, b"sum of " + session_id.encode())


@pytest.mark.parametrize("ledger", [FILE, DATABASE], indirect=True)
def test_a_ledger_is_the_same_in_a_file_and_in_a_database(
    ledger: LedgerFile | SharedLedger,
) -> None:
    with ledger.try_lock() as is_locked:
        assert is_locked
        ledger.save([_entry("a", "2026-01-01", "2026-01-02"), _entry("b")], {"n": b"\0\xff"}, 1)
        ledger.save([_entry("b", "2026-01-02", facts=b"longer facts")], {"m": b"1", "n": None}, 2)
        assert ledger.notes() == {"m": b"1"}
        assert sorted(ledger.session_ids()) == ["a", "b"]
        assert ledger.session_ids(1) == ["a"]
        assert ledger.count() == 2
        assert ledger.recorded_facts(["b", "c"]) == {"b": b"longer facts"}
        assert sorted(ledger.sessions_on_day("2026-01-02")) == ["a", "b"]
        assert ledger.sessions_on_day("2026-01-03") == []
        assert list(ledger.contributions(["b"])) == [("b", 5.0, b"sum of b")]
        assert [item[0] for item in ledger.contributions()] == ["a", "b"]
        assert ledger.facts_versions() == {"a": (5, 8, 1, 5.0), "b": (12, 8, 2, 5.0)}
        assert ledger.size() > 0
        ledger.clear()
        assert (ledger.notes(), ledger.count()) == ({}, 0)


@pytest.mark.parametrize("ledger", [FILE, DATABASE], indirect=True)
def test_one_scanner_holds_the_ledger(ledger: LedgerFile | SharedLedger) -> None:
    with closing(open_ledger(state_db_path())) as other:
        with ledger.try_lock() as is_locked, other.try_lock() as is_locked_twice:
            assert (is_locked, is_locked_twice) == (True, False)
        with other.try_lock() as is_locked:
            assert is_locked


@pytest.mark.usefixtures("url")
def test_a_machine_that_joins_reads_no_message_again(make_home: MakeHome) -> None:
    builder = HistoryBuilder().start("s1")
    for number in range(30):
        builder.send(f"message {number}")
    builder.close()
    first, second = _rescan(make_home("first")), _rescan(make_home("second"))
    assert (first["mode"], first["sessions_rescanned"]) == ("full", 1)
    assert first["new"] != []
    assert (second["mode"], second["sessions_rescanned"], second["sessions_reused"]) == (
        "incremental", 0, 1,
    )  # fmt: skip
    assert second["new"] == []
    assert second["unlocked_count"] == first["unlocked_count"] > 0


@pytest.mark.parametrize("ledger", [FILE, DATABASE], indirect=True)
@pytest.mark.usefixtures("ledger")
def test_a_message_with_a_picture_counts_the_same_in_a_file_and_in_a_database() -> None:
    builder = HistoryBuilder().start("s1")
    builder.send("12345")
    builder.db.append_message("s1", "user", [{"type": "text", "text": "See the picture."}])
    assert builder.total("characters_typed") == 5
    builder.close()


@pytest.mark.usefixtures("url")
def test_a_machine_that_joins_shows_achievements_and_a_recap(
    make_home: MakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    builder.close()
    _rescan(make_home("first"))
    second = make_home("second")
    monkeypatch.setenv("HERMES_HOME", str(second))
    snapshot = achievements.service().current()
    assert snapshot is not None
    assert snapshot["unlocked_count"] > 0
    recap = run_hermes("recap", "--year", "2026", "--json")
    assert recap.code == 0, recap.err
    assert not (second / "statistics.db").exists()
    assert not (second / "plugins" / "hermes-achievements").exists()


@pytest.mark.usefixtures("url")
def test_unlocks_are_announced_once_by_machines_that_scan_at_the_same_time(
    make_home: MakeHome, tmp_path: Path
) -> None:
    homes = [make_home(name) for name in ("first", "second", "third")]
    builder = HistoryBuilder().start("s1")
    with ThreadPoolExecutor(len(homes)) as pool:
        for _ in range(3):
            for _ in range(60):
                builder.send()
                builder.run_shell("make test")
            results = list(pool.map(_rescan, homes))
            assert {result["unlocked_count"] for result in results}
    builder.close()
    _rescan(homes[0])
    announced = Counter((tmp_path / "announced").read_text().splitlines())
    assert announced
    assert [line for line, count in announced.items() if count > 1] == []


@pytest.mark.usefixtures("url")
def test_one_of_two_processes_that_found_the_same_unlock_announces_it() -> None:
    builder = HistoryBuilder().start("s1")
    announced: list[str] = []
    both_have_scanned = threading.Barrier(2)

    def record_and_announce() -> None:
        service = AchievementService(
            achievements.folder_path,
            announce=lambda item: announced.extend(each["id"] for each in item["unlocks"]),
            shared=achievements.shared_storage,
        )
        record = service.records.record

        def record_together(*arguments: Any) -> Any:
            both_have_scanned.wait(PATIENCE_SECONDS)
            return record(*arguments)

        service.records.record = record_together  # type: ignore[method-assign]
        service.compute(scan_from_survey(found))

    builder.send()
    found = builder.survey()
    threads = [threading.Thread(target=record_and_announce) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    builder.close()
    assert sorted(announced) == sorted(set(announced)) != []


@pytest.mark.usefixtures("url")
def test_a_refresh_without_new_messages_writes_nothing() -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    builder.survey()
    with closing(open_history(str(state_db_path()))) as history:
        version = history.version()
        builder.survey()
        notes = _notes()
        builder.db.set_meta("unrelated", "1")  # takes a number of a transaction
        builder.survey()
        assert _notes() == notes
        assert history.version() == version
        builder.send()
        assert history.version() != version
    builder.close()


def _notes() -> dict[str, bytes]:
    with closing(open_ledger(state_db_path())) as ledger:
        return ledger.notes()


def test_a_history_restored_on_another_server_is_followed(url: str) -> None:
    import psycopg  # noqa: PLC0415 - as `pg_dump` restores it

    builder = HistoryBuilder().start("s1")
    builder.send()
    builder.start("s2").send()
    with psycopg.connect(url, autocommit=True) as connection:
        # The numbers of transactions of a server that had more of them.
        connection.execute("UPDATE hermes_change SET sequence = 1000000000000 + sequence")
    builder.survey()
    assert builder.survey().rescanned == 0
    with closing(open_history(str(state_db_path()))) as history:
        version = history.version()
        builder.send()
        assert history.version() != version
    assert builder.survey().rescanned == 1
    builder.close()


@pytest.mark.usefixtures("url")
def test_a_holder_that_stopped_working_loses_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_STORE_NODE_TIMEOUT_SECONDS", "2")
    monkeypatch.setattr(database, "_beat", lambda *_arguments: None)  # as if it were frozen
    with (
        closing(open_ledger(state_db_path())) as frozen,
        closing(open_ledger(state_db_path())) as other,
    ):
        with frozen.try_lock() as is_locked:
            assert is_locked
            wait_until(lambda: _takes(other), what="the lock of the frozen process")
            with pytest.raises(StoreError):
                frozen.save([_entry("late")], {}, 1)
        assert other.count() == 0


def _takes(ledger: LedgerFile | SharedLedger) -> bool:
    with ledger.try_lock() as is_locked:
        return is_locked


@pytest.mark.usefixtures("url")
def test_a_holder_that_works_keeps_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_STORE_NODE_TIMEOUT_SECONDS", "2")
    beats: list[float] = []
    original = database.PostgresConnection.execute

    def count(self: Any, sql: str, *arguments: Any) -> Any:
        if sql == "SELECT 1":
            beats.append(1)
        return original(self, sql, *arguments)

    monkeypatch.setattr(database.PostgresConnection, "execute", count)
    with (
        closing(open_ledger(state_db_path())) as working,
        closing(open_ledger(state_db_path())) as other,
        working.try_lock(),
    ):
        wait_until(lambda: len(beats) > 6 or _takes(other), what="some beats")
        assert not _takes(other)
        working.save([_entry("a")], {}, 1)


@pytest.mark.usefixtures("url")
def test_an_older_release_does_not_rebuild_the_ledger_of_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    with monkeypatch.context() as newer:
        newer.setattr(scanner_module, "FACT_RULES", 99)
        builder.survey()
    notes = _notes()
    with pytest.raises(ScanError, match="newer release"):
        builder.survey()
    builder.close()
    assert _notes() == notes


@pytest.mark.usefixtures("url")
def test_a_scan_elsewhere_is_followed(hermes_home: Path) -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    with closing(open_ledger(state_db_path())) as elsewhere, elsewhere.try_lock():
        elsewhere.save([], {"generation": b"1"}, 1)
        service = achievements.service()
        assert service.run(achievements.source(), service.compute) is None
        assert service.status.facts().waiting_for is not None
        service.close()
        with closing(open_ledger(state_db_path())) as ledger, pytest.raises(ScanBusyError):
            Scanner(lambda: open_history(str(hermes_home / "state.db")), ledger, "UTC").refresh()
    builder.close()


@pytest.mark.usefixtures("url")
def test_the_zone_of_days_is_that_of_the_first_machine(
    make_home: MakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    builder.close()
    for name, zone in (("first", "Pacific/Niue"), ("second", "Asia/Tokyo")):
        monkeypatch.setenv("HERMES_HOME", str(make_home(name)))
        monkeypatch.setenv("TZ", zone)
        service = achievements.service()
        assert service.run(achievements.source(), service.compute) is not None
        service.close()
        assert achievements.source().zone == "Pacific/Niue"


def test_lost_tables_of_the_ledger_are_made_again(url: str) -> None:
    import psycopg  # noqa: PLC0415 - the server's own view

    builder = HistoryBuilder().start("s1")
    builder.send()
    before = builder.values()
    builder.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE hermes_ledger_session, hermes_ledger_note")
    builder = HistoryBuilder()
    assert builder.values() == before
    builder.close()


@pytest.mark.usefixtures("url")
def test_resetting_forgets_unlocks_on_all_machines(
    make_home: MakeHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = HistoryBuilder().start("s1")
    builder.send()
    builder.close()
    _rescan(make_home("first"))
    monkeypatch.setenv("HERMES_HOME", str(make_home("second")))
    service = achievements.service()
    assert service.records.state()["unlocks"]
    service.reset()
    shutil.rmtree(make_home("third"))
    assert service.records.state()["unlocks"] == {}
    assert service.current() is None
