"""`find_tools` and `call_tool` in a conversation: small, asked for when they may change things."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.talks import calls, conversation

PROGRAM = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
SHOP = {"command": sys.executable, "args": [PROGRAM, "stdio"]}
ORDER = {"name": "shop/order", "arguments": {"item": "tea"}}
ORDERS = {"name": "shop/order", "arguments": {"item": "tea", "count": 5}}
PRICE = {"name": "shop/price", "arguments": {"item": "tea"}}


def configure(home: Path, servers: dict[str, Any], **sections: Any) -> None:
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": servers, **sections}))


@pytest.fixture
def shop(hermes_home: Path) -> Path:
    configure(hermes_home, {"shop": SHOP})
    return hermes_home


def test_without_servers_there_are_no_tools_for_them(hermes_home: Path, tmp_path: Path) -> None:
    configure(hermes_home, {"shop": {**SHOP, "enabled": False}})
    with conversation(tmp_path) as talk:
        talk.results()
        assert not {"find_tools", "call_tool"} & set(talk.tool_names())


def test_the_model_finds_a_tool_by_words_and_calls_it(shop: Path, tmp_path: Path) -> None:
    steps = [calls("find_tools", {"query": "what costs"}), calls("call_tool", PRICE)]
    with conversation(tmp_path, *steps) as talk:
        results, result = talk.results()
        assert talk.person.asked == []
    assert results["tools"][0]["name"] == "shop/price"
    assert results["tools"][0]["parameters"]["required"] == ["item"]
    assert result == {"result": "tea costs 3", "error": None}


def test_an_empty_query_lists_all_names_and_who_is_out_of_reach(
    hermes_home: Path, tmp_path: Path
) -> None:
    configure(hermes_home, {"shop": SHOP, "bad": {"command": "no-such-program"}, "odd": 7})
    with conversation(tmp_path, calls("find_tools", {"query": ""})) as talk:
        (result,) = talk.results()
    assert result["names"][:2] == ["shop/price", "shop/order"]
    assert "no-such-program" in result["unavailable"]["bad"]
    assert "command or url" in result["unavailable"]["odd"]


def test_what_is_sent_with_every_request_is_small_and_the_same(shop: Path, tmp_path: Path) -> None:
    sent = []
    for _ in range(2):
        with conversation(tmp_path) as talk:
            talk.results()
            sent.append(talk.sent()["tools"])
    own = [tool for tool in sent[0] if tool["function"]["name"] in {"find_tools", "call_tool"}]
    assert sent[0] == sent[1]
    assert len(json.dumps(own)) / 4 < 150
    assert len(json.dumps(sent[0])) / 4 < 1500


def test_of_many_tools_a_few_are_described_and_the_others_named(
    hermes_home: Path, tmp_path: Path
) -> None:
    configure(hermes_home, {"shop": {**SHOP, "args": [PROGRAM, "stdio", "--many", "50"]}})
    with conversation(tmp_path, calls("find_tools", {"query": "Shelf"})) as talk:
        (result,) = talk.results()
        assert len(json.dumps(talk.sent()["tools"])) / 4 < 1500
    names = [tool["name"] for tool in result["tools"]] + result["more"]
    assert len(result["tools"]) == 10
    assert sorted(names) == [f"shop/shelf{number:02}" for number in range(50)]
    assert len(json.dumps(result)) < 21_000


def test_a_call_that_may_change_things_is_asked_for(shop: Path, tmp_path: Path) -> None:
    with conversation(tmp_path, calls("call_tool", ORDER)) as talk:
        (result,) = talk.results()
        (asked,) = talk.person.asked
    assert "denied this" in result["error"]
    assert asked.command == 'call_tool shop/order {"item": "tea"}'
    assert asked.pattern_keys == ("mcp:shop/order",)
    assert "shop/order" in asked.description


@pytest.mark.parametrize(("reply", "asked"), [("once", 2), ("session", 1), ("always", 1)])
def test_an_answer_covers_what_it_was_given_for(
    shop: Path, tmp_path: Path, reply: str, asked: int
) -> None:
    steps = [calls("call_tool", ORDER), calls("call_tool", ORDERS)]
    with conversation(tmp_path, *steps, reply=reply) as talk:
        assert [result["result"] for result in talk.results()] == ["ordered 1 tea", "ordered 5 tea"]
        assert len(talk.person.asked) == asked
    with conversation(tmp_path, calls("call_tool", ORDER)) as talk:
        talk.results()
        assert len(talk.person.asked) == (0 if reply == "always" else 1)


@pytest.mark.parametrize(
    ("mode", "call", "asked"),
    [("full", ORDER, 0), ("workspace", PRICE, 0), ("plan", PRICE, 0), ("plan", ORDER, 1)],
)
def test_the_mode_decides_what_is_asked_for(
    hermes_home: Path, tmp_path: Path, mode: str, call: dict[str, Any], asked: int
) -> None:
    configure(hermes_home, {"shop": SHOP}, agent={"approvals": mode})
    with conversation(tmp_path, calls("call_tool", call), reply="once") as talk:
        assert talk.results()[0]["error"] is None
        assert len(talk.person.asked) == asked


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"name": "shop/nothing", "arguments": {}}, "has no tool 'nothing'"),
        ({"name": "nothing", "arguments": {}}, "is not a tool name"),
        ({"arguments": {}}, "`name` is missing"),
        ({"name": "shop/order", "arguments": [1]}, "must be an object"),
        ({"name": "shop/order", "arguments": "{"}, "not valid JSON"),
        ({"name": "gone/order", "arguments": {}}, "no-such-program"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered_and_nobody_is_asked(
    hermes_home: Path, tmp_path: Path, call: dict[str, Any], error: str
) -> None:
    configure(hermes_home, {"shop": SHOP, "gone": {"command": "no-such-program"}})
    with conversation(tmp_path, calls("call_tool", call)) as talk:
        assert error in talk.results()[0]["error"]
        assert talk.person.asked == []


def test_arguments_may_be_written_as_a_text(shop: Path, tmp_path: Path) -> None:
    price = {"name": "shop/price", "arguments": '{"item": "tea"}'}
    with conversation(tmp_path, calls("call_tool", price)) as talk:
        assert talk.results()[0]["result"] == "tea costs 3"


def test_a_failure_of_the_servers_tool_is_a_failure(shop: Path, tmp_path: Path) -> None:
    fail = {"name": "shop/fail", "arguments": {}}
    with conversation(tmp_path, calls("call_tool", fail)) as talk:
        assert "out of stock" in talk.results()[0]["error"]


def test_several_calls_run_at_the_same_time(shop: Path, tmp_path: Path) -> None:
    sleep = {"name": "shop/sleep", "arguments": {"seconds": 0.5}}
    with conversation(tmp_path, calls("call_tool", *[sleep] * 4)) as talk:
        assert [result["result"] for result in talk.results()] == ["slept"] * 4


def test_the_list_for_people_says_where_tools_come_from(hermes_home: Path, tmp_path: Path) -> None:
    configure(hermes_home, {"shop": SHOP, "bad": {"command": "no-such-program"}})
    with conversation(tmp_path) as talk:
        items = talk.talk.inventory()
    origins = {item.name: item.origin for item in items}
    assert origins["terminal"] == "standard"
    assert origins["shop/price"] == "mcp shop"
    assert [item.problem for item in items if item.origin == "mcp bad"] == [
        "The MCP server bad is unavailable: program not found: no-such-program."
    ]
    assert all("\n" not in item.description for item in items)


def test_without_the_sdk_the_answer_says_how_to_get_it(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as where it is not installed
    with conversation(tmp_path, calls("find_tools", {"query": "x"})) as talk:
        (result,) = talk.results()
        problems = [item.problem for item in talk.talk.inventory() if item.problem]
    assert "hermes mcp add" in result["unavailable"]["shop"]
    assert problems == [result["unavailable"]["shop"]]


def test_a_sub_agent_may_use_what_only_reads(shop: Path, tmp_path: Path) -> None:
    steps = [
        calls("delegate_task", {"tasks": [{"goal": "shop"}]}),
        calls("call_tool", PRICE, ORDER),
        {"say": "It costs 3."},
    ]
    with conversation(tmp_path, *steps, reply="once") as talk:
        talk.results()
        child = talk.server.requests[2]["messages"]
        assert talk.person.asked == []
    answers = " ".join(message["content"] for message in child if message["role"] == "tool")
    assert "tea costs 3" in answers
    assert "denied this" in answers
