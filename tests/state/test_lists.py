"""Lists contain every conversation once, including those of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_state.sessions import index
from state.conftest import FILES_ONLY
from state.foreign_files import foreign_message, foreign_session, write_as_hermes_agent

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB

pytestmark = pytest.mark.clock


def ids(rows: list[dict]) -> list[str]:
    return [row["id"] for row in rows]


def create_conversation(db: SessionDB, clock: ManualClock, session_id: str, **facts: object) -> str:
    clock.advance(10)
    source = str(facts.pop("source", "cli"))
    db.create_session(session_id, source, **facts)
    db.append_message(session_id, "user", f"hello from {session_id}")
    return session_id


def test_the_most_recently_active_session_comes_first(db: SessionDB, clock: ManualClock) -> None:
    for name in "abc":
        create_conversation(db, clock, name)
    clock.advance(10)
    db.append_message("a", "user", "again")
    assert ids(db.list_sessions_rich(order_by_last_active=True)) == ["a", "c", "b"]
    assert ids(db.list_sessions_rich()) == ["c", "b", "a"]
    assert ids(db.search_sessions(limit=2)) == ["a", "c"]
    assert ids(db.list_sessions_rich(limit=1, offset=1)) == ["b"]


def test_a_row_has_a_preview_and_the_last_activity(db: SessionDB, clock: ManualClock) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "system", "be kind")
    db.append_message(
        "s", "user", [{"type": "text", "text": "这张图片里   有什么?"}, {"type": "image"}]
    )
    (row,) = db.list_sessions_rich()
    assert row["preview"] == "这张图片里 有什么? [image]"
    assert row["last_active"] == clock.now()
    assert "system_prompt" not in row


def test_the_preview_is_the_first_user_message_with_text(db: SessionDB, clock: ManualClock) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", "")
    db.append_message("s", "user", "words")
    assert db.list_sessions_rich()[0]["preview"] == "words"
    db.engine.write(lambda tx: index.reindex(tx, "s"))
    assert db.list_sessions_rich()[0]["preview"] == "words"


def test_long_previews_are_shortened(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.append_message("s", "user", "word " * 100)
    preview = db.list_sessions_rich()[0]["preview"]
    assert preview.endswith("...")
    assert len(preview) <= 63


@pytest.mark.engines
def test_filters_restrict_the_list(db: SessionDB, clock: ManualClock) -> None:
    create_conversation(db, clock, "a", source="cli", cwd="/home/me/project_x")
    create_conversation(db, clock, "b", source="telegram", cwd="/home/me/project_x/sub")
    create_conversation(db, clock, "c", source="tool", cwd="/home/me/projectAx")
    db.append_message("b", "assistant", "hi")
    assert ids(db.list_sessions_rich("telegram")) == ["b"]
    assert ids(db.list_sessions_rich(exclude_sources=["tool"])) == ["b", "a"]
    assert ids(db.list_sessions_rich(min_message_count=2)) == ["b"]
    assert ids(db.list_sessions_rich(cwd_prefix="/home/me/project_x")) == ["b", "a"]
    assert ids(db.list_sessions_rich(sources=["cli", "tool"])) == ["c", "a"]
    assert ids(db.search_sessions_by_id("b")) == ["b"]


def test_delegated_tasks_are_not_listed(db: SessionDB, clock: ManualClock) -> None:
    create_conversation(db, clock, "a")
    create_conversation(db, clock, "d", source="subagent", parent_session_id="a",
         model_config={"_delegate_from": "a"})  # fmt: skip
    assert ids(db.list_sessions_rich()) == ["a"]
    assert ids(db.list_sessions_rich(include_children=True)) == ["d", "a"]
    assert db.session_count(exclude_children=True) == 1


def test_a_continued_conversation_appears_once_as_its_last_row(
    db: SessionDB, clock: ManualClock
) -> None:
    create_conversation(db, clock, "first")
    started = db.get_session("first")["started_at"]
    db.end_session("first", "compression")
    create_conversation(db, clock, "second", parent_session_id="first")
    db.end_session("second", "compression")
    create_conversation(db, clock, "third", parent_session_id="second")
    (row,) = db.list_sessions_rich()
    assert row["id"] == "third"
    assert row["_lineage_root_id"] == "first"
    assert row["started_at"] == started
    assert db.get_compression_tip("first") == "third"
    assert db.resolve_resume_session_id("first") == "third"
    assert ids(db.list_sessions_rich(project_compression_tips=False)) == ["first"]
    conversation = db.get_messages_as_conversation("third", include_ancestors=True)
    assert [m["content"].split()[-1] for m in conversation] == ["first", "second", "third"]


def test_archiving_a_continued_conversation_archives_all_its_rows(
    db: SessionDB, clock: ManualClock
) -> None:
    create_conversation(db, clock, "first")
    db.end_session("first", "compression")
    create_conversation(db, clock, "second", parent_session_id="first")
    db.set_session_archived("second")
    assert db.list_sessions_rich(project_compression_tips=False) == []
    db.set_session_archived("first", False)
    assert ids(db.list_sessions_rich()) == ["second"]


@FILES_ONLY
def test_rows_written_by_another_program_are_listed(
    db: SessionDB, db_path: Path, clock: ManualClock
) -> None:
    create_conversation(db, clock, "ours")
    later = clock.now() + 100
    write_as_hermes_agent(
        db_path,
        [
            foreign_session("theirs", later),
            foreign_message("theirs", "user", "hello from them", later),
            foreign_message("ours", "assistant", "they answered", later + 1),
        ],
    )
    rows = db.list_sessions_rich(order_by_last_active=True)
    assert ids(rows) == ["ours", "theirs"]
    assert rows[1]["preview"] == "hello from them"
    assert rows[0]["last_active"] == later + 1


@FILES_ONLY
def test_appending_after_another_program_counts_both(
    db: SessionDB, db_path: Path, clock: ManualClock
) -> None:
    create_conversation(db, clock, "ours")
    write_as_hermes_agent(db_path, [foreign_message("ours", "user", "theirs", clock.now())])
    db.append_message("ours", "assistant", "ours again")
    assert db.statistics.stats().lifetime_messages == 3
    assert len(db.get_messages("ours")) == 3


DEEP_JSON = b"\0json:" + b"[" * 5000 + b"]" * 5000


@FILES_ONLY
@pytest.mark.parametrize("content", [DEEP_JSON, b"not UTF-8: \xff"])
def test_a_message_of_another_program_that_cannot_be_read_does_not_stop_writes(
    db: SessionDB, db_path: Path, clock: ManualClock, content: bytes
) -> None:
    create_conversation(db, clock, "ours")
    sql, values = foreign_message("theirs", "user", "", clock.now())
    sql = sql.replace("VALUES (?, ?, ?, ?)", "VALUES (?, ?, CAST(? AS TEXT), ?)")
    values = (*values[:2], content, values[3])
    write_as_hermes_agent(db_path, [foreign_session("theirs", clock.now()), (sql, values)])
    assert db.append_message("ours", "user", "more") > 0
    write_as_hermes_agent(db_path, [foreign_message("theirs", "user", "more", clock.now())])
    assert db.append_message("theirs", "user", "more") > 0
    assert set(ids(db.list_sessions_rich())) == {"ours", "theirs"}


@FILES_ONLY
def test_sessions_deleted_by_another_program_are_not_listed(
    db: SessionDB, db_path: Path, clock: ManualClock
) -> None:
    create_conversation(db, clock, "a")
    create_conversation(db, clock, "b")
    write_as_hermes_agent(
        db_path,
        [
            ("DELETE FROM messages WHERE session_id = ?", ("a",)),
            ("DELETE FROM sessions WHERE id = ?", ("a",)),
        ],
    )
    assert ids(db.list_sessions_rich()) == ["b"]


def test_a_read_only_list_equals_the_writers(open_store, db_path: Path, clock) -> None:
    store = open_store()
    for name in "abcdef":
        create_conversation(store, clock, name, source="tool" if name in "bd" else "cli")
    store.set_session_archived("c")
    expected = store.list_sessions_rich(limit=2, exclude_sources=["tool"])
    reader = open_store(read_only=True)
    assert reader.list_sessions_rich(limit=2, exclude_sources=["tool"]) == expected
