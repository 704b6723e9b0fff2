"""A whole conversation as the front ends begin it, with a scripted model and a scripted person."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hermes_agent.events import ToolFinished
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.providers.scripted_server import ScriptServer
from hermes_conversation import agent_factory
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_agent.tools.base import ApprovalRequest


class Person:
    """Somebody who answers every question in the same way, and remembers them."""

    def __init__(self, reply: str = "deny") -> None:
        self.reply = reply
        self.asked: list[ApprovalRequest] = []

    def approve(self, request: ApprovalRequest) -> str:
        self.asked.append(request)
        return self.reply

    def clarify(self, question: str, choices: list[str]) -> str:
        del question, choices
        return self.reply


class Conversation:
    """What a test asks of it."""

    def __init__(
        self, talk: agent_factory.AgentBundle, server: ScriptServer, person: Person
    ) -> None:
        self.talk, self.server, self.person = talk, server, person

    def results(self, text: str = "go") -> list[Any]:
        """Say something; what the tools answered, read as JSON."""
        events = self.talk.agent.turn(text)
        return [json.loads(event.result) for event in events if isinstance(event, ToolFinished)]

    def sent(self) -> dict[str, Any]:
        """The first request that the model was sent."""
        return self.server.requests[0]

    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.sent()["tools"]]

    def prompt(self) -> str:
        return str(self.sent()["messages"][0]["content"])


@contextmanager
def conversation(cwd: Path, *steps: dict[str, Any], reply: str = "deny") -> Iterator[Conversation]:
    """One that is ended in the end; without steps the model says one word."""
    script = json.dumps({"steps": [*steps, {"say": "Done."}]})
    person = Person(reply)
    with ScriptServer(ModelScript.parse(script)) as server, SessionDB() as db:
        talk = agent_factory.build_agent(
            db, person, ConversationOptions(model=f"{server.base_url}#m", cwd=cwd)
        )
        try:
            yield Conversation(talk, server, person)
        finally:
            talk.close()


def calls(name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    """A step in which the model calls a tool, once for each of the arguments."""
    return {"calls": [{"name": name, "arguments": argument} for argument in arguments]}
