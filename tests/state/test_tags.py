"""Tags of conversations: case-insensitive, exported, deleted with the conversation."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_state import SessionDB
from hermes_state.sessions.pages import SessionPageFilter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        for name in ("one", "two"):
            db.create_session(name, "cli", is_owned=False)
            db.append_message(name, "user", name)
        yield db


def test_tags_are_trimmed_and_case_insensitive(db: SessionDB) -> None:
    assert db.tags.replace("one", [" Work ", "work", "two  words"]) == ["Work", "two words"]
    assert db.tags.replace("two", ["WORK"]) == ["Work"]  # the first spelling is used
    assert db.facets.facets().tags == {"Work": 2, "two words": 1}
    assert db.tags.tags_of(["one", "two"]) == {"one": ["two words", "Work"], "two": ["Work"]}
    assert db.tags.change("one", "wOrK", False) == ["two words"]
    assert sorted(db.tags.change("one", "new")) == ["new", "two words"]
    assert db.facets.facets().tags == {"Work": 1, "new": 1, "two words": 1}


@pytest.mark.parametrize("tag", ["", "  ", "x" * 41, "a\x00b", "\ud83d"])
def test_an_invalid_tag_is_refused(db: SessionDB, tag: str) -> None:
    with pytest.raises(UsageError):
        db.tags.replace("one", ["fine", tag])
    assert db.facets.facets().tags == {}


def test_a_conversation_has_at_most_fifty_tags(db: SessionDB) -> None:
    tags = [f"tag {number}" for number in range(50)]
    assert len(db.tags.replace("one", tags)) == 50
    with pytest.raises(UsageError):
        db.tags.change("one", "one more")
    with pytest.raises(UsageError):
        db.tags.replace("two", [*tags, "one more"])
    assert db.tags.tags_of(["two"]) == {"two": []}


def test_an_unknown_session_has_no_tags(db: SessionDB) -> None:
    with pytest.raises(SessionNotFoundError):
        db.tags.replace("nobody", ["x"])
    assert db.tags.tags_of(["nobody"]) == {"nobody": []}


def test_a_conversation_keeps_its_tags_when_it_is_continued(db: SessionDB) -> None:
    db.tags.replace("one", ["work"])
    db.end_session("one", "compression")
    db.create_session("next", "cli", parent_session_id="one", is_owned=False)
    assert db.tags.tags_of(["next"]) == {"next": ["work"]}
    db.tags.change("next", "more")
    assert db.tags.tags_of(["one"]) == {"one": ["more", "work"]}
    rows = db.pages.page(SessionPageFilter(tags=("WORK", "more"))).rows
    assert [row.id for row in rows] == ["next"]
    assert db.pages.page(SessionPageFilter(tags=("work", "other"))).rows == []


def test_purging_deletes_tags(db: SessionDB) -> None:
    db.tags.replace("one", ["work"])
    db.delete_session("one")
    assert db.facets.facets().tags == {}
    db.trash.restore("one")
    assert db.facets.facets().tags == {"work": 1}
    db.trash.purge("one")
    assert db.tags.tags_of(["one"]) == {"one": []}


def test_exports_include_tags(db: SessionDB, tmp_path: Path) -> None:
    db.tags.replace("one", ["work", "Übung"])
    exported = b"".join(db.portable.iter_export_file(["one", "two"]))
    with SessionDB(tmp_path / "other.db") as other:
        other.portable.import_file(io.BytesIO(exported))
        assert other.tags.tags_of(["one", "two"]) == {"one": ["work", "Übung"], "two": []}
        assert b"".join(other.portable.iter_export_file(["one", "two"])) == exported
