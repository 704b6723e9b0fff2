"""`hermes acp` with the client side of the SDK: conversations, from the first prompt to a fork."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from acp import (
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)
from hermes_agent.project.files import read_project
from hermes_agent.project.trust import TrustStore
from hermes_core import __version__
from hermes_state import SessionDB
from support.editors import open_editor, raw_exchange
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.command_line import Hermes
    from support.editors import Editor
    from support.scripted_server import ScriptServer

    Script = Callable[[str], ScriptServer]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EDITS = """[
  {think: I write it., calls: [{name: read_file, arguments: {path: note.txt}},
    {name: write_file, arguments: {path: note.txt, content: "new\\n"}}]},
  {calls: [{name: patch, arguments: {path: note.txt, old_string: new, new_string: newer}}]},
  {calls: [{name: terminal, arguments: {command: "echo out; exit 3"}}]},
  {calls: [{name: read_file, arguments: {path: absent.txt, offset: 7}}]},
  {say: Finished., cost: 0.25}]"""


async def test_a_turn_shows_its_thoughts_tools_changes_and_usage(
    script: Script, project: Path, hermes: Hermes
) -> None:
    script(EDITS)
    note = project / "note.txt"
    note.write_text("old\n")
    async with open_editor() as editor:
        session = await editor.new(project)
        response = await editor.ask(session, "write the note")
        assert response.stop_reason == "end_turn"
        assert response.usage is not None
        assert response.usage.output_tokens > 0
        assert editor.text() == "Finished."
        assert editor.text("agent_thought_chunk") == "I write it."
        assert editor.of_kind("usage_update")[-1]["cost"] == {"amount": 0.25, "currency": "USD"}
        starts, ends = editor.of_kind("tool_call")[1:], editor.of_kind("tool_call_update")
    assert [start["kind"] for start in starts] == ["edit", "edit", "execute", "read"]
    whole = {"type": "diff", "path": str(note), "oldText": "old\n", "newText": "new\n"}
    part = {"type": "diff", "path": str(note), "oldText": "new", "newText": "newer"}
    assert [start["content"] for start in starts[:2]] == [[whole], [part]]
    assert starts[2]["title"] == "echo out; exit 3"
    assert starts[2]["rawInput"] == {"command": "echo out; exit 3"}
    assert starts[3]["locations"] == [{"path": str(project / "absent.txt"), "line": 7}]
    final = {end["toolCallId"]: end for end in ends}
    assert [final[start["toolCallId"]]["status"] for start in starts] == [
        "completed", "completed", "completed", "failed",
    ]  # fmt: skip
    output = final[starts[2]["toolCallId"]]
    assert output["content"][0]["content"]["text"] == "```console\nout\n```\nexit code 3"
    assert output["rawOutput"]["exit_code"] == 3
    assert final[starts[0]["toolCallId"]]["content"] == [whole]
    row = hermes("sessions", "list", "--json").out
    assert '"source": "acp"' in row


@pytest.mark.parametrize(
    ("cwd", "problem"),
    [
        ("project", "must be an absolute path"),
        ("/nonexistent/folder", "is not a folder"),
        ("/", "cannot be a workspace"),
    ],
)
async def test_a_folder_that_cannot_be_a_workspace_is_refused(
    script: Script, cwd: str, problem: str
) -> None:
    async with open_editor() as editor:
        error = await editor.error(editor.agent.new_session(cwd=cwd, mcp_servers=[]))
    assert problem in str(error)
    assert error.code == -32602


async def test_standard_output_carries_only_the_protocol(script: Script) -> None:
    code, answers, _ = await raw_exchange(
        [
            {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
            {"id": 2, "method": "session/unknown", "params": {}},
        ]
    )
    assert code == 0
    by_id = {answer["id"]: answer for answer in answers}
    result = by_id[1]["result"]
    assert result["agentInfo"] == {"name": "hermes", "title": "Hermes", "version": __version__}
    capabilities = result["agentCapabilities"]
    assert capabilities["loadSession"] is True
    assert set(capabilities["sessionCapabilities"]) == {"list", "resume", "fork", "close"}
    assert capabilities["promptCapabilities"] == {"image": True, "embeddedContext": True}
    assert by_id[2]["error"]["code"] == -32601


async def test_a_conversation_is_listed_loaded_resumed_forked_and_continued_in_a_terminal(
    script: Script, project: Path, hermes: Hermes
) -> None:
    items = "[{text: Look, status: done}, {text: Write, status: active}, {text: Test}]"
    call = f"""{{calls: [{{name: terminal, arguments: {{command: echo one}}}},
      {{name: todo, arguments: {{items: {items}}}}}]}}"""
    script(f"[{{think: Hm., say: Let me see., calls: []}}, {call}, {{say: Second answer.}}]")
    plan = [("Look", "completed"), ("Write", "in_progress"), ("Test", "pending")]

    def shown_plan(editor: Editor) -> list[tuple[str, str]]:
        entries = editor.of_kind("plan")[-1]["entries"]
        return [(entry["content"], entry["status"]) for entry in entries]

    async with open_editor() as editor:
        session = await editor.new(project)
        await editor.ask(session, "first question")
        await editor.ask(session, "second question")
        assert shown_plan(editor) == plan
        assert len(editor.of_kind("tool_call")) == 1
    async with open_editor() as editor:
        listed = (await editor.agent.list_sessions(cwd=str(project))).sessions
        assert [item.session_id for item in listed] == [session]
        assert listed[0].title == "first question"
        assert listed[0].updated_at is not None
        assert (await editor.agent.list_sessions(cwd=str(project.parent))).sessions == []

        loaded = await editor.agent.load_session(
            cwd=str(project), session_id=session, mcp_servers=[]
        )
        assert loaded.modes is not None
        kinds = [update["sessionUpdate"] for _, update in editor.updates]
        assert kinds[:8] == [
            "user_message_chunk", "agent_thought_chunk", "agent_message_chunk",
            "user_message_chunk", "tool_call", "plan", "tool_call_update", "agent_message_chunk",
        ]  # fmt: skip
        assert shown_plan(editor) == plan
        assert editor.text("user_message_chunk") == "first questionsecond question"
        assert editor.text() == "Let me see.Second answer."
        assert editor.of_kind("tool_call_update")[0]["status"] == "completed"

        fork = await editor.agent.fork_session(cwd=str(project), session_id=session, mcp_servers=[])
        await editor.ask(fork.session_id, "only in the fork")
        await editor.ask(session, "only in the original")
        error = await editor.error(
            editor.agent.load_session(cwd=str(project), session_id="none", mcp_servers=[])
        )
        assert error.code == -32002
    async with open_editor() as editor:
        await editor.agent.resume_session(cwd=str(project), session_id=session, mcp_servers=[])
        await async_wait_until(lambda: editor.of_kind("available_commands_update"))
        assert not editor.of_kind("user_message_chunk")
        await editor.agent.close_session(session_id=session)
        assert "not open" in str(await editor.error(editor.ask(session, "hello")))
    done = hermes("chat", "-r", session, "-q", "from the terminal")
    assert done.code == 0
    with SessionDB() as db:
        prompts = [
            [row["content"] for row in db.get_messages(name) if row["role"] == "user"][-2:]
            for name in (session, fork.session_id)
        ]
        ended = db.get_session(fork.session_id)
    assert prompts == [
        ["only in the original", "from the terminal"],
        ["second question", "only in the fork"],
    ]
    assert ended is not None


async def test_a_prompt_may_have_images_resources_and_links(script: Script, project: Path) -> None:
    server = script("[{say: Seen.}, {say: Seen again.}]")
    blocks: list[Any] = [
        text_block("Compare "),
        resource_link_block("a.py", f"{project.as_uri()}/a.py"),
        text_block(" with "),
        resource_link_block("Manual", "https://example.org/manual"),
        resource_block(embedded_text_resource(f"{project.as_uri()}/b%20c.md", "has ``` in it\n")),
        image_block(base64.b64encode(PNG).decode(), "image/png"),
    ]
    async with open_editor() as editor:
        session = await editor.new(project)
        await editor.agent.prompt(session_id=session, prompt=blocks)
        wrong = image_block("!!!", "image/png")
        error = await editor.error(editor.agent.prompt(session_id=session, prompt=[wrong]))
        assert "not valid Base64" in str(error)
        link = resource_link_block("a.py", "http://[a")
        error = await editor.error(editor.agent.prompt(session_id=session, prompt=[link]))
        assert "'http://[a' is not a URI" in str(error)
        escaped = text_block("\x01" * 4_000_000)  # six times as long in JSON
        error = await editor.error(editor.agent.prompt(session_id=session, prompt=[escaped]))
        assert "Link large files" in str(error)
    content = server.requests[0]["messages"][-1]["content"]
    assert content[0]["text"] == (
        "Compare `a.py` with Manual (`https://example.org/manual`)\n\n"
        "b c.md:\n````\nhas ``` in it\n````"
    )
    assert content[1]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_modes_models_and_slash_commands(script: Script, project: Path) -> None:
    script("[{say: Hello.}]").models.append({"id": "another", "object": "model"})
    (project / ".hermes" / "commands").mkdir(parents=True)
    (project / ".hermes" / "commands" / "greet.md").write_text("Greet $1.")
    TrustStore().trust(read_project(project))
    async with open_editor() as editor:
        opened = await editor.agent.new_session(cwd=str(project), mcp_servers=[])
        session = opened.session_id
        assert opened.modes is not None
        assert opened.modes.current_mode_id == "workspace"
        assert [mode.id for mode in opened.modes.available_modes] == ["plan", "workspace", "full"]
        await async_wait_until(lambda: editor.of_kind("available_commands_update"))
        commands = editor.of_kind("available_commands_update")[0]["availableCommands"]
        names = {item["name"] for item in commands}
        assert {"compress", "status", "title", "greet"} <= names
        assert not {"new", "quit", "approve"} & names

        await editor.agent.set_session_mode(session_id=session, mode_id="plan")
        await async_wait_until(lambda: editor.of_kind("current_mode_update"))
        changed = await editor.agent.set_config_option(
            session_id=session, config_id="model", value="another"
        )
        assert changed is not None
        values = {item.id: item.current_value for item in changed.config_options}
        assert values == {"mode": "plan", "model": "another"}
        wrong = editor.agent.set_session_mode(session_id=session, mode_id="wild")
        assert "Unknown mode" in str(await editor.error(wrong))

        await editor.ask(session, "/title A good name")
        await editor.ask(session, "/new")
        await editor.ask(session, "/usr/bin/env is a path")
        assert "A good name" in editor.text()
        assert "/new is not available in an editor" in editor.text()
        assert editor.text().endswith("Hello.")
        assert editor.of_kind("session_info_update")[-1]["title"] == "A good name"
