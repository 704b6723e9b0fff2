"""Conversations with a scripted model behind a real HTTP server."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.agent import AIAgent
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.providers.retry import FallbackProvider
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.toolbox import Toolbox
from hermes_core.backoff import Backoff
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.events import Event
    from hermes_agent.tools.base import Tool


class Scene:
    """A store, scripted servers, and agents that use them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.db = stack.enter_context(SessionDB())
        self.servers: list[ScriptServer] = []
        self.hook_calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Callable[..., Any]] = {}

    def server(self, steps: str) -> ScriptServer:
        return self.enter(ScriptServer(ModelScript.parse(steps)))

    def enter(self, server: ScriptServer) -> ScriptServer:
        self.servers.append(self._stack.enter_context(server))
        return server

    def agent(self, steps: str, *tools: Tool, **options: Any) -> AIAgent:
        provider = OpenAICompatible("scripted", self.server(steps).base_url)
        return self.with_providers([provider], *tools, **options)

    def with_providers(self, providers: list[Any], *tools: Tool, **options: Any) -> AIAgent:
        options.setdefault("system_prompt", "Be brief.")
        provider = FallbackProvider(providers, backoff=Backoff(0.01, 0.1))
        agent = AIAgent(
            self.db, provider, Toolbox(tools), announce=self.announce, platform="test", **options
        )
        self._stack.callback(agent.close)
        return agent

    def announce(self, name: str, **fields: Any) -> list[Any]:
        self.hook_calls.append((name, fields))
        answer = self.answers.get(name)
        return [] if answer is None else [answer(**fields)]

    def hook_names(self) -> list[str]:
        return [name for name, _ in self.hook_calls]

    def rows(self, agent: AIAgent) -> list[dict[str, Any]]:
        return self.db.get_messages(agent.session_id)

    def messages(self, agent: AIAgent) -> list[tuple[str, str]]:
        return [(row["role"], row["content"]) for row in self.rows(agent)]


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack)


def of_kind(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
