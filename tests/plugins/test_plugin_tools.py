"""Tools of plugins: availability, calls and isolation."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import hermes_plugin_host
from support.plugin_folders import make_plugin
from support.talks import calls, conversation
from support.waiting import when

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
    return enabled(hermes_home, dice=DICE)


def enabled(home: Path, **codes: str) -> Path:
    for key, code in codes.items():
        make_plugin(home, key, code)
    (home / "config.yaml").write_text(f"plugins: {{enabled: [{', '.join(codes)}]}}\n")
    return home


def test_the_model_can_call_a_tool_of_a_plugin(dice: Path, tmp_path: Path) -> None:
    with conversation(tmp_path, calls("roll", {"sides": 6})) as talk:
        (result,) = talk.results()
        results = {tool["function"]["name"]: tool["function"] for tool in talk.sent()["tools"]}
        session_id = talk.talk.agent.session_id
    assert results["roll"]["description"] == "Roll dice."
    assert results["roll"]["parameters"]["required"] == ["sides"]
    assert result["rolled"] == 6
    assert result["session_id"] == result["task_id"] == session_id
    assert {"turn_id", "tool_call_id"} <= set(result)


def test_schemas_in_every_usual_form_are_understood(dice: Path, tmp_path: Path) -> None:
    with conversation(tmp_path) as talk:
        talk.results()
        result = {tool["function"]["name"]: tool["function"] for tool in talk.sent()["tools"]}
    assert result["slow"]["description"] == "Slowly."
    assert result["slow"]["parameters"]["required"] == ["sides"]
    assert result["bad"]["parameters"] == {"type": "object", "properties": {}}
    assert all(tool["description"] for tool in result.values())


def test_handlers_may_be_async_take_no_facts_and_answer_anything(
    dice: Path, tmp_path: Path
) -> None:
    steps = [calls("slow", {}), calls("plain", {"a": 1}), calls("nothing", {})]
    with conversation(tmp_path, *steps) as talk:
        slow, plain, nothing = talk.results()
    assert slow["async"] is True
    assert plain == {"got": {"a": 1}}
    assert nothing == {"error": None}


def test_whatever_a_handler_raises_is_an_answer(dice: Path, tmp_path: Path) -> None:
    with conversation(tmp_path, calls("bad", {}), calls("leave", {})) as talk:
        bad, leave = talk.results()
    assert bad["error"] == "ValueError: no dice"
    assert leave["error"] == "PluginError: the tool called sys.exit (3)"


def test_a_handler_that_cancels_itself_has_failed(dice: Path, tmp_path: Path) -> None:
    steps = [calls("cancel", {}), calls("cancel_later", {})]
    with conversation(tmp_path, *steps) as talk:
        errors = [result["error"] for result in talk.results()]
    assert errors == ["PluginError: the tool was cancelled"] * 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_handler_that_ends_its_thread_has_failed(dice: Path, tmp_path: Path) -> None:
    with conversation(tmp_path, calls("give_up", {})) as talk:
        (result,) = talk.results()
    assert result["error"] == "The tool ended without a result."


def test_a_handler_that_hangs_does_not_hold_up_a_stop(dice: Path, tmp_path: Path) -> None:
    with conversation(tmp_path, calls("hang", {})) as talk:
        when((dice / "hanging").exists, lambda: talk.talk.agent.interrupt("enough"))
        (result,) = talk.results()
    assert result["error"] == "Stopped: enough."


REGISTERING = """
def register(ctx):
    ctx.register_tool({name!r}, "x", {{}}, lambda args, **kwargs: {answer!r}, {more})
"""


@pytest.mark.parametrize(
    ("name", "more", "why"),
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
    hermes_home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, more: str,
    why: str,
) -> None:  # fmt: skip
    enabled(hermes_home, one=REGISTERING.format(name=name, answer="mine", more=more))
    with caplog.at_level(logging.WARNING), conversation(tmp_path) as talk:
        talk.results()
        names = talk.tool_names()
        origins = {item.name: item.origin for item in talk.talk.inventory()}
    assert name not in names or origins[name] == "standard"
    assert f"tool {name} of plugin one skipped" in caplog.text
    assert why in caplog.text


def test_a_tool_that_overrides_takes_the_place_of_a_standard_one(
    hermes_home: Path, tmp_path: Path
) -> None:
    with conversation(tmp_path) as talk:
        talk.results()
        before = talk.tool_names()
    code = REGISTERING.format(name="read_file", answer='{"mine": 1}', more="override=True")
    enabled(hermes_home, one=code)
    with conversation(tmp_path, calls("read_file", {"path": "x"})) as talk:
        assert talk.results() == [{"mine": 1}]
        assert talk.tool_names() == before
        origins = {item.name: item.origin for item in talk.talk.inventory()}
    assert origins["read_file"] == "plugin one"
    assert origins["write_file"] == "standard"


def test_of_two_plugins_with_one_name_the_first_by_key_counts(
    hermes_home: Path, tmp_path: Path
) -> None:
    codes = {key: REGISTERING.format(name="same", answer=f'"{key}"', more="") for key in "ba"}
    enabled(hermes_home, **codes)
    with conversation(tmp_path, calls("same", {})) as talk:
        assert talk.results() == ["a"]


def test_the_order_of_tools_is_the_same_each_time(dice: Path, tmp_path: Path) -> None:
    sent = []
    for _ in range(2):
        hermes_plugin_host.active.cache_clear()
        with conversation(tmp_path) as talk:
            talk.results()
            sent.append(talk.sent()["tools"])
    assert sent[0] == sent[1]


def test_a_sub_agent_has_the_tools_of_plugins(dice: Path, tmp_path: Path) -> None:
    steps = [calls("delegate_task", {"tasks": [{"goal": "roll"}]}), calls("roll", {"sides": 4})]
    with conversation(tmp_path, *steps, {"say": "It was a four."}) as talk:
        (result,) = talk.results()
        child = talk.server.requests[2]["messages"]
    assert result["results"][0]["report"] == "It was a four."
    assert '"rolled": 4' in child[-1]["content"]


def test_nothing_of_plugins_is_imported_without_one(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from hermes_conversation.extensions import Extensions, with_plugins\n"
        "from hermes_core.config.file import ConfigFile\n"
        "from pathlib import Path\n"
        f"found = Extensions.load(ConfigFile.of_home(), Path({str(tmp_path)!r}))\n"
        "assert found.tools() == [] and with_plugins([]).tools == []\n"
        "heavy = {'hermes_plugin_host', 'mcp', 'ruamel.yaml', 'asyncio',\n"
        "         'hermes_agent.mcp.server_pool'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
