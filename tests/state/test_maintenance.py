"""Upkeep happens once a day, within what the user allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.clock

DAY = 86_400


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def opened(clock: ManualClock, *, purge_hook: object = None, **settings: object) -> SessionDB:
    return SessionDB(
        clock=clock,
        settings=StoreSettings(**settings),
        is_recovering=False,
        purge_hook=purge_hook,
    )


def test_by_default_nothing_old_is_touched(clock: ManualClock) -> None:
    with opened(clock) as db:
        db.create_session("s", "cli")
        db.end_session("s", "cli_close")
        clock.advance(5000 * DAY)
        assert db.keep_house() == {"skipped": False, "pruned": 0, "purged": 0}
        assert db.get_session("s") is not None


def test_the_trash_is_emptied_after_its_days(clock: ManualClock) -> None:
    with opened(clock, purge_hook=lambda history, one: None, trash_days=30) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        assert db.keep_house()["purged"] == 0
        clock.advance(10)
        assert db.keep_house()["skipped"]
        clock.advance(31 * DAY)
        assert db.keep_house()["purged"] == 1


def test_the_trash_waits_for_somebody_who_can_take_down_its_statistics(
    clock: ManualClock,
) -> None:
    with opened(clock, trash_days=30) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        clock.advance(31 * DAY)
        assert db.keep_house()["purged"] == 0
        assert db.get_session("s") is not None


def test_a_trash_kept_for_ever_is_kept(clock: ManualClock) -> None:
    with opened(clock, trash_days=0) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        clock.advance(5000 * DAY)
        assert db.maybe_auto_prune_and_vacuum()["purged"] == 0


def test_pruning_by_itself_is_possible_when_asked_for(clock: ManualClock) -> None:
    with opened(clock, retention_days=90) as db:
        db.create_session("s", "cli")
        db.end_session("s", "cli_close")
        clock.advance(91 * DAY)
        assert db.keep_house()["pruned"] == 1
        assert [row["session_id"] for row in db.list_trash()] == ["s"]


def test_opening_keeps_house_in_the_background(clock: ManualClock) -> None:
    with opened(clock) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
    clock.advance(31 * DAY)
    with SessionDB(clock=clock, purge_hook=lambda history, one: None) as db:
        assert db.wait_for_index(30)
        assert db.get_session("s") is None


def test_the_users_settings_reach_the_store(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert StoreSettings.of_home() == StoreSettings()
    (hermes_home / "config.yaml").write_text(
        "store: {busy_seconds: 2, trash_days: 5, wal_limit_mb: 8, draft_interval_ms: 20}\n"
        "sessions: {auto_prune: true, retention_days: 7}\n"
    )
    assert StoreSettings.of_home() == StoreSettings(2.0, 5, 8, 20, 7)
    monkeypatch.setenv("HERMES_STORE_TRASH_DAYS", "6")
    assert StoreSettings.of_home().trash_days == 6
    with SessionDB() as db:
        limit = db.engine.write(lambda tx: tx.value("PRAGMA journal_size_limit"))
        assert limit == 8 << 20
        assert db.engine.busy_seconds == 2.0


def test_a_mistake_in_the_settings_does_not_keep_the_history_shut(
    hermes_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (hermes_home / "config.yaml").write_text("store: {busy_seconds: soon}\n")
    with SessionDB() as db:
        db.create_session("s", "cli")
    assert "busy_seconds" in caplog.text
