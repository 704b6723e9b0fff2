"""Scripted models behind real servers."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.providers.scripted_server import ScriptServer
from hermes_core.config.file import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def model_servers() -> Iterator[Callable[[str], ScriptServer]]:
    """Yield a function that starts a server for a script; all are stopped at the end."""
    with ExitStack() as stack:
        yield lambda steps: stack.enter_context(ScriptServer(ModelScript.parse(f"steps: {steps}")))


@contextmanager
def configured_models(**settings: str) -> Iterator[Callable[[str], ScriptServer]]:
    """Yield a function that starts a server for a script and configures it as the model."""
    with model_servers() as start:

        def choose(steps: str) -> ScriptServer:
            server = start(steps)
            config = ConfigFile.of_home()
            config.set("llm.api", "openai")
            config.set("llm.base_url", server.base_url)
            config.set("llm.model", "scripted")
            for name, value in settings.items():
                config.set(name.replace("__", "."), value)
            return server

        yield choose


def model_argument(server: ScriptServer) -> str:
    """The value of `--model` for a server."""
    return f"{server.base_url}#scripted"
