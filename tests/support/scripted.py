"""Scripted models behind real servers, as many as a test wants."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.providers.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def serving() -> Iterator[Callable[[str], ScriptServer]]:
    """A function that starts a server for the steps of a script; all end together."""
    with ExitStack() as stack:
        yield lambda steps: stack.enter_context(ScriptServer(ModelScript.parse(f"steps: {steps}")))


def model(server: ScriptServer) -> str:
    """The name under which `--model` takes it."""
    return f"{server.base_url}#scripted"
