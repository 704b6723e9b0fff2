"""Exports and imports: a round trip is byte-identical."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.campaign import size
from hermes_core.errors import PortableFileError, UsageError
from hermes_state import SessionDB
from hermes_state.sessions import index
from hermes_state.upkeep.health import examine
from state.portable_histories import KINDS, apply_changes, export, histories, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import ManualClock
    from hermes_state.engine.transaction import Tx

ANY = settings(max_examples=size(15, 30), deadline=None, suppress_health_check=list(HealthCheck))


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def listed(db: SessionDB) -> list[tuple[object, ...]]:
    """The rows of a list, recomputed from the messages."""

    def compute(tx: Tx) -> None:
        for (session_id,) in tx.rows("SELECT id FROM sessions"):
            index.reindex(tx, session_id)

    db.engine.write(compute)
    rows = db.list_sessions_rich(limit=-1, include_archived=True)
    names = ("id", "preview", "kind", "title", "message_count", "pinned", "archived")
    return [tuple(row.get(name) for name in names) for row in rows]


@pytest.mark.parametrize("source", KINDS)
@ANY
@given(history=histories, target=st.sampled_from(list(KINDS)))
def test_export_import_export_is_byte_identical(source: str, history: Any, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with open_store(Path(folder), source) as old:
            apply_changes(old, history)
            first = export(old)
            shown = listed(old)
        with open_store(Path(folder), target, "other.db") as new:
            new.portable.import_file(io.BytesIO(first))
            assert export(new) == first
            assert listed(new) == shown
            findings = examine(Path(folder) / "other.db")
            assert [finding for finding in findings if finding.status == "failed"] == []


@pytest.mark.parametrize("name", ["state-schema16.db", "state-schema26.db"])
@pytest.mark.parametrize("target", KINDS)
def test_the_round_trip_of_real_histories_is_byte_identical(
    shared_data: Path, tmp_path: Path, name: str, target: str
) -> None:
    shutil.copyfile(shared_data / name, tmp_path / "old.db")
    with SessionDB(tmp_path / "old.db", read_only=True) as old:
        untouched = export(old)
    with SessionDB(tmp_path / "old.db") as old:
        assert old.wait_for_index(10)
        assert export(old) == untouched
        for row in old.list_sessions_rich(limit=3):
            old.edits.undo(row["id"])
            old.set_session_pinned(row["id"])
            old.edits.branch(row["id"])
        first = export(old)
    with open_store(tmp_path, target) as new:
        report = new.portable.import_file(io.BytesIO(first))
        assert report.imported == len(first.splitlines()) - 2
        assert export(new) == first


@ANY
@given(history=histories, number=st.integers(0, 4))
def test_the_round_trip_of_part_of_a_history_is_byte_identical(history: Any, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with open_store(Path(folder), "new file") as old:
            apply_changes(old, history)
            ids = old.portable.sessions_to_export(include_trashed=True)[number : number + 1]
            first = export(old, ids)
            rest = export(old)
        with open_store(Path(folder), "new file", "other.db") as new:
            new.portable.import_file(io.BytesIO(first))
            assert export(new) == first
            # The rest is imported later; pending links are resolved.
            new.portable.import_file(io.BytesIO(rest))
            assert export(new) == rest


def test_an_imported_session_can_be_continued(
    db: SessionDB, session: str, tmp_path: Path, clock: ManualClock
) -> None:
    db.append_message(session, "user", "one", uid="0" * 31 + "1")
    db.append_message(session, "assistant", "two")
    db.edits.undo(session)
    db.end_session(session, "cli_close")
    db.reopen_session(session)
    branch = db.edits.branch(session, "branch")
    with SessionDB(tmp_path / "other.db", clock=clock) as new:
        new.portable.import_file(io.BytesIO(export(db)))
        assert new.append_message(session, "user", "one", uid="0" * 31 + "1") == 1
        assert len(new.edits.redo(session)) == 2
        assert new.get_session(branch)["parent_session_id"] == session
        assert (
            new.statistics.stats().lifetime_messages == db.statistics.stats().lifetime_messages == 2
        )
        new.close()
    with SessionDB(tmp_path / "other.db", clock=clock) as later:
        assert later.get_session(session)["ended_at"] is None


def test_an_export_contains_no_row_ids_and_no_export_time(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "hello")
    header, record, end = lines(export(db))
    assert header == {"format": "hermes-export", "redacted": False, "version": 1}
    assert end.keys() == {"end", "messages", "sessions", "sha256"}
    assert record["messages"][0].keys() == {"content", "hermes_uid", "role", "timestamp"}
    assert export(db).isascii()


def test_parents_come_before_children_regardless_of_their_times(
    db: SessionDB, clock: ManualClock
) -> None:
    db.create_session("parent", "cli", started_at=clock.now())
    db.create_session("child", "cli", parent_session_id="parent", started_at=5.0)
    db.create_session("grandchild", "cli", parent_session_id="child", started_at=1.0)
    db.create_session("other", "cli", started_at=2.0)
    ids = db.portable.sessions_to_export()
    assert ids == ["parent", "child", "grandchild", "other"]


@pytest.mark.engines
def test_a_selection_includes_the_conversation_and_its_delegates(
    db: SessionDB, clock: ManualClock
) -> None:
    db.create_session("begin", "telegram")
    db.end_session("begin", "compression")
    clock.advance(1)
    db.create_session("go-on", "telegram", parent_session_id="begin")
    db.create_session("work", "subagent", parent_session_id="go-on",
                      model_config={"_delegate_from": "go-on"})  # fmt: skip
    db.create_session("elsewhere", "cli")
    db.create_session("hidden", "telegram")
    db.set_session_archived("hidden")
    db.create_session("gone", "telegram")
    db.delete_session("gone")
    chosen = db.portable.sessions_to_export(source="telegram", include_archived=False)
    assert chosen == ["begin", "go-on", "work"]
    assert "hidden" in db.portable.sessions_to_export(source="telegram")
    assert "gone" in db.portable.sessions_to_export(source="telegram", include_trashed=True)
    assert "gone" not in db.portable.sessions_to_export()
    assert db.portable.relatives_of("begin") == ["begin", "go-on"]


def filled(db: SessionDB) -> bytes:
    for number in range(3):
        db.create_session(f"s{number}", "cli")
        db.append_message(f"s{number}", "user", f"message {number}")
        db.set_session_title(f"s{number}", f"title {number}")
    return export(db)


def damaged(data: bytes) -> dict[str, tuple[bytes, str]]:
    rows = data.splitlines(keepends=True)
    record = json.loads(rows[1])
    record["messages"][0].pop("role", None)
    long = json.loads(rows[1])
    long.setdefault("session", {})["id"] = "s" * 5000
    return {
        "empty": (b"", "is empty"),
        "long ID": (
            b"".join([rows[0], json.dumps(long).encode() + b"\n", *rows[2:]]),
            "line 2: the ID of the session is too long",
        ),
        "foreign": (b"PK\x03\x04 something else\n", "line 1: not a Hermes export"),
        "another JSON": (b'{"a": 1}\n', "line 1: not a Hermes export"),
        "newer": (data.replace(b'"version":1', b'"version":2'), "version 2"),
        "cut": (b"".join(rows[:-1]), "ends after line 4"),
        "cut in a line": (data[: len(rows[0]) + len(rows[1]) + 20], "line 3: invalid JSON"),
        "changed": (data.replace(b"message 1", b"massage 1"), "checksum"),
        "a session less": (b"".join([*rows[:2], *rows[3:]]), "its counts of sessions and messages"),
        "twice": (b"".join([*rows[:2], *rows[1:]]), "line 3: session s0 occurs twice"),
        "no role": (
            b"".join([rows[0], json.dumps(record).encode() + b"\n", *rows[2:]]),
            "line 2: message 0: role is missing",
        ),
        "more behind": (data + b"{}\n", "unexpected data"),
    }


@pytest.mark.parametrize("kind", list(damaged(b"{}\n" + b'{"messages":[{}]}\n' * 4)))
def test_a_damaged_file_is_refused_with_its_line_and_changes_nothing(
    db: SessionDB, tmp_path: Path, kind: str
) -> None:
    data, message = damaged(filled(db))[kind]
    with SessionDB(tmp_path / "other.db") as new:
        with pytest.raises(PortableFileError, match=message):
            new.portable.import_file(io.BytesIO(data))
        assert new.session_count() == 0


def test_every_changed_byte_is_detected(db: SessionDB, tmp_path: Path) -> None:
    data = filled(db)
    with SessionDB(tmp_path / "other.db") as new:
        for position in range(0, len(data), 7):
            broken = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
            with pytest.raises(PortableFileError):
                new.portable.import_file(io.BytesIO(broken))
        assert new.session_count() == 0


@pytest.mark.engines
def test_existing_sessions_are_skipped_renamed_or_refused(db: SessionDB) -> None:
    data = filled(db)
    skipped = db.portable.import_file(io.BytesIO(data))
    assert (skipped.imported, skipped.skipped) == (0, ["s0", "s1", "s2"])
    with pytest.raises(UsageError, match="3 of 3 sessions are here already"):
        db.portable.import_file(io.BytesIO(data), on_conflict="fail")
    db.append_message("s1", "user", "something new")
    dry_run = db.portable.import_file(io.BytesIO(data), on_conflict="rename", is_dry_run=True)
    assert db.session_count() == 3
    renamed = db.portable.import_file(io.BytesIO(data), on_conflict="rename")
    assert renamed.renamed == dry_run.renamed == {"s1": "s1-2"}
    assert (renamed.imported, renamed.unchanged) == (1, 2)
    assert renamed.retitled == {"s1-2": "title 1 #2"}
    assert [m["content"] for m in db.get_messages("s1-2")] == ["message 1"]


def test_a_renamed_parent_keeps_its_children(db: SessionDB, tmp_path: Path) -> None:
    db.create_session("p", "cli")
    db.append_message("p", "user", "x")
    db.edits.branch("p", "c")
    data = export(db)
    with SessionDB(tmp_path / "other.db") as new:
        new.create_session("p", "telegram")
        new.portable.import_file(io.BytesIO(data), on_conflict="rename")
        assert new.get_session("c")["parent_session_id"] == "p-2"
        origin = lines(export(new, ["c"]))[1]["messages"][0]["hermes_origin"]
        assert origin == {"row": 0, "session": "p-2"}


def test_a_purged_session_can_be_imported_again(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "one")
    data = export(db)
    db.append_message(session, "user", "two")
    db.end_session(session, "cli_close")
    db.trash.purge(session)
    db.portable.import_file(io.BytesIO(data))
    assert db.statistics.stats().lifetime_messages == 2  # never decreases
    db.end_session(session, "cli_close")
    final = [row for row in db.boundaries.recent(session) if row.is_final]
    assert {row.epoch for row in final} == {0, 1}


def test_imported_sessions_have_no_participants(
    db: SessionDB, session: str, tmp_path: Path, clock: ManualClock
) -> None:
    data = export(db)
    with SessionDB(tmp_path / "other.db", clock=clock) as new:
        new.portable.import_file(io.BytesIO(data))
        owners: Callable[..., Any] = lambda reader: reader.rows("SELECT * FROM hermes_participant")  # noqa: E731
        assert new.engine.read(owners) == []
        assert new.append_message(session, "user", "on we go") > 0


def test_a_long_session_is_exported_while_it_grows(db: SessionDB, session: str) -> None:
    for number in range(50):
        db.append_message(session, "user", f"{number} " + "x" * 200)
    chunks = db.portable.iter_export_file([session, session + "-gone"])
    next(chunks)
    db.append_message(session, "user", "late", uid="f" * 32)
    record = json.loads(b"".join(chunks).splitlines()[0])
    assert record["messages"][-1]["hermes_uid"] == "f" * 32
    assert record["session"]["message_count"] == len(record["messages"]) == 51


@ANY
@given(history=histories)
def test_redaction_of_harmless_histories_changes_only_the_header(history: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder), "new file") as db:
        apply_changes(db, history)
        plain, redacted = export(db), export(db, is_redacted=True)
        assert b'"redacted":true' in redacted
        if b"[redacted:" not in redacted:
            assert plain.splitlines()[1:-1] == redacted.splitlines()[1:-1]
