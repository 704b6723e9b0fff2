"""Search by meaning: vectors from MiniLM or an endpoint, beside the words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.errors import EmbeddingError
from hermes_state.search.repository import SearchOptions
from support.embeddings import embedding_server, install_minilm, needs_minilm
from support.paraphrases import PARAPHRASES

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
def minilm(hermes_home: Path) -> None:
    install_minilm(hermes_home)


def store_notes(db: SessionDB) -> None:
    for number, (note, _) in enumerate(PARAPHRASES):
        db.create_session(f"n{number}", "cli")
        db.append_message(f"n{number}", "user", note)
    db.search.fill()


def fill(db: SessionDB) -> None:
    while not db.search.meaning.fill(5):
        pass


def places(db: SessionDB, **options: Any) -> list[int]:
    """The place of the right note for each question; 99 if it is not found."""
    found = []
    for number, (_, question) in enumerate(PARAPHRASES):
        answer = db.search.answer(question, SearchOptions(limit=30, **options))
        sessions = list(dict.fromkeys(hit.session_id for hit in answer.hits))
        found.append(sessions.index(f"n{number}") if f"n{number}" in sessions else 99)
    return found


@needs_minilm
@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("by_meaning", [False, True])
def test_notes_without_a_shared_word_are_found(db: SessionDB, by_meaning: bool) -> None:
    store_notes(db)
    assert db.search.meaning.progress() == (0, len(PARAPHRASES))
    fill(db)
    assert db.search.meaning.progress() is None
    found = places(db, by_meaning=by_meaning)
    assert found.count(0) >= 16
    assert sum(place < 3 for place in found) >= 22


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_words_that_are_found_need_no_vectors(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    answer = db.search.answer("which regex backtracks on long lines")
    assert (answer.step, answer.hits[0].session_id) == ("any word", "n13")


def test_without_a_model_only_words_count(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    assert places(db).count(0) <= 1
    assert db.search.meaning.progress() is None


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_an_endpoint_gets_the_texts_if_it_is_named(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    with embedding_server() as (url, asked):
        ConfigFile.of_home().set("search.embeddings", f"{url}#letters")
        ConfigFile.of_home().set("search.embeddings_key", "sk-1")
        del db.search.__dict__["meaning"]
        assert db.search.meaning.progress() == (0, len(PARAPHRASES))  # another model
        fill(db)
        assert {key for key, _ in asked} == {"Bearer sk-1"}
        assert {body["model"] for _, body in asked} == {"letters"}
        sent = [text for _, body in asked for text in body["input"]]
        assert sorted(sent) == sorted(note for note, _ in PARAPHRASES)
        note = PARAPHRASES[3][0]
        answer = db.search.answer(note.upper(), SearchOptions(by_meaning=True))
        assert answer.hits[0].session_id == "n3"


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_an_endpoint_that_fails_is_named(db: SessionDB) -> None:
    store_notes(db)
    ConfigFile.of_home().set("search.embeddings", "http://127.0.0.1:9/v1#none")
    with pytest.raises(EmbeddingError, match="/v1/embeddings"):
        fill(db)
    assert db.search.answer("which regex backtracks on long lines").hits
    assert db.search.answer("which regex is unheard of, exotic and undocumented").hits


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_messages_in_the_trash_need_no_vector(db: SessionDB) -> None:
    store_notes(db)
    db.trash.delete_session("n13")
    fill(db)
    assert db.search.meaning.progress() is None


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_vectors_of_a_purged_conversation_are_gone(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    db.trash.purge("n13")
    assert db.search.meaning._table.counts() == (len(PARAPHRASES) - 1, len(PARAPHRASES) - 1)
