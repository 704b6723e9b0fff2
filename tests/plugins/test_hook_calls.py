"""Every hook of the table is called, with the facts that it declares, and they are true."""

from __future__ import annotations

import ast
import functools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.events import TextDelta, TurnFinished
from hermes_agent.providers.scripted import ModelScript
from hermes_conversation.agent_factory import ConversationOptions, build_agent
from hermes_core.hooks import HOOKS
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter, open_conversation, tool_call_step
from support.plugin_folders import FACTS_PLUGIN, enable_plugins, recorded_facts
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

MAX_TRIES = 20
MEASURED = {"duration_ms"}  # two durations may be equal
SOURCE = Path(__file__).parents[2] / "src"
CALLERS = {"_announce", "announce", "invoke_hook", "notify_plugins", "HookCall", "_hook_call"}
ONLY_FOR_SEED_TESTS = "gateway_runner.py"
# Called from stored rows, from scans, or for chat messages; their own tests look at the facts.
CALLED_ELSEWHERE = {
    "on_session_finalize",
    "on_session_reset",
    "on_session_boundary",
    "on_achievement_unlocked",
    "pre_gateway_dispatch",
    "pre_compaction",
}
SAME_EVERYWHERE = {
    "api_mode": "both turns use an OpenAI-compatible server",
    "interrupted": "no turn is interrupted here",
    "retryable": "a transient failure would be retried for seconds",
    "child_role": "sub-agents have one role",
    "pattern_key": "one risky command",
    "pattern_keys": "one risky command",
    "description": "one risky command",
    "choice": "the prompter always denies",
    "command": "one command",
    "output": "one command",
    "continuations": "no plugin continues a turn here",
    "sender_id": "turns of a terminal; test_the_sender_of_a_chat_message",
    "session_key": "turns of a terminal; test_the_sender_of_a_chat_message",
}


def parsed(path: Path) -> ast.Module:
    """The tree of a module. Python 3.11 before 3.11.5 fails if another thread parses meanwhile."""
    for _ in range(MAX_TRIES):
        try:
            return ast.parse(path.read_text("utf-8"))
        except SystemError:
            time.sleep(0.05)
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def call_sites() -> list[tuple[str, str, ast.Call]]:
    """Hook, file and call of every place that calls a hook by a literal or constant name."""
    return list(_call_sites())


def _call_sites() -> Iterator[tuple[str, str, ast.Call]]:
    for path in SOURCE.rglob("*.py"):
        tree = parsed(path)
        constants = {
            getattr(target, "id", ""): node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
            for target in ([node.target] if isinstance(node, ast.AnnAssign) else node.targets)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and _name(node.func) in CALLERS:
                first = node.args[0]
                value = getattr(first, "value", None) or constants.get(getattr(first, "id", ""))
                if isinstance(value, str):
                    yield value, path.name, node


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


@pytest.mark.parametrize("hook", [hook.name for hook in HOOKS])
def test_every_hook_has_a_call_site_without_constant_facts(hook: str) -> None:
    sites = [
        node for name, file, node in call_sites() if name == hook and file != ONLY_FOR_SEED_TESTS
    ]
    assert sites, f"{hook} is in the table and never called"
    given: dict[str, set[bool]] = {}
    for site in sites:
        for keyword in site.keywords:
            if keyword.arg:
                is_constant = isinstance(keyword.value, ast.Constant)
                given.setdefault(keyword.arg, set()).add(is_constant)
    assert [fact for fact, kinds in given.items() if kinds == {True}] == []


def run_turn(cwd: Path, steps: list[dict[str, Any]], **options: Any) -> None:
    script = json.dumps({"steps": steps})
    with ScriptServer(ModelScript.parse(script)) as server, SessionDB() as db:
        chosen = ConversationOptions(model=f"{server.base_url}#{options.pop('model')}", cwd=cwd)
        bundle = build_agent(db, FixedPrompter("deny"), chosen._replace(**options))
        try:
            for text in options.pop("prompts", ("first", "second")):
                for _event in bundle.agent.turn(text):
                    pass
        finally:
            bundle.close()


@pytest.fixture(scope="module")
def varied_steps() -> list[dict[str, Any]]:
    return [
        tool_call_step("terminal", {"command": "echo one"}),
        tool_call_step("terminal", {"command": "exit 3"}),
        tool_call_step("read_file", {"path": "missing"}),
        tool_call_step("terminal", {"command": "git push origin main"}),
        tool_call_step("delegate_task", {"tasks": [{"goal": "a"}]}),
        {"say": "It is done."},
        {"say": "First answer."},
        {"fail": {"status": 401}},
    ]


def test_the_hooks_of_a_turn_get_the_facts_that_they_declare(
    hermes_home: Path, tmp_path: Path, varied_steps: list[dict[str, Any]]
) -> None:
    enable_plugins(hermes_home, facts=FACTS_PLUGIN)
    run_turn(tmp_path, varied_steps, model="a", platform="cli")
    other = [
        tool_call_step("terminal", {"command": "echo two"}),
        tool_call_step("delegate_task", {"tasks": [{"goal": "b"}]}),
        {"fail": {"status": 400, "message": "no"}},
        {"say": "Other answer."},
        {"fail": {"status": 404}},
    ]
    run_turn(tmp_path, other, model="b", platform="tui")
    problems = []
    for hook in HOOKS:
        if hook.name in CALLED_ELSEWHERE:
            continue
        calls = recorded_facts(hermes_home, hook.name)
        if not calls:
            problems.append(f"{hook.name} was not called")
        problems += [
            f"{hook.name}: {sorted(set(call) ^ hook.facts)}"
            for call in calls
            if set(call) != hook.facts
        ]
        for fact in hook.facts - set(SAME_EVERYWHERE) - MEASURED:
            values = {json.dumps(call.get(fact)) for call in calls}
            if len(values) < 2 and len(calls) > 1:
                problems.append(f"{hook.name}.{fact} is always {values}")
    assert not problems, problems


def test_the_end_of_a_tool_call_has_its_status_and_error(hermes_home: Path, tmp_path: Path) -> None:
    blocker = """
def block(tool_name, args, **kwargs):
    if args.get("path") == "secret":
        return {"action": "block", "message": "not that one"}
def bad(args, **kwargs):
    raise ValueError("no dice")
def register(ctx):
    ctx.register_hook("pre_tool_call", block)
    ctx.register_tool("crash", "x", {}, bad)
"""
    enable_plugins(hermes_home, facts=FACTS_PLUGIN, blocker=blocker)
    steps = [
        tool_call_step("terminal", {"command": "echo hi"}),
        tool_call_step("read_file", {"path": "missing"}),
        tool_call_step("read_file", {"path": "secret"}),
        tool_call_step("terminal", {"command": "git push origin main"}),
        tool_call_step("crash", {}),
        tool_call_step("no_such_tool", {}),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        conversation.results()
    calls = recorded_facts(hermes_home, "post_tool_call")
    assert [call["status"] for call in calls] == [
        "ok", "error", "blocked", "blocked", "error", "error",
    ]  # fmt: skip
    assert calls[0]["error_type"] is calls[0]["error_message"] is None
    assert "missing" in calls[1]["error_message"]
    assert calls[2]["error_type"] == "BlockedByPlugin"
    assert calls[2]["error_message"] == "not that one"
    assert calls[3]["error_type"] == "NotAllowed"
    assert calls[4]["error_message"] == "ValueError: no dice"
    assert "unknown tool" in calls[5]["error_message"]
    for call in calls[1:]:
        assert json.loads(call["result"])["error"] == call["error_message"]


ANSWER_PLUGIN = """
def change(response_text, **kwargs):
    return response_text.replace("4711", "[secret]")
def output(command, output, exit_code, **kwargs):
    return f"{command} / {output.strip().upper()} / {exit_code}"
def register(ctx):
    ctx.register_hook("transform_llm_output", change)
    ctx.register_hook("transform_terminal_output", output)
"""


def test_a_plugin_changes_the_final_answer_before_it_is_stored_and_shown(
    hermes_home: Path, tmp_path: Path
) -> None:
    enable_plugins(hermes_home, answers=ANSWER_PLUGIN)
    script = json.dumps({"steps": [{"say": "The code is 4711."}]})
    with ScriptServer(ModelScript.parse(script)) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=tmp_path)
        bundle = build_agent(db, FixedPrompter(), options)
        events = list(bundle.agent.turn("code?"))
        stored = [message["content"] for message in db.get_messages(bundle.agent.session_id)]
        bundle.close()
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    (finished,) = [event for event in events if isinstance(event, TurnFinished)]
    assert shown == finished.text == stored[-1] == "The code is [secret]."


EMPTY_ANSWER_PLUGIN = """
def register(ctx):
    ctx.register_hook("transform_llm_output", lambda **kwargs: "")
"""


def test_an_answer_is_unchanged_if_a_plugin_returns_an_empty_text_for_it(
    hermes_home: Path, hermes: Hermes
) -> None:
    enable_plugins(hermes_home, empty=EMPTY_ANSWER_PLUGIN)
    script = json.dumps({"steps": [{"say": "The code is 4711."}]})
    with ScriptServer(ModelScript.parse(script)) as server:
        asked = hermes("chat", "-q", "code?", "--model", f"{server.base_url}#m")
    assert "The code is 4711." in asked.out
    with SessionDB() as db:
        (session,) = db.list_sessions_rich()
        assert db.get_messages(session["id"])[-1]["content"] == "The code is 4711."


def test_an_interim_text_and_a_failed_answer_are_shown_where_a_plugin_changes_answers(
    hermes_home: Path, tmp_path: Path
) -> None:
    enable_plugins(hermes_home, answers=ANSWER_PLUGIN)
    first = {"say": "Looking.", **tool_call_step("terminal", {"command": "true"})}
    with open_conversation(tmp_path, first) as conversation:
        events = list(conversation.bundle.agent.turn("go"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Looking.", "Done."]


def test_a_plugin_changes_the_output_of_a_command(hermes_home: Path, tmp_path: Path) -> None:
    enable_plugins(hermes_home, answers=ANSWER_PLUGIN)
    steps = [
        tool_call_step("terminal", {"command": "echo hello; exit 3"}),
        tool_call_step("terminal", {"command": "echo later", "background": True}),
    ]
    with open_conversation(tmp_path, *steps) as conversation:
        result, background = conversation.results()
    assert result["output"] == "echo hello; exit 3 / HELLO / 3"
    assert "output" not in background
