"""Routes and their conversations: atomic changes, and the exported file."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, SessionResetPolicy
from gateway.outbound import direct_send
from gateway.session import (
    SessionEntry,
    SessionSource,
    SessionStore,
    build_session_key,
    local_now,
)
from hermes_core.errors import StoreError
from support.gateways import local_message, open_routes

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


pytestmark = pytest.mark.clock

GOOD = {
    "session_id": "20260101_120000_abcdef01",
    "created_at": "2026-01-01T12:00:00",
    "updated_at": "2026-01-02T12:00:00",
    "platform": "telegram",
    "chat_type": "dm",
    "memory_flushed": True,
}

KEY = "agent:main:telegram:dm:7"


def source(**fields: Any) -> SessionSource:
    return SessionSource(Platform.TELEGRAM, **{"chat_id": "42", "user_id": "u1", **fields})


def reopen_routes(routes: SessionStore, db: SessionDB) -> SessionStore:
    store = SessionStore(routes.sessions_dir, routes.config)
    store._db = db
    return store


def kinds(db: SessionDB, session_id: str) -> list[str]:
    return [boundary.kind for boundary in reversed(db.boundaries.recent(session_id))]


def test_a_route_keeps_its_conversation_across_processes(
    routes: SessionStore, db: SessionDB
) -> None:
    first = routes.get_or_create_session(source())
    assert routes.get_or_create_session(source()).session_id == first.session_id
    again = reopen_routes(routes, db).get_or_create_session(source())
    assert again.session_id == first.session_id
    row = db.get_session(first.session_id)
    assert row is not None
    assert (row["source"], row["session_key"]) == ("telegram", "agent:main:telegram:dm:42")


def test_a_new_conversation_ends_the_old_one_atomically(
    routes: SessionStore, db: SessionDB
) -> None:
    old = routes.get_or_create_session(source())
    new = routes.reset_session(old.session_key)
    assert new is not None
    assert new.session_id != old.session_id
    assert new.prev_session_id == old.session_id
    row = db.get_session(old.session_id)
    assert row is not None
    assert row["end_reason"] == "session_reset"
    ends = db.boundaries.recent(old.session_id)
    assert [(item.kind, item.new_session_id, item.is_final) for item in ends] == [
        ("new", new.session_id, 1)
    ]
    assert routes.reset_session("agent:main:telegram:dm:nobody") is None


def test_resuming_another_conversation_announces_both(routes: SessionStore, db: SessionDB) -> None:
    old = routes.get_or_create_session(source())
    new = routes.reset_session(old.session_key)
    assert new is not None
    back = routes.switch_session(old.session_key, old.session_id)
    assert back is not None
    assert back.session_id == old.session_id
    assert kinds(db, new.session_id) == ["resume"]
    assert kinds(db, old.session_id) == ["new", "resume"]
    row = db.get_session(old.session_id)
    assert row is not None
    assert row["ended_at"] is None


def test_two_routes_with_the_same_text_have_separate_conversations(
    routes: SessionStore, db: SessionDB
) -> None:
    thread = source(chat_type="group", chat_id="g", thread_id="7", user_id=None)
    user = source(chat_type="group", chat_id="g", user_id="7")
    assert build_session_key(thread) == build_session_key(user)
    ids = {routes.get_or_create_session(item).session_id for item in (thread, user, thread)}
    assert len(ids) == 2
    again = reopen_routes(routes, db)
    assert {again.get_or_create_session(item).session_id for item in (user, thread)} == ids


def test_the_file_is_not_written_for_every_message(routes: SessionStore, tmp_path: Path) -> None:
    for _ in range(3):
        routes.get_or_create_session(source())
    assert not (tmp_path / "sessions.json").exists()
    assert routes.export_if_due()
    assert not routes.export_if_due()
    content = json.loads((tmp_path / "sessions.json").read_text())
    assert next(iter(content)) == "_README"
    assert "agent:main:telegram:dm:42" in content


def idle(minutes: int) -> GatewayConfig:
    return GatewayConfig(default_reset_policy=SessionResetPolicy("idle", idle_minutes=minutes))


def set_age(routes: SessionStore, entry: SessionEntry, **ago: float) -> None:
    routes.update_session(entry.session_key, updated_at=local_now() - timedelta(**ago))


def test_no_conversation_is_reset_automatically_by_default(routes: SessionStore) -> None:
    entry = routes.get_or_create_session(source())
    set_age(routes, entry, days=400)
    assert routes.get_or_create_session(source()).session_id == entry.session_id


def test_after_a_pause_the_policy_starts_a_new_conversation_and_gives_the_reason(
    routes: SessionStore, db: SessionDB
) -> None:
    routes.config = idle(30)
    old = routes.get_or_create_session(source())
    db.append_message(old.session_id, "user", "hi")
    set_age(routes, old, hours=1)
    new = routes.get_or_create_session(source())
    assert new.session_id != old.session_id
    assert (new.was_auto_reset, new.auto_reset_reason) == (True, "idle")
    assert new.reset_had_activity
    assert kinds(db, old.session_id) == ["idle"]


def test_an_expired_conversation_is_ended_once_also_after_a_downtime(
    routes: SessionStore, db: SessionDB
) -> None:
    routes.config = idle(30)
    old = routes.get_or_create_session(source())
    set_age(routes, old, hours=1)
    again = reopen_routes(routes, db)
    entry = again.get(old.session_key)
    assert entry is not None
    assert again._is_session_expired(entry)
    again.finalize_expired(entry)
    again.finalize_expired(entry)
    assert kinds(db, old.session_id) == ["expiry"]
    new = again.get_or_create_session(source())  # the next message: no second end
    assert new.session_id != old.session_id
    assert kinds(db, old.session_id) == ["expiry"]
    assert kinds(db, new.session_id) == ["idle"]


def test_running_or_unknown_conversations_are_neither_reset_nor_dropped(
    db: SessionDB, tmp_path: Path
) -> None:
    def unknown(_key: str) -> bool:
        raise OSError("cannot look")

    for check in (lambda _key: True, unknown):
        routes = SessionStore(tmp_path, idle(1), check)
        routes._db = db
        entry = routes.get_or_create_session(source())
        set_age(routes, entry, days=400)
        assert routes.get_or_create_session(source()).session_id == entry.session_id
        set_age(routes, entry, days=400)
        assert routes.prune_old_entries(90) == 0


def test_a_dropped_route_leaves_an_ended_conversation_in_the_history(
    routes: SessionStore, db: SessionDB
) -> None:
    entry = routes.get_or_create_session(source())
    db.append_message(entry.session_id, "user", "the roses")
    set_age(routes, entry, days=100)
    assert routes.prune_old_entries(90) == 1
    row = db.get_session(entry.session_id)
    assert row is not None
    assert row["end_reason"] == "pruned"
    assert kinds(db, entry.session_id) == ["prune"]
    assert [item["id"] for item in db.list_sessions_rich()] == [entry.session_id]
    assert db.routes.count() == 0
    assert routes.get_or_create_session(source()).session_id != entry.session_id


def test_a_suspended_conversation_is_kept_and_the_next_message_starts_a_new_one(
    routes: SessionStore,
) -> None:
    entry = routes.get_or_create_session(source())
    assert routes.suspend_session(entry.session_key)
    set_age(routes, entry, days=1000)
    assert routes.prune_old_entries(90) == 0
    assert routes.get_or_create_session(source()).session_id != entry.session_id
    assert not routes.suspend_session("nowhere")


def test_routes_of_an_older_gateway_are_imported_once(
    routes: SessionStore, db: SessionDB, tmp_path: Path
) -> None:
    text = json.dumps({"_README": "words", KEY: GOOD})
    (tmp_path / "sessions.json").write_text(text)
    entry = routes.get(KEY)
    assert entry is not None
    assert entry.expiry_finalized
    assert routes.get_or_create_session(source(chat_id="7")).session_id == GOOD["session_id"]
    routes.prune_old_entries(1)
    (tmp_path / "sessions.json").write_text(text)
    assert len(reopen_routes(routes, db).list_sessions()) == len(routes.list_sessions())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": 1}', b'{"a": null}', b'{"a": {}}',
        json.dumps({"a": {**GOOD, "session_id": "../../etc"}}).encode(),
        json.dumps({"a": {**GOOD, "updated_at": "yesterday"}}).encode(),
    ],
)  # fmt: skip
def test_a_damaged_file_loses_only_its_damaged_part(
    content: bytes, routes: SessionStore, tmp_path: Path
) -> None:
    (tmp_path / "sessions.json").write_bytes(content)
    assert routes.list_sessions() == []
    if content.startswith(b'{"a"'):
        damaged = json.loads(content)
        (tmp_path / "sessions.json").write_text(json.dumps({**damaged, KEY: GOOD}))
        assert routes._db is not None
        again = SessionStore(tmp_path / "." / "..", routes.config)
        again.sessions_dir = tmp_path
        again._db = None
        assert [session.session_key for session in again.list_sessions()] == [KEY]


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = SessionEntry.from_dict({**GOOD, "session_key": KEY, "origin": source().to_dict()})
    assert SessionEntry.from_dict(entry.to_dict()) == entry
    assert entry.origin == source()


def test_routes_stored_by_an_original_gateway_are_imported(
    routes: SessionStore, db: SessionDB
) -> None:
    entry = json.dumps({**GOOD, "session_key": KEY, "origin": source().to_dict()})
    columns = "scope, session_key, entry_json, updated_at"
    sql = f"INSERT INTO gateway_routing ({columns}) VALUES ('main', ?, ?, 1)"
    db.engine.write(lambda tx: tx.run(sql, (KEY, entry)))
    (result,) = routes.list_sessions()
    assert (result.session_key, result.session_id) == (KEY, GOOD["session_id"])
    assert [route.session_key for route in db.routes.all()] == [KEY]


def test_routes_that_could_not_be_read_are_read_again(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = local_message("x", "0").source
    assert source is not None
    first = open_routes(db, tmp_path).get_or_create_session(source)
    with monkeypatch.context() as broken:
        broken.setattr(db.routes, "all", lambda: (_ for _ in ()).throw(StoreError("locked")))
        again = open_routes(db, tmp_path)
        with pytest.raises(StoreError):
            again.get_or_create_session(source)
    assert again.get_or_create_session(source).session_id == first.session_id


def test_an_unreadable_route_does_not_affect_others(db: SessionDB, tmp_path: Path) -> None:
    source = local_message("x", "0").source
    assert source is not None
    first = open_routes(db, tmp_path).get_or_create_session(source)
    row = ("p", "k", "s", 1.0, '{"nonsense": 1}')
    db.engine.write(lambda tx: tx.run("INSERT INTO hermes_route VALUES (?, ?, ?, ?, ?)", row))
    assert open_routes(db, tmp_path).get_or_create_session(source).session_id == first.session_id
    assert len(direct_send.list_channels(db, GatewayConfig())) == 1
