"""The search index gives the same results as a scan of all messages."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.campaign import size
from hermes_core.clock import ManualClock
from hermes_core.errors import UsageError
from hermes_core.messages import plain_text
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.search.query import parse
from hermes_state.search.tokens import composed, fold, index_words, token_texts, tokens_of
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = [
    "error", "Error:", "permission", "mission", "foo_bar.py", "Straße", "café", "cafe\u0301",
    "中文", "文字", "图片", "日本語", "カタカナ", "학교에서", "학교", "привет", "Привет!", "🎉",
    "नमस्ते", "ไทย", "a", "ab", "123", "x" * 60, "\uff26\uff35\uff2c\uff2c", "don't",
    "--", "\x00", "مرحبا",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=6).map(" ".join)
QUERIES = st.one_of(
    st.sampled_from(["error", "ERROR -permission", '"foo bar"', "中", "文字", "图片 OR 日本",
                     "per*", "학교", "학", "🎉", "cafe", "ก", "strasse", "straße", "x*", "full",
                     "don"]),
    TEXTS.filter(lambda text: bool(token_texts(text))),
)  # fmt: skip
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(["s1", "s2", "s3"]),
        st.sampled_from(["user", "assistant", "tool"]),
        TEXTS,
        st.integers(0, 1000),
        st.one_of(st.none(), TEXTS),
    ),
    max_size=25,
)


class Reference:
    """A scan of all messages without an index."""

    def __init__(self, db: SessionDB, sources: dict[str, str]) -> None:
        self.rows = [
            {**message, "source": sources[session_id]}
            for session_id in sources
            for message in db.get_messages(session_id, include_inactive=True)
        ]

    def matches(
        self, query: str, *, with_tools: bool, inside: bool, **filters: object
    ) -> list[dict]:
        parsed = parse(query, is_inside=inside)
        rows = []
        for row in sorted(self.rows, key=lambda row: -row["id"]):
            if not with_tools and row["role"] not in ("user", "assistant"):
                continue
            if not filters.get("include_inactive") and not (row["active"] or row["compacted"]):
                continue
            if (role := filters.get("role")) and row["role"] != role:
                continue
            if (source := filters.get("source")) and row["source"] != source:
                continue
            if (session := filters.get("session_id")) and row["session_id"] != session:
                continue
            if not filters.get("since", 0) <= row["timestamp"] < filters.get("until", math.inf):
                continue
            if parsed.matches(token_texts(text_of(row, with_tools=with_tools))):
                rows.append(row)
        return rows


def text_of(row: dict, *, with_tools: bool) -> str:
    text = plain_text(row["content"])
    if not with_tools:
        return text
    calls = json.dumps(row["tool_calls"]) if row["tool_calls"] else ""
    return "\n".join(part for part in (text, row["tool_name"], calls) if part)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def filled(folder: Path, messages: list, **options: object) -> tuple[SessionDB, dict[str, str]]:
    shutil.rmtree(folder, ignore_errors=True)
    sources = {"s1": "cli", "s2": "telegram", "s3": "te-legram"}
    db = SessionDB(folder / "state.db", settings=StoreSettings(**options), is_recovering=False)
    for session_id, source in sources.items():
        db.create_session(session_id, source)
    for session_id, role, text, at, called in messages:
        tools = {} if called is None else {"tool_name": "shell"}
        if called is not None and role == "assistant":
            tools = {"tool_calls": [{"id": "c1", "function": {"arguments": called}}]}
        db.append_message(session_id, role, text, timestamp=float(at), **tools)
    return db, sources


@given(
    messages=MESSAGES, query=QUERIES, inside=st.booleans(), with_tools=st.booleans(),
    indexed_tools=st.booleans(), role=st.sampled_from([None, "user", "tool"]),
    source=st.sampled_from([None, "telegram", "te-legram"]),
    session_id=st.sampled_from([None, "s2"]), span=st.sampled_from([(0, math.inf), (200, 700)]),
    include_inactive=st.booleans(), filled_tools=st.sampled_from([None, False, True]),
    undone=st.booleans(),
)  # fmt: skip
@settings(
    max_examples=size(75, 150), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_the_index_gives_the_same_results_as_a_scan(
    folder, messages, query, inside, with_tools, indexed_tools, role, source, session_id, span,
    include_inactive, filled_tools, undone,
) -> None:  # fmt: skip
    db, sources = filled(folder, messages, search_tools=indexed_tools)
    with db:
        if filled_tools is not None:
            assert db.search.fill(with_tools=filled_tools)
        if undone:
            db.edits.undo("s1")
        filters = {"session_id": session_id, "include_inactive": include_inactive}
        filters |= {"since": span[0], "until": span[1]}
        with_tools = with_tools or role == "tool"
        expected = Reference(db, sources).matches(
            query, with_tools=with_tools, inside=inside, role=role, source=source, **filters
        )
        options = {
            "role_filter": [role] if role else None,
            "source_filter": [source] if source else None,
            "with_tools": with_tools, "inside_words": inside, "limit": -1, **filters,
        }  # fmt: skip
        newest = [hit["id"] for hit in db.search_messages(query, sort="newest", **options)]
        assert newest == [row["id"] for row in expected]
        oldest = [hit["id"] for hit in db.search_messages(query, sort="oldest", **options)]
        assert oldest == newest[::-1]
        ranked = [hit["id"] for hit in db.search_messages(query, sort="rank", **options)]
        assert sorted(ranked) == sorted(newest)
        page = db.search_messages(query, sort="newest", **{**options, "limit": 2}, offset=1)
        assert [hit["id"] for hit in page] == newest[1:3]
        for hit in page:
            for start, stop in hit["offsets"]:
                assert hit["snippet_text"][start:stop]


@given(text=TEXTS, query=QUERIES, inside=st.booleans())
@settings(deadline=None)
def test_matches_in_a_text_are_those_among_its_tokens(text: str, query: str, inside: bool) -> None:
    parsed, folded = parse(query, is_inside=inside), fold(composed(text))
    assert parsed.matches_text(text) == parsed.matches(token_texts(text))
    found = list(tokens_of(folded))
    expected = {
        (found[first].start, found[stop - 1].end)
        for group in parsed.required
        for term in group
        for first, stop in term.spans([token.text for token in found])
    }
    spans = list(parsed.character_spans(folded))
    assert spans == sorted(spans)
    assert set(spans) == expected
    vocabulary: set[str] = set()
    words = index_words(text, vocabulary)
    assert token_texts(words.text) == token_texts(text)
    assert vocabulary == set(token_texts(text))
    assert words.number == len(token_texts(text))


@given(st.text())
def test_folding_keeps_all_positions(text: str) -> None:
    normalized = composed(text)
    assert len(fold(normalized)) == len(normalized)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_the_fast_path_for_ascii_gives_the_same_tokens(text: str) -> None:
    assert token_texts(text) == token_texts(text + " 中")[:-1]


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(clock=ManualClock()) as store:
        store.create_session("s", "cli")
        yield store


def test_a_message_is_found_immediately(db: SessionDB) -> None:
    for number in range(50):
        db.append_message("s", "user", f"number{number}")
        assert len(db.search_messages(f"number{number}")) == 1


def test_a_query_with_only_excluded_words_is_refused(db: SessionDB) -> None:
    with pytest.raises(UsageError, match="at least one word"):
        db.search_messages("-no")
    assert db.search_messages("... --- !!!") == []


def test_a_trashed_session_is_not_found_until_it_is_restored(db: SessionDB) -> None:
    db.append_message("s", "user", "zebra")
    db.search_messages("zebra")
    db.delete_session("s")
    assert db.search_messages("zebra") == []
    db.trash.restore("s")
    assert len(db.search_messages("zebra")) == 1


def test_purged_text_is_removed_from_the_index_file(db: SessionDB, hermes_home: Path) -> None:
    db.append_message("s", "user", "my password is Xyzzy12345 thanks")
    db.create_session("t", "cli")
    db.append_message("t", "user", "thanks a lot for the password manager")
    for number in range(300):
        db.append_message("t", "user", f"filler {number}")
    assert db.search.fill()
    assert len(db.search_messages("zzy123", inside_words=True)) == 1
    db.trash.purge("s")
    db.engine.search.close()
    assert b"zzy123" not in (hermes_home / "search.db").read_bytes().lower()
    assert db.search_messages("xyzzy12345") == []
    assert len(db.search_messages("password")) == 1


def test_the_setting_to_index_tools_can_change(hermes_home: Path) -> None:
    for covers in (False, True, False):
        with SessionDB(settings=StoreSettings(search_tools=covers)) as db:
            db.ensure_session("s", "cli")
            db.append_message("s", "tool", "traceback of doom", tool_name="shell")
            assert db.search.fill()
            assert db.search_messages("doom") == []
            assert db.search_messages("doom", with_tools=True)


def garbage_header(path: Path) -> None:
    path.write_bytes(b"this is not a database at all" * 400)


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def missing_shadow_table(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'body_data'")


def missing_row(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM body_data WHERE id = 10")


def deleted(path: Path) -> None:
    for file in path.parent.glob("search.db*"):
        file.unlink()


@pytest.mark.parametrize(
    "damage", [garbage_header, truncated, missing_shadow_table, missing_row, deleted]
)
@pytest.mark.parametrize("is_open", [True, False])
def test_damage_does_not_stop_writes_and_is_repaired(
    hermes_home: Path, damage, is_open: bool
) -> None:
    path = hermes_home / "search.db"
    with SessionDB() as db:
        db.create_session("s", "cli")
        for number in range(100):
            db.append_message("s", "user", f"before {number} " + "word " * 50)
        assert db.search.fill()
        if not is_open:
            db.engine.search.close()
        else:
            db.search_messages("before")
        db.engine.search.use(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        if not is_open:
            db.engine.search.close()
        damage(path)
        written = [db.append_message("s", "user", f"after {number}") for number in range(20)]
        assert all(written)
        assert len(db.search_messages("after", limit=-1)) == 20
        db.search.fill()
        assert len(db.search_messages("before", limit=-1)) == 100
        assert db.search.fill()
        assert db.search.progress() is None


def test_a_locked_search_file_does_not_stop_the_store(hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "before")
        db.search.fill()
        with closing(sqlite3.connect(hermes_home / "search.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert all(db.append_message("s", "user", f"after {n}") for n in range(20))
            assert len(db.search_messages("after", limit=-1)) == 20
            other.execute("ROLLBACK")
        assert db.search.fill()
        assert len(db.search_messages("after", limit=-1)) == 20


def test_an_unwritable_search_file_does_not_stop_the_store(hermes_home: Path) -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "before")
        db.search.fill()
        db.engine.search.use(lambda c: c.execute("PRAGMA query_only = ON"))
        assert all(db.append_message("s", "user", f"after {n}") for n in range(20))
        assert len(db.search_messages("after", limit=-1)) == 20
        assert len(db.search_messages("before")) == 1
        db.engine.search.close()
        assert db.search.fill()
