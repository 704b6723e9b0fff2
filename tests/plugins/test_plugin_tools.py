"""Tools of plugins: availability, calls and isolation."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from support.agent_conversation import open_conversation, tool_call_step
from support.plugin_folders import enable_plugins
from support.waiting import act_when

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DICE = """
import asyncio, json, os, time
from pathlib import Path
SCHEMA = {"name": "roll", "description": "Roll dice.", "parameters": {
    "type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}}
def roll(args, **kwargs):
    return json.dumps({"rolled": args["sides"], **kwargs})
def plain(args):
    return {"got": args}
async def slow(args, session_id, **kwargs):
    return json.dumps({"async": True, "session": session_id})
def bad(args, **kwargs):
    raise ValueError("no dice")
def leave(args, **kwargs):
    raise SystemExit(3)
def cancel(args, **kwargs):
    raise asyncio.CancelledError
async def cancel_later(args, **kwargs):
    raise asyncio.CancelledError
def give_up(args, **kwargs):
    raise GeneratorExit
def hang(args, **kwargs):
    Path(os.environ["HERMES_HOME"], "hanging").touch()
    time.sleep(600)
def nothing(args, **kwargs):
    return None
def register(ctx):
    ctx.register_tool("roll", "games", SCHEMA, roll)
    ctx.register_tool("plain", "games", {"type": "object", "properties": {}}, plain)
    ctx.register_tool("slow", "games", {"type": "function", "function": SCHEMA}, slow,
                      is_async=True, description="Slowly.")
    for handler in (bad, leave, cancel, cancel_later, give_up, hang, nothing):
        ctx.register_tool(handler.__name__, "games", {}, handler)
"""


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[None]:
    hermes_plugin_host.active.cache_clear()
    yield
    hermes_plugin_host.active.cache_clear()


@pytest.fixture
def dice(hermes_home: Path) -> Path:
    return enable_plugins(hermes_home, dice=DICE)


def test_the_model_can_call_a_tool_of_a_plugin(dice: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path, tool_call_step("roll", {"sides": 6})) as conversation:
        (result,) = conversation.results()
        results = {
            tool["function"]["name"]: tool["function"]
            for tool in conversation.first_request()["tools"]
        }
        session_id = conversation.bundle.agent.session_id
    assert results["roll"]["description"] == "Roll dice."
    assert results["roll"]["parameters"]["required"] == ["sides"]
    assert result["rolled"] == 6
    assert result["session_id"] == result["task_id"] == session_id
    assert {"turn_id", "tool_call_id"} <= set(result)


def test_schemas_in_every_usual_form_are_understood(dice: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path) as conversation:
        conversation.results()
        result = {
            tool["function"]["name"]: tool["function"]
            for tool in conversation.first_request()["tools"]
        }
    assert result["slow"]["description"] == "Slowly."
    assert result["slow"]["parameters"]["required"] == ["sides"]
    assert result["bad"]["parameters"] == {"type": "object", "properties": {}}
    assert all(tool["description"] for tool in result.values())


def test_handlers_may_be_async_take_no_keywords_and_return_anything(
    dice: Path, tmp_path: Path
) -> None:
    steps = [
        tool_call_step("slow", {}),
        tool_call_step("plain", {"a": 1}),
        tool_call_step("nothing", {}),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        slow, plain, nothing = conversation.results()
    assert slow["async"] is True
    assert plain == {"got": {"a": 1}}
    assert nothing == {"error": None}


def test_an_exception_of_a_handler_is_returned_as_an_error(dice: Path, tmp_path: Path) -> None:
    with open_conversation(
        tmp_path, tool_call_step("bad", {}), tool_call_step("leave", {})
    ) as conversation:
        bad, leave = conversation.results()
    assert bad["error"] == "ValueError: no dice"
    assert leave["error"] == "PluginError: the tool called sys.exit (3)"


def test_a_handler_that_cancels_itself_has_failed(dice: Path, tmp_path: Path) -> None:
    steps = [tool_call_step("cancel", {}), tool_call_step("cancel_later", {})]
    with open_conversation(tmp_path, *steps) as conversation:
        errors = [result["error"] for result in conversation.results()]
    assert errors == ["PluginError: the tool was cancelled"] * 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_handler_that_ends_its_thread_has_failed(dice: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path, tool_call_step("give_up", {})) as conversation:
        (result,) = conversation.results()
    assert result["error"] == "The tool ended without a result."


def test_a_hanging_handler_does_not_delay_an_interrupt(dice: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path, tool_call_step("hang", {})) as conversation:
        act_when((dice / "hanging").exists, lambda: conversation.bundle.agent.interrupt("enough"))
        (result,) = conversation.results()
    assert result["error"] == "Stopped: enough."


REGISTER_CODE = """
def register(ctx):
    ctx.register_tool({name!r}, "x", {{}}, lambda args, **kwargs: {answer!r}, {options})
"""


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("gone", "check_fn=lambda: False", "its availability check failed"),
        ("gone", "check_fn=lambda: 1 / 0", "its availability check failed"),
        ("gone", "check_fn=lambda: exit(3)", "its availability check failed"),
        (
            "gone",
            "requires_env=('NO_SUCH_VARIABLE',)",
            "missing environment variable NO_SUCH_VARIABLE",
        ),
        ("not a name", "", "letters"),
        ("read_file", "", "already in use"),
    ],
)
def test_a_tool_that_cannot_be_used_is_not_offered_and_the_log_says_why(
    hermes_home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, options: str,
    why: str,
) -> None:  # fmt: skip
    enable_plugins(hermes_home, one=REGISTER_CODE.format(name=name, answer="mine", options=options))
    with caplog.at_level(logging.WARNING), open_conversation(tmp_path) as conversation:
        conversation.results()
        names = conversation.tool_names()
        origins = {item.name: item.origin for item in conversation.bundle.inventory()}
    assert name not in names or origins[name] == "standard"
    assert f"tool {name} of plugin one skipped" in caplog.text
    assert why in caplog.text


def test_an_overriding_tool_replaces_a_standard_one(hermes_home: Path, tmp_path: Path) -> None:
    with open_conversation(tmp_path) as conversation:
        conversation.results()
        before = conversation.tool_names()
    code = REGISTER_CODE.format(name="read_file", answer='{"mine": 1}', options="override=True")
    enable_plugins(hermes_home, one=code)
    with open_conversation(tmp_path, tool_call_step("read_file", {"path": "x"})) as conversation:
        assert conversation.results() == [{"mine": 1}]
        assert conversation.tool_names() == before
        origins = {item.name: item.origin for item in conversation.bundle.inventory()}
    assert origins["read_file"] == "plugin one"
    assert origins["write_file"] == "standard"


def test_of_two_plugins_with_one_name_the_first_by_key_counts(
    hermes_home: Path, tmp_path: Path
) -> None:
    codes = {key: REGISTER_CODE.format(name="same", answer=f'"{key}"', options="") for key in "ba"}
    enable_plugins(hermes_home, **codes)
    with open_conversation(tmp_path, tool_call_step("same", {})) as conversation:
        assert conversation.results() == ["a"]


def test_the_order_of_tools_is_the_same_each_time(dice: Path, tmp_path: Path) -> None:
    sent = []
    for _ in range(2):
        hermes_plugin_host.active.cache_clear()
        with open_conversation(tmp_path) as conversation:
            conversation.results()
            sent.append(conversation.first_request()["tools"])
    assert sent[0] == sent[1]


def test_a_sub_agent_has_the_tools_of_plugins(dice: Path, tmp_path: Path) -> None:
    steps = [
        tool_call_step("delegate_task", {"tasks": [{"goal": "roll"}]}),
        tool_call_step("roll", {"sides": 4}),
    ]
    with open_conversation(tmp_path, *steps, {"say": "It was a four."}) as conversation:
        (result,) = conversation.results()
        child = conversation.server.requests[2]["messages"]
    assert result["results"][0]["report"] == "It was a four."
    assert '"rolled": 4' in child[-1]["content"]


def test_the_plugin_host_is_not_imported_without_plugins(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from hermes_conversation.extensions import Extensions, with_plugins\n"
        "from hermes_core.config.file import ConfigFile\n"
        "from pathlib import Path\n"
        f"extensions = Extensions.load(ConfigFile.of_home(), Path({str(tmp_path)!r}), dict)\n"
        "assert extensions.tools() == [] and with_plugins([]).tools == []\n"
        "heavy = {'hermes_plugin_host', 'mcp', 'ruamel.yaml', 'asyncio',\n"
        "         'hermes_agent.mcp.server_pool'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
