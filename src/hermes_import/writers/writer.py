"""The agents to which a conversation can be handed, and the interface of one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, Protocol

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes_import.writers.conversation import HandedConversation

# The module of each agent, and its class; the names are those of the importers.
WRITERS: Final = {
    "claude-code": ("claude_code", "ClaudeCodeWriter"),
    "codex": ("codex", "CodexWriter"),
    "opencode": ("opencode", "OpenCodeWriter"),
    "pi": ("pi", "PiWriter"),
}


class SessionWriter(Protocol):
    """Writes conversations as sessions of one agent, of the user with a home folder."""

    label: str
    program: str  # its command
    package: str  # of npm, which installs it

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None: ...

    def path(self, talk: HandedConversation) -> Path:
        """Where the agent looks for the session, or where its import command reads it."""
        ...

    def pieces(self, talk: HandedConversation) -> Iterator[bytes]:
        """The content of the file."""
        ...

    def import_command(self, path: Path) -> Sequence[str]:
        """The command that brings the file into the agent; empty if the agent finds it."""
        ...

    def resume_command(self, native_id: str) -> Sequence[str]:
        """The command that continues the session, in the folder of the conversation."""
        ...


def writer_of(name: str, home: Path, environ: Mapping[str, str]) -> SessionWriter:
    """The writer of an agent; UsageError if there is none."""
    if name not in WRITERS:
        raise UsageError(f"Unknown agent '{name}'. Agents: {', '.join(WRITERS)}.")
    module, class_name = WRITERS[name]
    made: type[SessionWriter] = getattr(
        importlib.import_module(f"hermes_import.writers.{module}"), class_name
    )
    return made(home, environ)
