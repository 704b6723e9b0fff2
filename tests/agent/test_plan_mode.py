"""Plan mode: read, propose, approve, then act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.providers.scripted import ModelScript
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest

WRITE = "{calls: [{name: write_file, arguments: {path: tea.txt, content: hot}}]}"
PRESENT = "{calls: [{name: present_plan, arguments: {plan: 1. write tea.txt}}]}"


class Person:
    """Answers questions of the model with prepared texts."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        raise AssertionError(request)

    def clarify(self, question: str, choices: list[str]) -> str:
        self.questions.append(question)
        return self.answers.pop(0) if self.answers else ""


def ask(folder: Path, person: Person, *steps: str, prompts: int = 1) -> tuple[ScriptServer, str]:
    """The server with its requests, and the mode after the turns."""
    script = ModelScript.parse(f"steps: [{', '.join(steps)}]")
    with ScriptServer(script) as server, SessionDB() as db:
        options = ConversationOptions(model=f"{server.base_url}#m", cwd=folder, mode="plan")
        talk = Conversation(db, person, options)
        for number in range(prompts):
            list(talk.send(f"make tea {number}"))
        mode = talk.mode
        stored = [str(row.content) for row in db.messages.rows(talk.session_id)]
        talk.stop()
    assert not any("Plan mode:" in text for text in stored[:1])  # the note is not the user's
    return server, mode


def tool_names(request: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def test_a_plan_is_shown_and_carried_out_after_the_user_agrees(tmp_path: Path) -> None:
    person = Person("Start with this plan")
    steps = (WRITE, PRESENT, WRITE, "{say: Done.}", "{say: Fine.}")
    server, mode = ask(tmp_path, person, *steps, prompts=2)
    assert person.questions[0].startswith("1. write tea.txt\n\nStart?")
    assert (tmp_path / "tea.txt").read_text() == "hot"
    assert mode == "workspace"
    first, second, last = server.requests[0], server.requests[1], server.requests[-1]
    assert "Plan mode:" in first["messages"][-1]["content"]
    assert "Plan mode" in second["messages"][-1]["content"]  # why the first write was refused
    assert "present_plan" in tool_names(first)
    assert "present_plan" not in tool_names(last)
    assert "Plan mode:" not in last["messages"][-1]["content"]


def test_another_answer_goes_to_the_model_and_nothing_changes(tmp_path: Path) -> None:
    person = Person("with milk, please")
    server, mode = ask(tmp_path, person, PRESENT, WRITE, "{say: I will plan again.}")
    assert "with milk, please" in server.requests[1]["messages"][-1]["content"]
    assert mode == "plan"
    assert not (tmp_path / "tea.txt").exists()


def test_without_a_user_the_plan_is_the_answer(tmp_path: Path) -> None:
    server, mode = ask(tmp_path, Person(), PRESENT, "{say: My plan.}")
    assert "Give the plan as your answer" in server.requests[1]["messages"][-1]["content"]
    assert mode == "plan"
