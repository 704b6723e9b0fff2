"""Tool text is searched through an index of its own."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.side_file import read_meta, write_meta
from hermes_state.search.candidates import CHUNK_ROWS, ScanDeadline
from hermes_state.search.tool_index import PART_BITS, SLICE_ROWS, part_numbers
from hermes_state.store_settings import StoreSettings
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    make_schema_26,
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CALL = {"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "rm frobnicate"}'}}


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        store.create_session("s", "cli")
        yield store


def found(db: SessionDB, query: str, **options: object) -> list[int]:
    return [hit["id"] for hit in db.search_messages(query, with_tools=True, limit=-1, **options)]


def leave_a_gap(db: SessionDB, count: int) -> None:
    """Let the next message get an ID that is higher by *count*."""
    db.engine.write(
        lambda tx: tx.execute(
            "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'messages'", (count,)
        )
    )


def test_a_search_of_indexed_tool_text_reads_no_other_messages(db: SessionDB) -> None:
    for number in range(CHUNK_ROWS + 1):
        db.append_message("s", "tool", f"output {number}", tool_name="shell")
    while not db.search.fill(with_tools=True):
        pass
    patience = ScanDeadline(0)
    assert db.search_messages("missing", with_tools=True, patience=patience) == []
    assert len(db.search_messages("7", role_filter=["tool"], patience=patience)) == 1
    assert not patience.has_ended


@pytest.mark.parametrize("covers", [True, False])
def test_tool_calls_are_not_searched_without_tools(hermes_home: Path, covers: bool) -> None:
    with SessionDB(settings=StoreSettings(search_tools=covers)) as db:
        db.create_session("s", "cli")
        db.append_message("s", "assistant", "I delete it", tool_calls=[CALL])
        assert db.search.fill(with_tools=True)
        assert db.search_messages("frobnicate") == []
        assert len(found(db, "frobnicate")) == 1
        assert len(db.search_messages("delete -frobnicate")) == 1
        assert found(db, "delete -frobnicate") == []


def test_words_may_be_in_the_text_and_in_the_call(db: SessionDB) -> None:
    row_id = db.append_message("s", "assistant", "I delete it", tool_calls=[CALL])
    assert db.search.fill(with_tools=True)
    assert found(db, "delete frobnicate") == [row_id]
    assert found(db, "delete") == [row_id]
    assert found(db, "delete", sort="rank") == [row_id]


def test_tool_text_is_found_across_ranges_of_ids(db: SessionDB) -> None:
    expected = []
    for number in range(6):
        expected.append(db.append_message("s", "tool", f"tripwire {number}", tool_name="shell"))
        expected.append(db.append_message("s", "user", "tripwire"))
        leave_a_gap(db, 1 << (PART_BITS - 1))
    assert db.search.fill(with_tools=True)
    assert len(db.engine.search.use(part_numbers) or []) == 3
    assert found(db, "tripwire") == expected[::-1]
    assert found(db, "tripwire", sort="oldest") == expected
    assert found(db, "ripwir", inside_words=True) == expected[::-1]
    assert found(db, '"tripwire 4"') == [expected[8]]
    page = db.search_messages("tripwire", with_tools=True, limit=3, offset=4)
    assert [hit["id"] for hit in page] == expected[::-1][4:7]
    ranked = found(db, "tripwire", sort="rank")
    assert sorted(ranked) == expected
    assert ranked[6:] == expected[::2][::-1]  # tool text after messages, the newest first


def test_an_interrupted_index_is_continued(hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
        ids = [
            db.append_message("s", "tool", f"line {number}") for number in range(2 * SLICE_ROWS + 5)
        ]
        assert db.search.fill()
        assert not db.search.fill(0, with_tools=True)
        assert db.search.progress() is None
        assert db.search.progress(with_tools=True) == (ids[SLICE_ROWS - 1], ids[-1])
    with SessionDB() as db:
        assert len(found(db, "line")) == len(ids)
        assert db.search.fill(with_tools=True)
        assert db.search.progress(with_tools=True) is None
        assert len(found(db, "line")) == len(ids)


def test_only_searches_with_tools_fill_the_index_of_tool_text(db: SessionDB) -> None:
    db.append_message("s", "tool", "output")
    db.search_messages("output")
    assert db.engine.search.use(part_numbers) == []
    db.search_messages("output", with_tools=True)
    assert db.engine.search.use(part_numbers) == [0]


def test_purged_tool_text_is_removed_from_the_index_file(db: SessionDB, hermes_home: Path) -> None:
    db.append_message("s", "tool", "the password is Xyzzy12345", tool_name="shell")
    db.append_message("s", "assistant", "", tool_calls=[{"function": {"arguments": "Plugh678"}}])
    db.create_session("t", "cli")
    db.append_message("t", "tool", "a password manager", tool_name="shell")
    for number in range(300):
        db.append_message("t", "tool", f"filler {number}")
    assert db.search.fill(with_tools=True)
    assert len(found(db, "zzy123", inside_words=True)) == 1
    assert len(found(db, "plugh678")) == 1
    db.trash.purge("s")
    db.engine.search.close()
    content = (hermes_home / "search.db").read_bytes().lower()
    assert b"zzy123" not in content
    assert b"ugh678" not in content
    assert found(db, "xyzzy12345") == []
    assert found(db, "zzy123", inside_words=True) == []
    assert len(found(db, "password")) == 1
    assert len(found(db, "sswor", inside_words=True)) == 1


@pytest.mark.parametrize("make", [make_schema_16, make_schema_26])
def test_tool_text_of_a_foreign_history_is_found_and_purged(hermes_home: Path, make) -> None:
    make(hermes_home / "state.db")
    write_as_hermes_agent(
        hermes_home / "state.db",
        [
            foreign_session("s", 1.0),
            foreign_message("s", "tool", "the password is Xyzzy12345", 2.0),
            foreign_session("t", 3.0),
            foreign_message("t", "tool", "another password", 4.0),
        ],
    )
    with SessionDB() as db:
        assert db.search.fill(with_tools=True)
        assert len(found(db, "password")) == 2
        db.trash.purge("s")
        db.engine.search.close()
        assert b"zzy123" not in (hermes_home / "search.db").read_bytes().lower()
        assert [hit["session_id"] for hit in db.search_messages("password", role_filter=["tool"])]
        assert len(found(db, "password")) == 1


def test_a_search_file_of_an_older_layout_is_rebuilt(db: SessionDB, hermes_home: Path) -> None:
    db.append_message("s", "tool", "some output")
    assert len(found(db, "output")) == 1
    db.engine.search.use(lambda c: write_meta(c, "layout", "1+tools"))
    db.engine.search.close()
    assert len(found(db, "output")) == 1
    with closing(sqlite3.connect(hermes_home / "search.db")) as connection:
        assert read_meta(connection, "layout") == "3+tools"


def test_the_context_of_a_match_includes_structured_and_long_content(db: SessionDB) -> None:
    parts = [{"type": "text", "text": "look at this"}]
    db.append_message("s", "user", parts)
    db.append_message("s", "assistant", "a zebra")
    db.append_message("s", "tool", "é" * 5000)
    db.append_message("s", "assistant", "a tiger")
    db.append_message("s", "tool", "zero \0 character" + "x" * 5000)
    [hit] = db.search_messages("zebra")
    contents = [message["content"] for message in hit["context"]]
    assert contents == ["look at this", "a zebra", "é" * 200]
    [hit] = db.search_messages("tiger")
    assert hit["context"][2]["content"] == ("zero \0 character" + "x" * 5000)[:200]
