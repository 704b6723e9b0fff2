"""Daily house-keeping follows the user's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from hermes_state.sessions.retention import HouseKeeping
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.clock

DAY = 86_400


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def open_store(clock: ManualClock, *, purge_hook: object = None, **settings: object) -> SessionDB:
    return SessionDB(
        clock=clock,
        settings=StoreSettings(**settings),
        is_recovering=False,
        purge_hook=purge_hook,
    )


def test_by_default_old_sessions_are_kept(clock: ManualClock) -> None:
    with open_store(clock) as db:
        db.create_session("s", "cli")
        db.end_session("s", "cli_close")
        clock.advance(5000 * DAY)
        assert db.retention.keep_house() == HouseKeeping()
        assert db.get_session("s") is not None


def test_trashed_sessions_are_purged_after_the_configured_days(clock: ManualClock) -> None:
    with open_store(clock, purge_hook=lambda history, session_id: None, trash_days=30) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        assert db.retention.keep_house().purged == 0
        clock.advance(10)
        assert db.retention.keep_house().is_skipped
        clock.advance(31 * DAY)
        assert db.retention.keep_house().purged == 1


def test_nothing_is_purged_without_a_purge_hook(
    clock: ManualClock,
) -> None:
    with open_store(clock, trash_days=30) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        clock.advance(31 * DAY)
        assert db.retention.keep_house().purged == 0
        assert db.get_session("s") is not None


def test_zero_trash_days_disable_purging(clock: ManualClock) -> None:
    with open_store(clock, trash_days=0) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
        clock.advance(5000 * DAY)
        assert db.maybe_auto_prune_and_vacuum()["purged"] == 0


def test_automatic_pruning_can_be_enabled(clock: ManualClock) -> None:
    with open_store(clock, retention_days=90) as db:
        db.create_session("s", "cli")
        db.end_session("s", "cli_close")
        clock.advance(91 * DAY)
        assert db.retention.keep_house().pruned == 1
        assert [row.session_id for row in db.trash.content()] == ["s"]


def test_opening_runs_house_keeping_in_the_background(clock: ManualClock) -> None:
    with open_store(clock) as db:
        db.create_session("s", "cli")
        db.delete_session("s")
    clock.advance(31 * DAY)
    with SessionDB(clock=clock, purge_hook=lambda history, session_id: None) as db:
        assert db.wait_for_index(30)
        assert db.get_session("s") is None


def test_the_store_uses_the_users_settings(
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
        assert db.engine.settings.busy_seconds == 2.0


def test_an_invalid_setting_does_not_prevent_opening(
    hermes_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (hermes_home / "config.yaml").write_text("store: {busy_seconds: soon}\n")
    with SessionDB() as db:
        db.create_session("s", "cli")
    assert "busy_seconds" in caplog.text
