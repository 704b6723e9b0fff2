"""Scripted models behind real servers."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.providers.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def model_servers() -> Iterator[Callable[[str], ScriptServer]]:
    """Yield a function that starts a server for a script; all are stopped at the end."""
    with ExitStack() as stack:
        yield lambda steps: stack.enter_context(ScriptServer(ModelScript.parse(f"steps: {steps}")))


def model_argument(server: ScriptServer) -> str:
    """The value of `--model` for a server."""
    return f"{server.base_url}#scripted"
