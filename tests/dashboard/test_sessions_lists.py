"""Conversation lists over HTTP: pages, filters, facets, details and families."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from hermes_dashboard.resources import changes, sessions, transcripts
from hermes_state import SessionDB
from support.data_resources import serve_resources
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx

pytestmark = pytest.mark.clock

DAY = 86400.0
BEGIN = 1_780_000_000.0


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


@pytest.fixture
def client(db: SessionDB, hermes_home: Path) -> Iterator[httpx.Client]:
    with serve_resources(db, hermes_home, changes, sessions, transcripts) as client:
        yield client


def add_session(db: SessionDB, name: str, at: float = BEGIN, **fields: Any) -> str:
    """A conversation of two messages."""
    db.create_session(name, fields.pop("source", "cli"), started_at=at, is_owned=False, **fields)
    db.append_message(name, "user", f"hello from {name}", timestamp=at + 1)
    db.append_message(name, "assistant", "hello", timestamp=at + 2)
    return name


def names(client: httpx.Client, **query: Any) -> list[str]:
    response = client.get("/api/sessions", params=query)
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


def test_pages_have_no_gaps_while_conversations_are_added(
    db: SessionDB, client: httpx.Client
) -> None:
    for number in range(25):
        add_session(db, f"s{number:02}", BEGIN + number // 3)  # three with the same time
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 4}
    while True:
        page = client.get("/api/sessions", params=query).json()
        assert page["total"] == (25 if not seen else None)
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        add_session(db, f"new{len(seen)}", BEGIN + DAY)
        query["cursor"] = page["next"]
    assert seen == sorted((f"s{n:02}" for n in range(25)), key=lambda s: (int(s[1:]) // 3, s))[::-1]


@pytest.mark.parametrize(
    "cursor", ["?", "bm8", "W10", "WzEsMl0", "W251bGwsIngiXQ", "ä", "WzFlOTk5LCAieCJd"]
)
def test_an_invalid_cursor_is_rejected(client: httpx.Client, cursor: str) -> None:
    response = client.get("/api/sessions", params={"cursor": cursor})
    assert response.status_code == 400
    assert "cursor" in response.json()["detail"]


def test_filters_select_sessions(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", BEGIN, source="cli", model="gpt-5", cwd="/work/hermes")
    add_session(db, "two", BEGIN + DAY, source="telegram", model="claude-sonnet")
    add_session(
        db, "three", BEGIN + 2 * DAY, source="tui", model="gpt-5-mini", cwd="/work/hermes/src"
    )
    db.append_message("three", "user", "more", timestamp=BEGIN + 2 * DAY + 3)
    assert names(client) == ["three", "two", "one"]
    assert names(client, source=["cli", "tui"]) == ["three", "one"]
    assert names(client, model="GPT") == ["three", "one"]
    assert names(client, folder="/work/hermes/") == ["three", "one"]
    assert names(client, since=BEGIN + DAY, until=BEGIN + 2 * DAY) == ["two"]
    assert names(client, min_messages=3) == ["three"]
    assert names(client, max_messages=2) == ["two", "one"]
    assert names(client, ids="one,two,unknown") == ["two", "one"]
    assert names(client, state="archived") == []


@pytest.mark.parametrize(
    "query",
    [{"limit": 0}, {"limit": 501}, {"state": "x"}, {"hour": 24}, {"weekday": 7}, {"since": "nan"}],
)
def test_invalid_values_are_rejected(client: httpx.Client, query: dict[str, Any]) -> None:
    assert client.get("/api/sessions", params=query).status_code == 422


def test_pins_the_archive_and_the_trash_are_states(db: SessionDB, client: httpx.Client) -> None:
    for number, name in enumerate(("one", "two", "three")):
        add_session(db, name, BEGIN + number)
    assert client.patch("/api/sessions/one", json={"pinned": True}).json()["pinned"] is True
    assert client.patch("/api/sessions/two", json={"archived": True}).json()["archived"] is True
    assert client.delete("/api/sessions/three").json() == {"trashed": ["three"]}
    assert names(client) == ["one"]
    assert names(client, pinned=True) == ["one"]
    assert names(client, state="archived") == ["two"]
    assert names(client, state="trash") == ["three"]
    assert names(client, state="all") == ["three", "two", "one"]
    counts = client.get("/api/sessions/facets").json()["counts"]
    assert counts == {"active": 1, "archived": 1, "trash": 1}


def test_a_continued_conversation_is_listed_once_in_the_trash_too(
    db: SessionDB, client: httpx.Client
) -> None:
    add_session(db, "first", BEGIN)
    db.end_session("first", "compression")
    add_session(db, "second", BEGIN + 10, parent_session_id="first")
    db.create_session("helper", "subagent", parent_session_id="second", is_owned=False)
    assert names(client) == ["second"]
    assert sorted(names(client, children=True)) == ["first", "helper", "second"]
    item = client.get("/api/sessions", params={"ids": "first"}).json()["items"][0]
    assert (item["id"], item["started_at"]) == ("second", BEGIN)
    detail = client.get("/api/sessions/second").json()
    assert (detail["root_id"], detail["rows"]) == ("first", ["first", "second"])
    nodes = client.get("/api/sessions/first/tree").json()["nodes"]
    kinds = [(node["id"], node["kind"], node["is_current"]) for node in nodes]
    assert kinds == [
        ("first", "root", True),
        ("second", "continuation", False),
        ("helper", "delegate", False),
    ]
    trashed = client.delete("/api/sessions/second").json()["trashed"]
    assert sorted(trashed) == ["first", "helper", "second"]
    assert names(client, state="trash") == ["second"]


def test_a_session_is_found_by_prefix_and_title(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "20260101_aaaa", BEGIN)
    add_session(db, "20260101_aabb", BEGIN)
    db.set_session_title("20260101_aabb", "Oslo")
    db.update_system_prompt("20260101_aabb", "be kind")
    assert client.get("/api/sessions/20260101_aaa").json()["id"] == "20260101_aaaa"
    detail = client.get("/api/sessions/Oslo").json()
    assert detail["id"] == "20260101_aabb"
    assert detail["system_prompt"] == "be kind"
    assert detail["resume_command"].endswith(" hermes chat --resume 20260101_aabb")
    assert client.get("/api/sessions/20260101").status_code == 409
    assert client.get("/api/sessions/nobody").status_code == 404


def test_a_running_turn_is_visible(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", BEGIN)
    lease = db.leases.acquire("one")
    assert client.get("/api/sessions/one").json()["is_running"] is True
    db.leases.release(lease)
    assert client.get("/api/sessions/one").json()["is_running"] is False


def test_unindexed_sessions_of_another_program_appear(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "ours", BEGIN)
    db.engine.write(
        lambda tx: tx.many(
            "INSERT INTO sessions (id, source, started_at, message_count) VALUES (?, 'cli', ?, 0)",
            [(f"theirs{number:03}", BEGIN + 10 + number) for number in range(200)],
        )
    )
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": 30} | ({"cursor": cursor} if cursor else {})
        page = client.get("/api/sessions", params=query).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    theirs = [f"theirs{number:03}" for number in range(200)]
    assert seen == [*reversed(theirs), "ours"]


def test_a_lone_surrogate_does_not_break_lists(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "one", BEGIN)
    db.append_message("one", "user", "half \ud83d", timestamp=BEGIN + 3)
    assert names(client) == ["one"]
    shown = client.get("/api/sessions/one/messages").json()["items"][-1]
    assert shown["text"] == "half \\ud83d"


def test_a_list_is_filtered_by_duration(db: SessionDB, client: httpx.Client) -> None:
    add_session(db, "short")
    add_session(db, "long")
    db.append_message("long", "user", "still there?", timestamp=BEGIN + 600)
    assert names(client, min_seconds=60) == ["long"]
    assert names(client, max_seconds=60) == ["short"]
    assert names(client, min_seconds=600, max_seconds=600) == []


def test_a_list_is_filtered_by_a_part_of_the_title(db: SessionDB, client: httpx.Client) -> None:
    for name, title in (("one", "Flaky tests"), ("two", "100% of it"), ("three", "")):
        add_session(db, name)
        if title:
            db.set_session_title(name, title)
    assert names(client, name="flaky") == ["one"]
    assert names(client, name="0% o") == ["two"]
    assert names(client, name="_") == []


def test_lists_are_sorted_and_paged_by_every_key(db: SessionDB, client: httpx.Client) -> None:
    for number in range(9):
        name = add_session(db, f"s{number}", BEGIN + number * 5 % 9)
        db.update_token_counts(name, number * 2 % 9, 0, estimated_cost_usd=number * 4 % 9)
        for _ in range(number * 7 % 9):
            db.append_message(name, "user", "more", timestamp=BEGIN + 50)
    values = {
        "started": lambda item: item["started_at"],
        "messages": lambda item: item["message_count"],
        "tokens": lambda item: item["input_tokens"] + item["output_tokens"],
        "cost": lambda item: item["cost_usd"],
        "last_active": lambda item: item["last_active"],
    }
    for (sort, value), order in itertools.product(values.items(), ("asc", "desc")):
        query: dict[str, Any] = {"sort": sort, "order": order, "limit": 4}
        seen: list[tuple[float, str]] = []
        while True:
            page = client.get("/api/sessions", params=query).json()
            seen += [(value(item), item["id"]) for item in page["items"]]
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        assert seen == sorted(seen, reverse=order == "desc")
        assert len(seen) == 9
    query["sort"] = "cost"
    response = client.get("/api/sessions", params=query)
    assert (response.status_code, "another order" in response.json()["detail"]) == (400, True)


def test_conversations_are_sorted_by_their_tool_errors(db: SessionDB, client: httpx.Client) -> None:
    for number in range(4):
        name = add_session(db, f"s{number}", BEGIN + number)
        for call in range(number * 3 % 4):
            call_id = f"c{number}{call}"
            function = {"name": "terminal", "arguments": '{"command": "make"}'}
            calls = [{"id": call_id, "function": function}]
            db.append_message(name, "assistant", None, tool_calls=calls, timestamp=BEGIN + 5)
            result = '{"output": "no rule", "exit_code": 2}'
            db.append_message(
                name, "tool", result, tool_name="terminal", tool_call_id=call_id,
                timestamp=BEGIN + 6,
            )  # fmt: skip

    def counted() -> dict[str, int | None]:
        items = client.get("/api/sessions", params={"sort": "tool_errors"}).json()["items"]
        return {item["id"]: item["tool_errors"] for item in items}

    wait_until(lambda: None not in counted().values())
    assert list(counted().items()) == [("s1", 3), ("s2", 2), ("s3", 1), ("s0", 0)]
