"""`find_tools` and `call_tool` in a conversation: small schemas, approval for changes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.agent_conversation import open_conversation, tool_call_step
from support.mcp_process import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

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
    with open_conversation(tmp_path) as conversation:
        conversation.results()
        assert not {"find_tools", "call_tool"} & set(conversation.tool_names())


def test_the_model_finds_a_tool_by_keywords_and_calls_it(shop: Path, tmp_path: Path) -> None:
    steps = [
        tool_call_step("find_tools", {"query": "what costs"}),
        tool_call_step("call_tool", PRICE),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        results, result = conversation.results()
        assert conversation.prompter.requests == []
    assert results["tools"][0]["name"] == "shop/price"
    assert results["tools"][0]["parameters"]["required"] == ["item"]
    assert result == {"result": "tea costs 3", "error": None}


def test_an_empty_query_lists_all_names_and_unavailable_servers(
    hermes_home: Path, tmp_path: Path
) -> None:
    configure(hermes_home, {"shop": SHOP, "bad": {"command": "no-such-program"}, "odd": 7})
    with open_conversation(tmp_path, tool_call_step("find_tools", {"query": ""})) as conversation:
        (result,) = conversation.results()
    assert result["names"][:2] == ["shop/price", "shop/order"]
    assert "no-such-program" in result["unavailable"]["bad"]
    assert "command or url" in result["unavailable"]["odd"]


def test_the_tool_schemas_of_every_request_are_small_and_equal(shop: Path, tmp_path: Path) -> None:
    sent = []
    for _ in range(2):
        with open_conversation(tmp_path) as conversation:
            conversation.results()
            sent.append(conversation.first_request()["tools"])
    mcp_tools = [
        tool for tool in sent[0] if tool["function"]["name"] in {"find_tools", "call_tool"}
    ]
    assert sent[0] == sent[1]
    assert len(json.dumps(mcp_tools)) / 4 < 150
    assert len(json.dumps(sent[0])) / 4 < 1500


def test_of_many_tools_a_few_are_described_and_the_others_named(
    hermes_home: Path, tmp_path: Path
) -> None:
    configure(hermes_home, {"shop": {**SHOP, "args": [PROGRAM, "stdio", "--many", "50"]}})
    with open_conversation(
        tmp_path, tool_call_step("find_tools", {"query": "Shelf"})
    ) as conversation:
        (result,) = conversation.results()
        assert len(json.dumps(conversation.first_request()["tools"])) / 4 < 1500
    names = [tool["name"] for tool in result["tools"]] + result["more"]
    assert len(result["tools"]) == 10
    assert sorted(names) == [f"shop/shelf{number:02}" for number in range(50)]
    assert len(json.dumps(result)) < 21_000


def test_a_call_that_may_change_things_requires_approval(shop: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path, tool_call_step("call_tool", ORDER)) as conversation:
        (result,) = conversation.results()
        (request,) = conversation.prompter.requests
    assert "denied this" in result["error"]
    assert request.command == 'call_tool shop/order {"item": "tea"}'
    assert request.pattern_keys == ("mcp:shop/order",)
    assert "shop/order" in request.description


@pytest.mark.parametrize(("reply", "request_count"), [("once", 2), ("session", 1), ("always", 1)])
def test_an_approval_covers_its_scope(
    shop: Path, tmp_path: Path, reply: str, request_count: int
) -> None:
    steps = [tool_call_step("call_tool", ORDER), tool_call_step("call_tool", ORDERS)]
    with open_conversation(tmp_path, *steps, reply=reply) as conversation:
        assert [result["result"] for result in conversation.results()] == [
            "ordered 1 tea",
            "ordered 5 tea",
        ]
        assert len(conversation.prompter.requests) == request_count
    with open_conversation(tmp_path, tool_call_step("call_tool", ORDER)) as conversation:
        conversation.results()
        assert len(conversation.prompter.requests) == (0 if reply == "always" else 1)


@pytest.mark.parametrize(
    ("mode", "call", "request_count"),
    [("full", ORDER, 0), ("workspace", PRICE, 0), ("plan", PRICE, 0), ("plan", ORDER, 1)],
)
def test_the_mode_decides_what_requires_approval(
    hermes_home: Path, tmp_path: Path, mode: str, call: dict[str, Any], request_count: int
) -> None:
    configure(hermes_home, {"shop": SHOP}, agent={"approvals": mode})
    with open_conversation(
        tmp_path, tool_call_step("call_tool", call), reply="once"
    ) as conversation:
        assert conversation.results()[0]["error"] is None
        assert len(conversation.prompter.requests) == request_count


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
def test_an_invalid_call_returns_an_error_without_asking_for_approval(
    hermes_home: Path, tmp_path: Path, call: dict[str, Any], error: str
) -> None:
    configure(hermes_home, {"shop": SHOP, "gone": {"command": "no-such-program"}})
    with open_conversation(tmp_path, tool_call_step("call_tool", call)) as conversation:
        assert error in conversation.results()[0]["error"]
        assert conversation.prompter.requests == []


def test_arguments_may_be_a_json_string(shop: Path, tmp_path: Path) -> None:
    price = {"name": "shop/price", "arguments": '{"item": "tea"}'}
    with open_conversation(tmp_path, tool_call_step("call_tool", price)) as conversation:
        assert conversation.results()[0]["result"] == "tea costs 3"


def test_a_failure_of_a_server_tool_is_returned_as_an_error(shop: Path, tmp_path: Path) -> None:
    fail = {"name": "shop/fail", "arguments": {}}
    with open_conversation(tmp_path, tool_call_step("call_tool", fail)) as conversation:
        assert "out of stock" in conversation.results()[0]["error"]


def test_several_calls_run_at_the_same_time(shop: Path, tmp_path: Path) -> None:
    sleep = {"name": "shop/sleep", "arguments": {"seconds": 0.5}}
    with open_conversation(tmp_path, tool_call_step("call_tool", *[sleep] * 4)) as conversation:
        assert [result["result"] for result in conversation.results()] == ["slept"] * 4


def test_the_inventory_lists_the_origin_of_each_tool(hermes_home: Path, tmp_path: Path) -> None:
    configure(hermes_home, {"shop": SHOP, "bad": {"command": "no-such-program"}})
    with open_conversation(tmp_path) as conversation:
        items = conversation.bundle.inventory()
    origins = {item.name: item.origin for item in items}
    assert origins["terminal"] == "standard"
    assert origins["shop/price"] == "mcp shop"
    assert [item.problem for item in items if item.origin == "mcp bad"] == [
        "The MCP server bad is unavailable: program not found: no-such-program."
    ]
    assert all("\n" not in item.description for item in items)


def test_without_the_sdk_the_error_names_the_install_command(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as if it were not installed
    with open_conversation(tmp_path, tool_call_step("find_tools", {"query": "x"})) as conversation:
        (result,) = conversation.results()
        problems = [item.problem for item in conversation.bundle.inventory() if item.problem]
    assert "hermes mcp add" in result["unavailable"]["shop"]
    assert problems == [result["unavailable"]["shop"]]


def test_a_sub_agent_may_use_read_only_tools(shop: Path, tmp_path: Path) -> None:
    steps = [
        tool_call_step("delegate_task", {"tasks": [{"goal": "shop"}]}),
        tool_call_step("call_tool", PRICE, ORDER),
        {"say": "It costs 3."},
    ]
    with open_conversation(tmp_path, *steps, reply="once") as conversation:
        conversation.results()
        child = conversation.server.requests[2]["messages"]
        assert conversation.prompter.requests == []
    answers = " ".join(message["content"] for message in child if message["role"] == "tool")
    assert "tea costs 3" in answers
    assert "no user can be asked" in answers
