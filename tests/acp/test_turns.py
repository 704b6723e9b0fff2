"""`hermes acp`: approvals, questions, stopping, several clients, kills, a restarted daemon."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from acp.schema import (
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    McpServerStdio,
)

from hermes_acp.editor_session import PromptTurn
from hermes_agent import events
from hermes_agent.events import AnswerProblem
from hermes_agent.messages import Usage
from hermes_agent.permissions.grants import Grants
from hermes_core.paths import hermes_home
from hermes_state import SessionDB
from support.daemons import DaemonClient
from support.editors import open_editor
from support.waiting import async_wait_until
from tui_gateway.live_session import completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Hermes
    from support.scripted_server import ScriptServer

    Script = Callable[[str], ScriptServer]

SLOW = "one two three four five six seven eight nine ten eleven twelve"
ENDLESS = "one two " + "more " * 3000  # lasts longer than a test may
MCP_SERVER = Path(__file__).resolve().parents[1] / "support" / "small_mcp_server.py"


def removal(name: str) -> str:
    return f"{{calls: [{{name: terminal, arguments: {{command: rm -rf {name}}}}}]}}"


async def test_approvals_are_asked_with_their_rule_and_every_answer_counts(
    script: Script, project: Path
) -> None:
    steps = [removal("a"), removal("b"), removal("c"), removal("c"), "{say: Done.}"]
    script(f"[{', '.join(steps)}]")
    for name in "abc":
        (project / name).mkdir()
    async with open_editor() as editor:
        session = await editor.new(project)
        editor.choices = ["deny", "once", "session"]
        await editor.ask(session, "clean up")
        first = editor.requests[0]
        assert first["call"]["toolCallId"] == editor.of_kind("tool_call")[0]["toolCallId"]
        assert first["call"]["rawInput"] == {"command": "rm -rf a"}
        text = first["call"]["content"][0]["content"]["text"]
        assert "rm -rf a" in text
        assert str(project) in text
        assert list(first["options"]) == ["once", "session", "always", "deny"]
        rule = first["options"]["always"].removeprefix("Always allow: ")
        assert first["options"]["session"] == f"Allow in this conversation: {rule}"
        assert editor.of_kind("tool_call_update")[0]["status"] == "failed"
        assert len(editor.requests) == 3  # the fourth command is covered by the rule
    assert [(project / name).exists() for name in "abc"] == [True, False, False]
    assert not Grants(hermes_home() / "permissions.json").always()


async def test_a_permanent_answer_is_kept_and_shown_as_a_rule(
    script: Script, project: Path, hermes: Hermes
) -> None:
    (project / "a").mkdir()
    script(f"[{removal('a')}, {{say: Done.}}]")
    async with open_editor() as editor:
        editor.choices = ["always"]
        session = await editor.new(project)
        await editor.ask(session, "clean up")
        rule = editor.requests[0]["options"]["always"].removeprefix("Always allow: ")
    assert rule in hermes("permissions", "list").out


async def test_a_cancelled_turn_ends_as_such_and_the_next_prompt_works(
    script: Script, project: Path
) -> None:
    (project / "a").mkdir()
    script(f"[{{say: {ENDLESS}, pause: 0.2}}, {removal('a')}, {{say: Later.}}]")
    async with open_editor() as editor:
        session = await editor.new(project)
        turn = asyncio.create_task(editor.ask(session, "count"))
        await editor.text_until("two")
        await editor.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"

        turn = asyncio.create_task(editor.ask(session, "clean up"))
        await async_wait_until(lambda: editor.requests)
        await editor.agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        assert (project / "a").exists()
        assert (await editor.ask(session, "again")).stop_reason == "end_turn"
        assert editor.text().endswith("Later.")


@pytest.mark.parametrize(
    ("end", "problem", "expected"),
    [
        (events.TurnEnd.COMPLETE, None, "end_turn"),
        (events.TurnEnd.COMPLETE, AnswerProblem.LENGTH, "max_tokens"),
        (events.TurnEnd.COMPLETE, AnswerProblem.FILTERED, "refusal"),
        (events.TurnEnd.TOO_LONG, AnswerProblem.STEP_LIMIT, "max_turn_requests"),
        (events.TurnEnd.INTERRUPTED, None, "cancelled"),
    ],
)
async def test_the_end_of_a_turn_is_its_stop_reason(
    end: events.TurnEnd, problem: AnswerProblem | None, expected: str
) -> None:
    turn = PromptTurn("hello")
    finished = events.TurnFinished(end, "text", Usage(3, 4), problem=problem)
    turn.end(completion(finished))
    response = await turn.response()
    assert response.stop_reason == expected
    assert response.usage is not None
    assert response.usage.total_tokens == 7


async def test_a_failure_of_the_provider_is_an_error_with_its_text(
    script: Script, project: Path
) -> None:
    script("[{fail: {status: 401, message: no such key}}, {say: Better.}]")
    async with open_editor() as editor:
        session = await editor.new(project)
        error = await editor.error(editor.ask(session, "hello"))
        assert "401" in str(error)
        assert (await editor.ask(session, "again")).stop_reason == "end_turn"


async def test_two_editors_and_a_terminal_show_the_same_conversation(
    script: Script, project: Path
) -> None:
    (project / "a").mkdir()
    script(f"[{removal('a')}, {{say: Gone.}}, {{say: Yes.}}, {{say: {SLOW}, pause: 0.1}}]")
    async with open_editor() as first, open_editor() as second:
        session = await first.new(project)
        await second.agent.resume_session(cwd=str(project), session_id=session, mcp_servers=[])
        terminal = await asyncio.to_thread(DaemonClient)
        await asyncio.to_thread(terminal.open, "session.resume", session_id=session)
        turn = asyncio.create_task(first.ask(session, "clean up"))
        await async_wait_until(lambda: first.requests and second.requests)
        terminal.call("approval.respond", choice="once")
        assert (await turn).stop_reason == "end_turn"
        await second.text_until("Gone.")
        assert second.text("user_message_chunk") == "clean up"
        assert first.text("user_message_chunk") == ""

        terminal.call("prompt.submit", text="from the terminal")
        await first.text_until("Yes.")
        assert first.text("user_message_chunk") == "from the terminal"

        slow = asyncio.create_task(first.ask(session, "count"))
        await second.text_until("one two")
        queued = await second.ask(session, "after that")  # waits for its own turn
        assert queued.stop_reason == "end_turn"
        assert (await slow).stop_reason == "end_turn"
        assert second.text().endswith("You said: after that")
        terminal.close()


async def test_a_killed_editor_does_not_end_its_turn(script: Script, project: Path) -> None:
    script(f"[{{say: {SLOW}, pause: 0.2}}, {{say: Next.}}]")
    async with open_editor() as editor:
        session = await editor.new(project)
        turn = asyncio.create_task(editor.ask(session, "count"))
        await editor.text_until("two")
        editor.kill()
        with pytest.raises(ConnectionError):
            await turn
    async with open_editor() as editor:
        await editor.agent.load_session(cwd=str(project), session_id=session, mcp_servers=[])
        assert editor.text("user_message_chunk") == "count"
        assert editor.text().startswith("one two")
        await editor.text_until("twelve")
        assert editor.text() == SLOW
        assert (await editor.ask(session, "next")).stop_reason == "end_turn"
    with SessionDB() as db:
        contents = [row["content"] for row in db.get_messages(session)]
    assert contents == ["count", SLOW, "next", "Next."]


async def test_after_a_restart_of_the_daemon_the_next_prompt_works(
    script: Script, project: Path, hermes: Hermes
) -> None:
    script(f"[{{say: {ENDLESS}, pause: 0.2}}, {{say: Here again.}}]")
    async with open_editor() as editor:
        session, unused = await editor.new(project), await editor.new(project)
        turn = asyncio.create_task(editor.ask(session, "count"))
        await editor.text_until("two")
        assert (await asyncio.to_thread(hermes, "serve", "--stop")).code == 0
        assert "daemon has stopped" in str(await editor.error(turn))
        assert (await editor.ask(session, "go on")).stop_reason == "end_turn"
        assert editor.text().endswith("Here again.")
        assert (await editor.ask(unused, "first message")).stop_reason == "end_turn"
    with SessionDB() as db:
        assert db.get_messages(unused)[0]["content"] == "first message"


CLARIFY = "{calls: [{name: clarify, arguments: {question: Which?, choices: [red, blue]}}]}"
OPEN_QUESTION = "{calls: [{name: clarify, arguments: {question: Why?}}]}"


async def test_questions_are_asked_as_choices_as_a_form_or_in_the_text(
    script: Script, project: Path
) -> None:
    script(
        f"[{CLARIFY}, {{say: Ok.}}, {OPEN_QUESTION}, {{say: Ok.}}, {OPEN_QUESTION}, {{say: Ok.}}]"
    )

    def answers(editor: Any) -> list[Any]:
        return [update.get("rawOutput") for update in editor.of_kind("tool_call_update")]

    async with open_editor() as editor:
        session = await editor.new(project)
        editor.choices = ["choice-1"]
        await editor.ask(session, "choose")
        assert list(editor.requests[0]["options"].values()) == ["red", "blue", "No answer"]
        await editor.ask(session, "explain")
        assert "Why?" in editor.text()
        assert answers(editor)[0] == {"answer": "blue", "error": None}
        assert answers(editor)[1]["error"].startswith("No answer was given.")
    forms = ElicitationCapabilities(form=ElicitationFormCapabilities())
    async with open_editor(ClientCapabilities(elicitation=forms)) as editor:
        session = await editor.new(project)
        editor.form_answer = "because"
        await editor.ask(session, "explain")
        assert editor.forms == ["Why?"]
        assert answers(editor) == [{"answer": "because", "error": None}]


async def test_mcp_servers_of_the_editor_are_used_within_the_permissions(
    script: Script, project: Path
) -> None:
    order = "{calls: [{name: call_tool, arguments: {name: shop/order, arguments: {item: tea}}}]}"
    price = "{calls: [{name: call_tool, arguments: {name: shop/price, arguments: {item: tea}}}]}"
    script(f"[{price}, {order}, {{say: Ordered.}}]")
    server = McpServerStdio(
        name="shop", command=sys.executable, args=[str(MCP_SERVER), "stdio"], env=[]
    )
    async with open_editor() as editor:
        opened = await editor.agent.new_session(cwd=str(project), mcp_servers=[server])
        editor.choices = ["always"]
        await editor.ask(opened.session_id, "order tea")
        assert len(editor.requests) == 1  # reading needs no approval
        # The rule is for this program, not for every server with this name.
        rule = editor.requests[0]["options"]["always"].removeprefix("Always allow: ")
        results = [update["rawOutput"] for update in editor.of_kind("tool_call_update")]
    assert [result["result"] for result in results] == ["tea costs 3", "ordered 1 tea"]
    assert rule.startswith("mcp:shop.")
    assert rule.endswith("/order")
