"""Scripted models behind real servers."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hermes_agent.providers.scripted import ModelScript
from hermes_core.config.file import ConfigFile
from support.scripted_server import ScriptServer
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.providers.scripted import ScriptStep
    from hermes_core.json_values import JsonObject


class HeldServer(ScriptServer):
    """A model that answers the first request when the test releases it: a turn of any length."""

    def __init__(self, script: ModelScript) -> None:
        super().__init__(script)
        self._is_released = threading.Event()

    def release(self) -> None:
        """Answer the first request."""
        self._is_released.set()

    def next_step(self, body: JsonObject) -> tuple[int, ScriptStep]:
        number, step = super().next_step(body)
        if number == 1:
            self._is_released.wait(PATIENCE_SECONDS)
        return number, step


class StepwiseServer(ScriptServer):
    """A model that answers one more request each time the test releases it."""

    def __init__(self, script: ModelScript) -> None:
        super().__init__(script)
        self._released = threading.Semaphore(0)

    def release(self) -> None:
        """Answer one request."""
        self._released.release()

    def next_step(self, body: JsonObject) -> tuple[int, ScriptStep]:
        number, step = super().next_step(body)
        self._released.acquire(timeout=PATIENCE_SECONDS)
        return number, step


@contextmanager
def model_servers() -> Iterator[Callable[..., ScriptServer]]:
    """Yield a function that starts a server for a script; all are stopped at the end."""
    with ExitStack() as stack:

        def start(steps: str, kind: type[ScriptServer] = ScriptServer) -> ScriptServer:
            return stack.enter_context(kind(ModelScript.parse(f"steps: {steps}")))

        yield start


@contextmanager
def configured_models(**settings: str) -> Iterator[Callable[..., ScriptServer]]:
    """Yield a function that starts a server for a script and configures it as the model."""
    with model_servers() as start:

        def choose(steps: str, kind: type[ScriptServer] = ScriptServer) -> ScriptServer:
            server = start(steps, kind)
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
