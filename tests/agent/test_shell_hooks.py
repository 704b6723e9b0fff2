"""Shell hooks: commands in the format of Claude Code, at the events of a conversation."""

from __future__ import annotations

import json
import os
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.events import Notice, ToolFinished, TurnEnd, TurnFinished
from hermes_agent.project.files import read_project
from hermes_agent.project.trust import TrustStore
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.shell_hooks.config import ShellHook, parse_hooks
from hermes_agent.shell_hooks.events import hook_tool
from hermes_agent.shell_hooks.failures import failures
from hermes_agent.shell_hooks.runner import MAX_OUTPUT_BYTES, HookResult, read_decision, run_hook
from hermes_conversation import boundary_delivery
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.agent_conversation import FixedPrompter, open_conversation, tool_call_step
from support.scripted_server import ScriptServer
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def hooks(**events: str) -> dict[str, Any]:
    """A command for each event; `Event_Matcher` has a matcher."""
    found: dict[str, Any] = {}
    for name, command in events.items():
        event, _, matcher = name.partition("_")
        entry = {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
        found.setdefault(event, []).append(entry)
    return found


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def configure(hermes_home: Path, block: dict[str, Any]) -> None:
    hermes_home.mkdir(parents=True, exist_ok=True)
    (hermes_home / "config.yaml").write_text(f"hooks: {json.dumps(block)}\n")


def received(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_hook_blocks_a_call_with_exit_code_2_and_the_model_gets_the_reason(
    hermes_home: Path, cwd: Path
) -> None:
    script = cwd / "check"
    script.write_text(
        textwrap.dedent(
            """\
            import json, sys
            event = json.load(sys.stdin)
            if "rm" in event["tool_input"]["command"]:
                print("no rm here", file=sys.stderr)
                sys.exit(2)
            """
        )
    )
    configure(hermes_home, hooks(PreToolUse_Bash=f"python3 {script}"))
    steps = [
        tool_call_step("terminal", {"command": "rm x"}),
        tool_call_step("terminal", {"command": "echo fine"}),
    ]
    with open_conversation(cwd, *steps) as conversation:
        blocked, allowed = conversation.results()
    assert blocked["error"] == "no rm here"
    assert "fine" in allowed["output"]


def test_events_arrive_as_json_in_order(hermes_home: Path, cwd: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"cat >> {log}; echo >> {log}"
    names = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    configure(hermes_home, hooks(**dict.fromkeys(names, command)))
    script = {"steps": [tool_call_step("read_file", {"path": "a"}), {"say": "Done."}]}
    (cwd / "a").write_text("text of a")
    with ScriptServer(ModelScript.parse(json.dumps(script))) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        list(conversation.send("go"))
        session_id = conversation.session_id
        conversation.leave("cli_close")
        boundary_delivery.deliver_due(db)
        boundary_delivery.deliver_due(db)
    events = received(log)
    assert [event["hook_event_name"] for event in events] == list(names)
    assert {event["session_id"] for event in events} == {session_id}
    assert {event["cwd"] for event in events} == {str(cwd)}
    start, prompt, before, after, _stop, end = events
    assert start["source"] == "startup"
    assert prompt["prompt"] == "go"
    assert before["tool_name"] == "Read"
    assert before["tool_input"] == {"file_path": "a"}
    assert (before["hermes_tool_name"], before["hermes_tool_input"]) == ("read_file", {"path": "a"})
    assert "text of a" in json.dumps(after["tool_response"])
    assert end["reason"] == "prompt_input_exit"


def test_output_at_the_start_and_of_prompts_is_context_and_a_refused_prompt_is_not_stored(
    hermes_home: Path, cwd: Path
) -> None:
    guard = "grep -q secret && { echo 'no secrets' >&2; exit 2; }; echo 'It is Monday.'"
    configure(hermes_home, hooks(SessionStart="echo 'Branch: main'", UserPromptSubmit=guard))
    script = ModelScript.parse("steps: [{say: One.}, {say: Two.}]")
    with ScriptServer(script) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        (refused,) = conversation.send("my secret")
        assert not conversation.exists
        list(conversation.send("hello"))
        list(conversation.send("again"))
        stored = json.dumps(db.get_messages(conversation.session_id))
        conversation.stop()
    assert isinstance(refused, TurnFinished)
    assert "no secrets" in refused.error
    first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert "It is Monday." in first
    assert "Branch: main" not in second
    assert "It is Monday." in second
    assert "Monday" not in stored


def test_a_hook_that_allows_skips_no_approval(hermes_home: Path, cwd: Path) -> None:
    answer = {"hookSpecificOutput": {"permissionDecision": "allow"}, "decision": "approve"}
    configure(hermes_home, hooks(PreToolUse=f"echo '{json.dumps(answer)}'"))
    step = tool_call_step("terminal", {"command": "sudo true"})
    with open_conversation(cwd, step, reply="deny") as conversation:
        conversation.results()
        assert len(conversation.prompter.requests) == 1


def test_feedback_after_a_call_is_added_to_its_result(hermes_home: Path, cwd: Path) -> None:
    configure(hermes_home, hooks(PostToolUse_Write="echo 'run the formatter' >&2; exit 2"))
    step = tool_call_step("write_file", {"path": "a.py", "content": "x=1"})
    with open_conversation(cwd, step) as conversation:
        events = list(conversation.bundle.agent.turn("go"))
    (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
    assert result.endswith("[Hook] run the formatter")
    assert (cwd / "a.py").exists()


def test_compaction_is_announced_before_it_happens(
    hermes_home: Path, cwd: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    configure(hermes_home, hooks(PreCompact_manual=f"cat > {log}", PreCompact_auto="exit 1"))
    with open_conversation(cwd) as conversation:
        conversation.results()
        conversation.bundle.agent.compress("the tests")
    (event,) = received(log)
    assert (event["trigger"], event["custom_instructions"]) == ("manual", "the tests")


@pytest.mark.parametrize("place", [".hermes/hooks.json", ".claude/settings.json"])
def test_hooks_of_a_project_run_only_after_trust(cwd: Path, place: str) -> None:
    path = cwd / place
    path.parent.mkdir()
    block = hooks(PreToolUse="echo blocked >&2; exit 2")
    path.write_text(json.dumps({"hooks": block} if "settings" in place else block))
    step = tool_call_step("terminal", {"command": "echo ran"})
    with open_conversation(cwd, step) as conversation:
        assert "ran" in conversation.results()[0]["output"]
    TrustStore().trust(read_project(cwd))
    with open_conversation(cwd, step) as conversation:
        assert conversation.results()[0]["error"] == "blocked"


def hook(command: str, seconds: float = 60.0, event: str = "PreToolUse") -> ShellHook:
    return ShellHook(event, "", command, seconds, "test")


def run(command: str, cwd: Path, seconds: float = 60.0, **event: str) -> HookResult:
    return run_hook(hook(command, seconds), {**event}, cwd, dict(os.environ))


def test_a_command_that_hangs_is_ended_with_its_children(cwd: Path) -> None:
    command = "sleep 1000 & echo $! > pid; sleep 1000"
    result = run(command, cwd, 0.5)
    assert "did not end within" in result.failure
    child = int((cwd / "pid").read_text())
    wait_until(lambda: not _is_running(child))


def _is_running(process_id: int) -> bool:
    try:
        with open(f"/proc/{process_id}/stat", encoding="utf-8") as file:  # noqa: PTH123 - procfs
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_output_is_bounded_and_a_large_event_is_not_needed(cwd: Path) -> None:
    result = run("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 2", cwd, text="y" * 1_000_000)
    assert len(result.block) == MAX_OUTPUT_BYTES


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("./missing", "exit code 127"),
        ("kill -9 $$", "exit code -9"),
        ("echo '{'", "its JSON output cannot be read (2 characters)"),
        ("sleep 600", "did not end within 1 s"),
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit"])
def test_a_hook_that_gives_no_answer_blocks(
    hermes_home: Path, cwd: Path, event: str, command: str, error: str
) -> None:
    entry = {"type": "command", "command": command, "timeout": 1}
    configure(hermes_home, {event: [{"hooks": [entry]}]})
    events = sent_events(cwd, tool_call_step("terminal", {"command": "echo ran"}))
    text = json.dumps(
        [getattr(item, "result", None) or getattr(item, "error", "") for item in events]
    )
    assert f"the hook `{command}`, which must decide this, failed: {error}" in text
    assert '\\"ran' not in text


def test_a_decision_that_is_too_long_to_be_read_blocks(hermes_home: Path, cwd: Path) -> None:
    (cwd / "answer").write_text(json.dumps({"pad": "x" * MAX_OUTPUT_BYTES, "decision": "block"}))
    configure(hermes_home, hooks(PreToolUse="cat answer"))
    with open_conversation(cwd, tool_call_step("terminal", {"command": "echo ran"})) as agent:
        (result,) = agent.results()
    assert "its JSON output cannot be read (65536 characters)" in result["error"]


def test_any_other_exit_code_is_shown_and_blocks_nothing(hermes_home: Path, cwd: Path) -> None:
    configure(hermes_home, hooks(PreToolUse="echo broken >&2; exit 1"))
    events = sent_events(cwd, tool_call_step("terminal", {"command": "echo ran"}))
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "The hook `echo broken >&2; exit 1` (PreToolUse) failed: exit code 1: broken"
    ]
    assert "ran" in next(event.result for event in events if isinstance(event, ToolFinished))


def test_with_strict_hooks_every_failure_blocks(hermes_home: Path, cwd: Path) -> None:
    configure(hermes_home, {"strict": True, **hooks(PreToolUse="echo broken >&2; exit 1")})
    events = sent_events(cwd, tool_call_step("terminal", {"command": "echo ran"}))
    result = json.loads(next(item.result for item in events if isinstance(item, ToolFinished)))
    assert "which must decide this, failed: exit code 1: broken" in result["error"]


def sent_events(cwd: Path, *steps: dict[str, Any]) -> list[Any]:
    """The events of a turn of a conversation."""
    script = ModelScript.parse(json.dumps({"steps": [*steps, {"say": "Done."}]}))
    with ScriptServer(script) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        events = list(conversation.send("go"))
        conversation.stop()
    return events


def test_a_failure_does_not_block_and_is_kept_for_the_list(hermes_home: Path, cwd: Path) -> None:
    configure(hermes_home, hooks(PreToolUse="echo broken >&2; exit 1"))
    step = tool_call_step("terminal", {"command": "echo ran"})
    with open_conversation(cwd, step) as conversation:
        assert "ran" in conversation.results()[0]["output"]
    (failure,) = failures().values()
    assert failure.error == "exit code 1: broken"


@pytest.mark.parametrize(
    ("event", "code", "out", "err", "expected"),
    [
        ("PreToolUse", 0, "text", "", HookResult()),
        ("SessionStart", 0, "text\n", "", HookResult(context="text")),
        ("PreToolUse", 2, "", "", HookResult(block="A hook blocked this.")),
        ("PreToolUse", 0, '{"decision": "block", "reason": "r"}', "", HookResult(block="r")),
        ("PreToolUse", 0, '{"decision": "approve"}', "", HookResult()),
        ("PreToolUse", 0, '{"hookSpecificOutput": {"permissionDecision": "deny", '
         '"permissionDecisionReason": "p"}}', "", HookResult(block="p")),
        ("UserPromptSubmit", 0, '{"hookSpecificOutput": {"additionalContext": "c"}}', "",
         HookResult(context="c")),
        ("PreToolUse", 0, '{"continue": false, "stopReason": "s"}', "", HookResult(block="s")),
        ("PreToolUse", 0, '{"hookSpecificOutput": {"permissionDecision": "ask", '
         '"permissionDecisionReason": "p"}}', "",
         HookResult(block="A hook wants a person to decide this: p")),
        ("SessionStart", 0, "{not json", "", HookResult(context="{not json")),
        ("PreToolUse", 3, "", "a\nb", HookResult(failure="exit code 3: b")),
        ("PreToolUse", 255, "", "", HookResult(failure="exit code 255")),
        ("PreToolUse", 127, "", "a\nb",
         HookResult(failure="exit code 127: b", has_answered=False)),
        ("PreToolUse", 137, "", "", HookResult(failure="exit code 137", has_answered=False)),
        ("PreToolUse", -9, "", "", HookResult(failure="exit code -9", has_answered=False)),
    ],
)  # fmt: skip
def test_decisions(event: str, code: int, out: str, err: str, expected: HookResult) -> None:
    assert read_decision(event, code, out, err) == expected


def test_tools_have_the_names_of_claude_code() -> None:
    call = {"name": "db/query", "arguments": {"sql": "x"}}
    assert hook_tool("call_tool", call) == ("mcp__db__query", {"sql": "x"})
    assert hook_tool("terminal", {"command": "x", "timeout": 3}).input["timeout"] == 3_000
    assert hook_tool("search_files", {"pattern": "x", "mode": "files"}).name == "Glob"
    assert hook_tool("memory", {"a": 1}) == ("memory", {"a": 1})


def test_entries_that_cannot_be_used_are_named_and_the_others_work() -> None:
    block = {
        "PreToolUse": [
            {"matcher": "(", "hooks": [{"type": "command", "command": "a"}]},
            {"matcher": "Bash|mcp__.*", "hooks": [{"type": "prompt"}, {"command": "b"}]},
        ],
        "Notification": [],
        "Stop": {},
    }
    found = parse_hooks(block, "file")  # type: ignore[arg-type]
    assert [item.command for item in found.hooks] == ["b"]
    assert len(found.problems) == 4
    assert found.for_event("PreToolUse", "mcp__db__query")
    assert not found.for_event("PreToolUse", "Read", "read_file")


def test_a_stop_hook_continues_the_turn_with_its_reason_a_limited_number_of_times(
    hermes_home: Path, cwd: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    check = f"cat >> {log}; echo >> {log}; test -e done || {{ echo 'write done' >&2; exit 2; }}"
    configure(hermes_home, hooks(Stop=check))
    write = tool_call_step("write_file", {"path": "done", "content": "x"})
    steps = [{"say": "First."}, write, {"say": "Second."}, *[{"say": f"{n}."} for n in range(9)]]
    with ScriptServer(ModelScript.parse(json.dumps({"steps": steps}))) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        turn = list(conversation.send("go"))
        stored = [(row.role, row.content) for row in db.messages.rows(conversation.session_id)]
        assert [event["stop_hook_active"] for event in received(log)] == [False, True]
        assert [event["last_assistant_message"] for event in received(log)] == ["First.", "Second."]
        (cwd / "done").unlink()
        endless = list(conversation.send("more"))
        conversation.stop()
    finished = turn[-1]
    assert isinstance(finished, TurnFinished)
    assert (finished.end, finished.text) == (TurnEnd.COMPLETE, "Second.")
    assert [event.text for event in turn if isinstance(event, Notice) and event.ends_answer] == [
        "A hook continues the turn: write done"
    ]
    roles = "user assistant user assistant tool assistant"
    assert " ".join(role for role, _ in stored) == roles
    assert str(stored[2][1]).endswith("write done")
    assert isinstance(endless[-1], TurnFinished)
    assert endless[-1].text == "5."  # after five continuations
    notices = [event.text for event in endless if isinstance(event, Notice)]
    assert "the turn ends anyway" in notices[-1]


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ({"decision": "block", "reason": "again"}, 6),
        ({"continue": False, "stopReason": "enough"}, 1),
        ({"decision": "approve"}, 1),
    ],
)
def test_json_of_a_stop_hook_decides_whether_the_turn_continues(
    hermes_home: Path, cwd: Path, output: dict[str, Any], count: int
) -> None:
    configure(hermes_home, hooks(Stop=f"echo '{json.dumps(output)}'"))
    steps = [{"say": "Said."}] * 9
    with ScriptServer(ModelScript.parse(json.dumps({"steps": steps}))) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        list(conversation.send("go"))
        conversation.stop()
        assert len(server.requests) == count


def test_hooks_get_a_private_transcript_that_is_removed_with_the_conversation(
    hermes_home: Path, cwd: Path, tmp_path: Path
) -> None:
    program = tmp_path / "copy.py"
    program.write_text(
        textwrap.dedent(
            f"""\
            import json, os, pathlib, sys
            event = json.load(sys.stdin)
            path = pathlib.Path(event["transcript_path"])
            copy = {{"mode": path.stat().st_mode & 0o777, "text": path.read_text()}}
            name = event["hook_event_name"]
            pathlib.Path({str(tmp_path)!r}, name).write_text(json.dumps(copy))
            """
        )
    )
    names = ("SessionStart", "PreToolUse", "Stop", "SessionEnd")
    configure(hermes_home, hooks(**dict.fromkeys(names, f"python3 {program}")))
    (cwd / "a").write_text("text of a")
    script = {"steps": [tool_call_step("read_file", {"path": "a"}), {"say": "Done."}]}
    with ScriptServer(ModelScript.parse(json.dumps(script))) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        conversation = Conversation(db, FixedPrompter(), options)
        list(conversation.send("go"))
        assert len(list((hermes_home / "hook_transcripts").iterdir())) == 1
        conversation.leave("cli_close")
        boundary_delivery.deliver_due(db)
    copies = {name: json.loads((tmp_path / name).read_text()) for name in names}
    assert {copy["mode"] for copy in copies.values()} == {0o600}
    lines = {
        name: [json.loads(line) for line in copy["text"].splitlines()]
        for name, copy in copies.items()
    }
    assert lines["SessionStart"] == []
    call = lines["PreToolUse"][-1]["message"]["content"][-1]
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "Read", {"file_path": "a"})
    for name in ("Stop", "SessionEnd"):  # the answer is there before it is stored
        kinds = [line["type"] for line in lines[name]]
        assert kinds == ["user", "assistant", "user", "assistant"]
        assert lines[name][0]["message"]["content"] == "go"
        assert lines[name][2]["message"]["content"][0]["type"] == "tool_result"
        assert lines[name][3]["message"]["content"] == [{"type": "text", "text": "Done."}]
    assert list((hermes_home / "hook_transcripts").iterdir()) == []
