"""Search over HTTP."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from hermes_dashboard.resources import search
from hermes_state import SessionDB
from support.data_resources import serve_resources
from support.embeddings import embedding_server, install_minilm, needs_minilm
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        for name, source in (("one", "cli"), ("two", "telegram")):
            db.create_session(name, source, is_owned=False)
            for number in range(5):
                db.append_message(name, "user", f"the fjord 🏔 number {number}", timestamp=100.0)
                db.append_message(name, "assistant", "cold water")
        db.set_session_title("one", "Oslo")
        yield db


@pytest.fixture
def client(db: SessionDB, hermes_home: Path) -> Iterator[httpx.Client]:
    with serve_resources(db, hermes_home, search) as client:
        yield client


def test_hits_have_snippets_with_marks_and_come_in_pages(client: httpx.Client) -> None:
    first = client.get("/api/search", params={"q": "fjord", "limit": 7}).json()
    rest = client.get("/api/search", params={"q": "fjord", "limit": 7, "offset": 7}).json()
    assert (len(first["items"]), first["has_more"]) == (7, True)
    assert (len(rest["items"]), rest["has_more"]) == (3, False)
    hit = rest["items"][-1]
    assert (hit["session_id"], hit["session_title"], hit["source"]) == ("one", "Oslo", "cli")
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["fjord"]
    assert len({item["message_id"] for item in first["items"] + rest["items"]}) == 10
    assert first["is_partial"] is False


def test_filters_narrow_a_search(client: httpx.Client) -> None:
    def count(**filters: object) -> int:
        return len(
            client.get("/api/search", params={"q": "fjord OR water", **filters}).json()["items"]
        )  # type: ignore[dict-item]

    assert count() == 20
    assert count(source="telegram") == 10
    assert count(role="assistant") == 10
    assert count(until=200.0) == 10
    assert count(since=200.0, source="cli") == 5


@pytest.mark.parametrize("query", ["", "-", '"', "OR", "*", "\x00", "a" * 500, "(("])
def test_unusual_queries_are_not_errors(client: httpx.Client, query: str) -> None:
    assert client.get("/api/search", params={"q": query}).status_code == 200


def test_a_query_that_only_excludes_is_rejected(client: httpx.Client) -> None:
    response = client.get("/api/search", params={"q": "-x"})
    assert response.status_code == 400
    assert response.json()["detail"]


def test_a_search_starts_filling_the_index(db: SessionDB, client: httpx.Client) -> None:
    client.get("/api/search", params={"q": "fjord"})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while client.get("/api/search", params={"q": "fjord"}).json()["progress"] is not None:
        assert time.monotonic() < deadline
    assert db.search.progress() is None


@pytest.fixture
def varied(db: SessionDB) -> SessionDB:
    """Conversations that differ in every filter."""
    db.create_session("three", "cli", model="gpt-5", cwd="/work/a", git_branch="topic")
    db.append_message("three", "user", "a fjord by night")
    db.set_session_title("three", "atlas: which billing library? #2")
    db.tags.replace("three", ["trip"])
    return db


def groups(client: httpx.Client, **query: object) -> dict[str, int]:
    response = client.get("/api/search/conversations", params=query)  # type: ignore[arg-type]
    assert response.status_code == 200, response.text
    return {item["session"]["id"]: item["hit_count"] for item in response.json()["items"]}


def test_hits_are_grouped_by_conversation_and_counted(
    varied: SessionDB, client: httpx.Client
) -> None:
    assert groups(client, q="fjord") == {"three": 1, "two": 5, "one": 5}
    page = client.get("/api/search/conversations", params={"q": "fjord", "limit": 2}).json()
    assert (page["hit_count"], page["conversation_count"], page["has_more"]) == (11, 3, True)
    assert page["is_capped"] is False
    two = page["items"][1]
    assert [hit["snippet"][slice(*hit["marks"][0])] for hit in two["hits"]] == ["fjord"] * 3
    assert groups(client, q="fjord", limit=2, offset=2) == {"one": 5}


def test_a_search_keeps_all_filters(varied: SessionDB, client: httpx.Client) -> None:
    for filters in (
        {"model": "gpt"}, {"tag": "trip"}, {"folder": "/work"}, {"branch": "topic"},
        {"since": 200.0},
    ):  # fmt: skip
        assert groups(client, q="fjord", **filters) == {"three": 1}, filters
    assert groups(client, q="fjord", source="telegram") == {"two": 5}
    assert groups(client, q="fjord", model="gpt", source="telegram") == {}
    varied.set_session_archived("three")
    assert groups(client, q="fjord", state="active") == {"two": 5, "one": 5}


def test_a_search_can_be_narrowed_to_what_one_side_wrote(
    db: SessionDB, client: httpx.Client
) -> None:
    db.append_message("one", "tool", "fjord.txt", tool_name="read_file")
    assert groups(client, q="fjord water", role="assistant") == {"two": 5, "one": 5}
    assert groups(client, q="fjord", role="assistant") == {}
    assert groups(client, q="fjord", role="tool") == {"one": 1}
    assert groups(client, q="fjord", role=["tool", "user"]) == {"one": 6, "two": 5}


def test_a_hit_comes_with_what_was_said_before_and_after_it(
    db: SessionDB, client: httpx.Client
) -> None:
    db.create_session("talk", "cli")
    for role, text in (
        ("user", "Which river?"), ("assistant", "The Glomma"), ("tool", "{}"), ("user", "glomma!"),
    ):  # fmt: skip
        db.append_message("talk", role, text)
    found = client.get("/api/search/conversations", params={"q": "glomma"}).json()
    last, first = found["items"][0]["hits"]
    assert first["before"] == {"role": "user", "text": "Which river?"}
    assert (first["after"], last["before"], last["after"]) == (None, None, None)


def test_hits_are_counted_by_day(db: SessionDB, client: httpx.Client) -> None:
    found = client.get("/api/search/conversations", params={"q": "fjord", "limit": 1}).json()
    day = datetime.fromtimestamp(100.0).astimezone().date().isoformat()
    assert found["days"] == [{"day": day, "hits": 10}]
    db.append_message("one", "user", "fjord", timestamp=1e12)
    found = client.get("/api/search/conversations", params={"q": "fjord"}).json()
    assert (found["hit_count"], sum(each["hits"] for each in found["days"])) == (11, 10)


def test_similar_conversations_are_listed_with_their_best_message(
    db: SessionDB, client: httpx.Client
) -> None:
    for name in ("bread", "dough"):
        db.create_session(name, "cli")
        db.append_message(name, "user", f"How long does sourdough {name} rise with rye flour?")
    similar = client.get("/api/search/similar/bread").json()
    assert [item["session"]["id"] for item in similar] == ["dough"]
    assert {"sourdough", "rye", "flour"} <= set(similar[0]["words"])
    hit = similar[0]["hit"]
    assert "sourdough" in [hit["snippet"][start:end] for start, end in hit["marks"]]
    assert client.get("/api/search/similar/nothing").status_code == 404


@needs_minilm
def test_progress_of_the_search_by_meaning_is_reported_until_every_message_has_a_vector(
    db: SessionDB, hermes_home: Path
) -> None:
    db.create_session("gone", "cli")
    db.append_message("gone", "user", "the fjord in the trash")
    db.search.fill()
    db.trash.delete_session("gone")
    install_minilm(hermes_home)
    with embedding_server() as (url, _):
        ConfigFile.of_home().set("search.embeddings", f"{url}#small")
        with serve_resources(db, hermes_home, search) as client:

            def vectors() -> dict[str, int] | None:
                found = client.get("/api/search/conversations", params={"q": "fjord"}).json()
                result: dict[str, int] | None = found["vectors"]
                return result

            first = vectors()
            assert first is not None
            assert first["total"] == 21
            wait_until(lambda: vectors() is None)


def test_phrases_and_parts_of_words_match_titles(varied: SessionDB, client: httpx.Client) -> None:
    assert groups(client, q='"which billing"') == {"three": 0}
    assert groups(client, q="bill atlas") == {"three": 0}
    assert groups(client, q='"billing which"') == {}
    assert groups(client, q='"which billing" OR fjord') == {"three": 1, "two": 5, "one": 5}
    assert groups(client, q='"which billing"', source="telegram") == {}
    assert groups(client, q="billi", is_typing=True) == {"three": 0}


def test_a_search_for_excluded_words_alone_says_what_is_missing(client: httpx.Client) -> None:
    for path in ("/api/search", "/api/search/conversations"):
        response = client.get(path, params={"q": "-fjord"})
        assert response.status_code == 400
        assert "at least one word to find" in response.json()["detail"]


def test_rows_of_one_conversation_are_one_result(db: SessionDB, client: httpx.Client) -> None:
    db.end_session("one", "compression")
    db.create_session("one-later", "cli", parent_session_id="one", is_owned=False)
    db.append_message("one-later", "user", "the fjord again")
    assert groups(client, q="fjord") == {"one-later": 6, "two": 5}
    assert groups(client, q="fjord", folder="/nowhere") == {}
