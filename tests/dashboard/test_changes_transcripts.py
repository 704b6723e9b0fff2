"""Changes of conversations and their messages, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_core import media_store
from hermes_dashboard.resources import changes, files, sessions, transcripts
from hermes_state import SessionDB
from support.data_resources import serve_resources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


@pytest.fixture
def client(db: SessionDB, hermes_home: Path) -> Iterator[httpx.Client]:
    with serve_resources(db, hermes_home, changes, sessions, transcripts, files) as client:
        yield client


def add_session(db: SessionDB, name: str, *texts: str, **fields: Any) -> str:
    db.create_session(name, "cli", is_owned=False, **fields)
    for number, text in enumerate(texts or ("hello",)):
        db.append_message(name, "assistant" if number % 2 else "user", text)
    return name


def read(client: httpx.Client, name: str, **query: Any) -> dict[str, Any]:
    response = client.get(f"/api/sessions/{name}/messages", params=query)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def texts(page: dict[str, Any]) -> list[str]:
    return [item["text"] for item in page["items"]]


def test_a_conversation_is_renamed_tagged_and_read(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one")
    body = {
        "title": " Oslo  trip ",
        "tags": ["Travel", "travel", " winter  2026 "],
        "is_read": True,
    }
    item = client.patch("/api/sessions/one", json=body).json()
    assert item["title"] == "Oslo trip"
    assert item["tags"] == ["Travel", "winter 2026"]
    assert item["unread"] is False
    assert client.patch("/api/sessions/one", json={"title": None}).json()["title"] is None
    assert client.patch("/api/sessions/one", json={}).json()["tags"] == ["Travel", "winter 2026"]


def test_invalid_changes_are_rejected_with_a_reason(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one")
    add_session(db, "two")
    db.set_session_title("two", "Oslo")
    taken = client.patch("/api/sessions/one", json={"title": "Oslo"})
    assert (taken.status_code, "Oslo" in taken.json()["detail"]) == (409, True)
    assert client.patch("/api/sessions/one", json={"tags": ["  "]}).status_code == 400
    assert client.patch("/api/sessions/one", json={"tags": ["x" * 41]}).status_code == 400
    assert client.patch("/api/sessions/nobody", json={}).status_code == 404
    client.delete("/api/sessions/one")
    assert client.patch("/api/sessions/one", json={"pinned": True}).status_code == 409
    assert client.delete("/api/sessions/one").status_code == 409


def test_trashed_sessions_are_restored_or_purged(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", "secret words")
    db.set_session_title("one", "Oslo")
    db.tags.replace("one", ["travel"])
    assert client.delete("/api/trash/one").status_code == 404
    client.delete("/api/sessions/one")
    shown = client.get("/api/sessions/one").json()
    assert shown["title"] == "Oslo"
    assert shown["trashed_at"] > 0
    assert client.post("/api/sessions/one/restore").json()["tags"] == ["travel"]
    assert client.post("/api/sessions/one/restore").status_code == 404
    client.delete("/api/sessions/one")
    assert client.delete("/api/trash/one").status_code == 204
    assert client.get("/api/sessions/one").status_code == 404
    assert db.facets.facets().tags == {}


def test_emptying_the_trash_keeps_other_sessions(db: SessionDB, client: httpx.Client) -> None:
    for name in ("one", "two", "three"):
        add_session(db, name)
    client.post("/api/sessions/bulk", json={"ids": ["one", "two"], "action": "trash"})
    assert client.delete("/api/trash").json() == {"purged": 2}
    assert db.get_session("three") is not None


def test_bulk_changes_report_failures(db: SessionDB, client: httpx.Client) -> None:
    for name in ("one", "two"):
        add_session(db, name)
    report = client.post(
        "/api/sessions/bulk", json={"ids": ["one", "nobody", "two"], "action": "tag", "tag": "x"}
    ).json()
    assert report["done"] == ["one", "two"]
    assert [item["id"] for item in report["failed"]] == ["nobody"]
    assert db.facets.facets().tags == {"x": 2}
    for action, key, value in (
        ("untag", "tags", []),
        ("pin", "pinned", True),
        ("unpin", "pinned", False),
        ("archive", "archived", True),
        ("unarchive", "archived", False),
    ):
        body = {"ids": ["one"], "action": action, "tag": "X"}
        assert client.post("/api/sessions/bulk", json=body).json()["done"] == ["one"]
        assert client.get("/api/sessions/one").json()[key] == value
    client.post("/api/sessions/bulk", json={"ids": ["one", "two"], "action": "trash"})
    again = client.post("/api/sessions/bulk", json={"ids": ["one"], "action": "pin"}).json()
    assert "trash" in again["failed"][0]["detail"]
    restored = client.post("/api/sessions/bulk", json={"ids": ["one", "two"], "action": "restore"})
    both = ["one", "two"]
    assert restored.json() == {"done": both, "changed": both, "failed": []}
    assert client.post("/api/sessions/bulk", json={"ids": [], "action": "tag"}).status_code == 400


@pytest.mark.parametrize("action", ["pin", "archive", "tag", "trash", "unpin", "unarchive"])
def test_bulk_changes_report_unchanged_sessions(
    db: SessionDB, client: httpx.Client, action: str
) -> None:
    def ask(ids: list[str], what: str) -> dict[str, Any]:
        body = {"ids": ids, "action": what, "tag": "X"}
        result: dict[str, Any] = client.post("/api/sessions/bulk", json=body).json()
        return result

    for name in ("one", "two"):
        add_session(db, name)
    if action.startswith("un"):
        ask(["two"], action.removeprefix("un"))
    else:
        ask(["one"], action)
    report = ask(["one", "two"], action)
    assert report == {"done": ["one", "two"], "changed": ["two"], "failed": []}
    assert ask(["one", "two"], action)["changed"] == []


def test_message_pages_are_contiguous_across_continuations(
    db: SessionDB, client: httpx.Client
) -> None:
    add_session(db, "first", *(f"a{n}" for n in range(10)))
    db.end_session("first", "compression")
    add_session(db, "second", *(f"b{n}" for n in range(5)), parent_session_id="first")
    everything = [f"a{n}" for n in range(10)] + [f"b{n}" for n in range(5)]
    page = read(client, "second", limit=4)
    assert (texts(page), page["has_before"], page["has_after"]) == (everything[-4:], True, False)
    seen = texts(page)
    while page["has_before"]:
        page = read(client, "first", limit=4, before=page["items"][0]["id"])
        seen = texts(page) + seen
        assert page["has_after"]
    assert seen == everything
    after = read(client, "first", limit=3, after=page["items"][-1]["id"])
    assert texts(after) == everything[len(page["items"]) :][:3]


@pytest.mark.parametrize(
    ("place", "expected"), [(0, "0 1 2 3 4"), (7, "5 6 7 8 9"), (14, "10 11 12 13 14")]
)
def test_a_page_around_a_message(
    db: SessionDB, client: httpx.Client, place: int, expected: str
) -> None:
    add_session(db, "one", *(str(n) for n in range(15)))
    ids = [message["id"] for message in db.get_messages("one")]
    page = read(client, "one", limit=5, around=ids[place])
    assert texts(page) == expected.split()
    assert (page["has_before"], page["has_after"]) == (place > 2, place < 12)
    assert client.get("/api/sessions/one/messages?around=999999").status_code == 404


def test_huge_messages_shorten_pages(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", *(f"{n}" + "x" * 1_500_000 for n in range(5)))
    last = read(client, "one")
    assert [text[0] for text in texts(last)] == ["3", "4"]
    assert last["has_before"]
    middle = [message["id"] for message in db.get_messages("one")][2]
    around = read(client, "one", around=middle)
    assert "2" in [text[0] for text in texts(around)]
    assert around["has_before"]
    db.append_message("one", "user", "y" * 6_000_000)
    assert [text[0] for text in texts(read(client, "one"))] == ["y"]


def test_undone_and_compacted_messages_are_marked(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", "a", "b", "c", "d")
    db.archive_and_compact("one", [{"role": "user", "content": "summary"}])
    db.append_message("one", "user", "e")
    db.edits.undo("one")
    states = {item["text"]: item["state"] for item in read(client, "one")["items"]}
    assert states == {
        **dict.fromkeys("abcd", "compacted"),
        "summary": "active",
        "e": "undone",
    }
    assert "e" not in texts(read(client, "one", inactive=False))
    assert "a" in texts(read(client, "one", inactive=False))


def test_tool_calls_images_and_failures_are_returned(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    stored = media_store.of_home().keep(PNG, "cat.png")
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": media_store.of_home().reference(stored.path)}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://elsewhere.example/track.png"}},
    ]
    db.create_session("one", "cli", is_owned=False)
    db.append_message("one", "user", parts)
    call = {"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "false"}'}}
    db.append_message("one", "assistant", None, tool_calls=[call], reasoning="hm")
    db.append_message("one", "tool", '{"exit_code": 1}', tool_name="terminal", tool_call_id="c1")
    db.append_message("one", "tool", '{"exit_code": 0}', tool_name="terminal", tool_call_id="c2")
    first, call_message, failed, fine = read(client, "one")["items"]
    url = f"/api/media/{stored.path.name}"
    assert first["text"] == "look\n[image]"
    assert first["images"] == [url, "data:image/png;base64,AAAA"]
    assert (call_message["reasoning"], call_message["is_failure"]) == ("hm", None)
    assert call_message["tool_calls"] == [
        {"id": "c1", "name": "terminal", "arguments": '{"command": "false"}'}
    ]
    assert (failed["is_failure"], fine["is_failure"]) == (True, False)
    picture = client.get(url)
    assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
    assert client.get("/api/media/" + "0" * 64 + ".png").status_code == 404
    for wrong in ("..%2f..%2fconfig.yaml", "x", "0" * 63):
        assert client.get(f"/api/media/{wrong}").status_code in (404, 422)


def test_files_with_possible_scripts_are_downloads(client: httpx.Client) -> None:
    result = media_store.of_home().keep(b"<svg onload='alert(1)'/>", "x.svg")
    response = client.get(f"/api/media/{result.path.name}")
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"].startswith("attachment")


def test_exports_can_be_imported_again(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", "hello", "half \ud83d")
    add_session(db, "two", "there")
    for form, words in (("markdown", b"hello"), ("html", b"<html"), ("json", b'"hello"')):
        response = client.get("/api/sessions/one/export", params={"format": form})
        assert response.status_code == 200
        assert words in response.content
        assert response.headers["content-disposition"].startswith("attachment")
    file = client.get("/api/sessions/one/export", params={"format": "jsonl"}).content
    both = client.post("/api/export", json={"ids": ["two", "one"]}).content
    everything = client.post("/api/export", json={}).content
    assert b'"two"' not in file
    for exported in (both, everything):
        assert b"there" in exported
    db.delete_session("one")
    db.trash.purge("one")
    dry = client.post("/api/import", params={"dry_run": True}, content=file).json()["report"]
    assert (dry["imported"], dry["is_dry_run"], db.get_session("one")) == (1, True, None)
    assert client.post("/api/import", content=everything).json()["report"]["imported"] == 1
    assert db.get_messages("one")[1]["content"] == "half \ud83d"
    assert client.post("/api/import", content=b"nonsense").status_code == 400


def test_a_conversation_has_an_outline_and_can_be_searched(
    db: SessionDB, client: httpx.Client
) -> None:
    db.create_session("long", "cli", is_owned=False)
    pictured = [{"type": "text", "text": "Second\nquestion"}, {"type": "image", "url": "x"}]
    first = db.append_message("long", "user", "First question about fjords", timestamp=10.0)
    answer = db.append_message("long", "assistant", "A Fjord is deep.", timestamp=11.0)
    db.append_message("long", "tool", "the fjordland map", tool_name="terminal")
    db.end_session("long", "compression")
    db.create_session("later", "cli", parent_session_id="long", is_owned=False)
    second = db.append_message("later", "user", pictured, timestamp=12.0)
    outline = client.get("/api/sessions/later/outline").json()["items"]
    assert [item["id"] for item in outline] == [first, second]
    assert outline[0] == {"id": first, "timestamp": 10.0, "text": "First question about fjords"}
    assert outline[1]["text"].startswith("Second question")
    found = client.get("/api/sessions/later/find", params={"q": "fjord"}).json()
    assert found == {"message_ids": [first, answer, answer + 1], "is_capped": False}
    assert client.get("/api/sessions/later/find", params={"q": " "}).json()["message_ids"] == []
    assert client.get("/api/sessions/later/find", params={"q": "-x"}).status_code == 400
