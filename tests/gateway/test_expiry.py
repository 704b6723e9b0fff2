"""The expiry sweep of conversations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, SessionResetPolicy
from gateway.process.runner import Gateway
from gateway.routing import session_routes
from gateway.session import local_now
from hermes_core.errors import StoreError
from support.gateways import local_message, open_routes, outbox_texts, running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


SLOW = "one two three four five six seven eight"


@pytest.mark.clock
def test_the_watcher_does_not_undo_the_effect_of_a_message(db: SessionDB, tmp_path: Path) -> None:
    policy = SessionResetPolicy("idle", idle_minutes=60)
    routes = open_routes(db, tmp_path, default_reset_policy=policy)
    source = local_message("x", "0").source
    assert source is not None
    old = routes.get_or_create_session(source)
    routes.update_session(old.session_key, updated_at=local_now() - timedelta(hours=3))
    new = routes.get_or_create_session(source)
    routes.finalize_expired(old)
    (route,) = db.routes.all()
    assert route.session_id == new.session_id


@pytest.mark.clock
@pytest.mark.parametrize(("mode", "is_new"), [("idle", True), ("none", False)])
def test_a_conversation_expires_only_by_its_policy(
    db: SessionDB, tmp_path: Path, mode: Any, is_new: bool
) -> None:
    policy = SessionResetPolicy(mode, idle_minutes=60)
    routes = open_routes(db, tmp_path, default_reset_policy=policy)
    source = local_message("x", "0").source
    assert source is not None
    old = routes.get_or_create_session(source)
    routes.update_session(old.session_key, updated_at=local_now() - timedelta(hours=3))
    assert (routes.get_or_create_session(source).session_id != old.session_id) == is_new


@pytest.mark.parametrize(
    ("started_at", "ended_at", "is_stored"),
    [
        ("02:59:51", "02:59:54", False),
        ("02:59:51", "02:59:59", True),  # it took long
        ("02:59:58", "03:00:01", True),  # a daily reset was due meanwhile
        ("02:59:51", "02:04:51", True),  # five minutes; the clock was set back by an hour
    ],
)
def test_the_end_of_a_turn_is_stored_if_expiry_may_depend_on_it(
    db: SessionDB,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started_at: str,
    ended_at: str,
    is_stored: bool,
) -> None:
    routes = open_routes(db, tmp_path)
    source = local_message("x", "0").source
    assert source is not None
    start, end = (datetime.fromisoformat(f"2026-10-25 {at}") for at in (started_at, ended_at))
    monkeypatch.setattr(session_routes, "local_now", lambda: start)
    entry = routes.get_or_create_session(source)
    monkeypatch.setattr(session_routes, "local_now", lambda: end)
    routes.touch(entry.session_key)
    db.engine.flush()
    (route,) = db.routes.all()
    assert route.updated_at == (end if is_stored else start).timestamp()


async def test_the_watcher_survives_a_store_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = object.__new__(Gateway)
    runner._running, checks = True, []

    def fail_check() -> None:
        checks.append(1)
        runner._running = len(checks) < 3
        raise StoreError("locked")

    monkeypatch.setattr(runner, "_end_expired", fail_check)
    monkeypatch.setattr(runner, "_prune", lambda: None)
    monkeypatch.setattr("gateway.process.runner.FIRST_SWEEP_SECONDS", 0)
    await runner._watch_expiry(0)
    assert len(checks) == 3


@pytest.mark.clock
async def test_a_conversation_whose_turn_runs_is_not_over(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.1}}]")
    policy = SessionResetPolicy("idle", idle_minutes=60)
    async with running_gateway(db, tmp_path, GatewayConfig(default_reset_policy=policy)) as service:
        await service.receiver.receive("local", local_message("hi", "m1"))
        await async_wait_until(service.conversations.all_running)
        (entry,) = service._routes.list_sessions()
        entry.updated_at = local_now() - timedelta(hours=3)
        assert not service._routes._is_session_expired(entry)
        await async_wait_until(lambda: outbox_texts(db))
