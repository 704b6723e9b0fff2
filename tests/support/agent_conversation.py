"""An agent conversation as the front ends start it, with a scripted model and fixed answers."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hermes_agent.events import ToolFinished
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.prompter import parse_answer
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest


class FixedPrompter:
    """Gives the same answer to every prompt, and records the approval requests.

    The first approvals are answered from `replies`, if there are any.
    """

    def __init__(self, reply: str = "deny") -> None:
        self.reply = reply
        self.replies: list[str] = []
        self.requests: list[ApprovalRequest] = []

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.requests.append(request)
        return parse_answer(self.replies.pop(0) if self.replies else self.reply)

    def clarify(self, question: str, choices: list[str]) -> str:
        del question, choices
        return self.reply


class AgentConversation:
    """A running conversation, its model server and its prompter."""

    def __init__(
        self, bundle: agent_factory.AgentBundle, server: ScriptServer, prompter: FixedPrompter
    ) -> None:
        self.bundle, self.server, self.prompter = bundle, server, prompter

    def results(self, text: str = "go") -> list[Any]:
        """Send a prompt; return the parsed JSON results of the tools."""
        events = self.bundle.agent.turn(text)
        return [json.loads(event.result) for event in events if isinstance(event, ToolFinished)]

    def first_request(self) -> dict[str, Any]:
        """The first request to the model."""
        return self.server.requests[0]

    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.first_request()["tools"]]

    def prompt(self) -> str:
        return str(self.first_request()["messages"][0]["content"])


@contextmanager
def open_conversation(
    cwd: Path, *steps: dict[str, Any], reply: str = "deny"
) -> Iterator[AgentConversation]:
    """Open a conversation and close it at the end; the model's last step is one word."""
    script = json.dumps({"steps": [*steps, {"say": "Done."}]})
    prompter = FixedPrompter(reply)
    with ScriptServer(ModelScript.parse(script)) as server, SessionDB() as db:
        bundle = agent_factory.build_agent(
            db, prompter, ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        )
        try:
            yield AgentConversation(bundle, server, prompter)
        finally:
            bundle.close()


def tool_call_step(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    """A step in which the model calls a tool once per argument object."""
    return {"calls": [{"name": name, "arguments": argument} for argument in arguments]}
