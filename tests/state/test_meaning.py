"""Search by meaning: vectors from MiniLM or an endpoint, beside the words."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.errors import EmbeddingError
from hermes_state.search.embedders import LIBRARY
from hermes_state.search.repository import SearchOptions
from support.paraphrases import PARAPHRASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB

FETCHED = Path(__file__).resolve().parents[2] / ".models" / "libraries" / "minilm"
needs_minilm = pytest.mark.skipif(not FETCHED.is_dir(), reason="`make models` fetches MiniLM")


@pytest.fixture
def minilm(hermes_home: Path) -> None:
    (hermes_home / "libraries").mkdir()
    LIBRARY.folder.symlink_to(FETCHED)


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


@contextmanager
def endpoint() -> Iterator[tuple[str, list[Any]]]:
    """An embeddings endpoint whose vectors count letters."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers.get("Authorization"), body))
            data = [
                {"index": n, "embedding": [1.0 + text.lower().count(each) for each in "aeiounrst"]}
                for n, text in enumerate(body["input"])
            ]
            answer = json.dumps({"data": data[::-1]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
        server.shutdown()


@needs_minilm
@pytest.mark.usefixtures("minilm")
def test_an_endpoint_gets_the_texts_if_it_is_named(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    with endpoint() as (url, asked):
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
def test_vectors_of_a_purged_conversation_are_gone(db: SessionDB) -> None:
    store_notes(db)
    fill(db)
    db.trash.purge("n13")
    assert db.search.meaning._table.counts() == (len(PARAPHRASES) - 1, len(PARAPHRASES) - 1)
