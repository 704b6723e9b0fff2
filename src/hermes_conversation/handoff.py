"""Hands a conversation to a chat platform, or to another agent as a session of its own."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import create_atomically
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import UsageError
from hermes_core.system_programs import program_on_path
from hermes_import.writers.writer import WRITERS, writer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_import.writers.writer import SessionWriter
    from hermes_state.store import SessionDB

HANDOFF_WAIT_SECONDS: Final = 2.5  # a running gateway looks every second

LOCAL_PLATFORM: Final = "local"  # of `hermes gateway` itself; it needs no settings


def hand_off(db: SessionDB, session_id: str, platform: str) -> str:
    """Hand a conversation to a platform; what came of it. A running gateway does it at once."""
    require_set_up(platform, has_chats=_has_chats(db, platform))
    if not db.handoffs.request_handoff(session_id, platform):
        raise UsageError("A hand-off is already pending.")
    handoff = db.handoffs.wait(session_id, HANDOFF_WAIT_SECONDS)
    if handoff is not None and handoff.state == "failed":
        raise UsageError(f"The conversation was not handed off. {handoff.error}")
    if handoff is not None and handoff.state == "completed":
        return f"Handed off to {platform.capitalize()}."
    return (
        f"Handed off to {platform.capitalize()}; the gateway will pick it up once it is running "
        "(`hermes gateway start`)."
    )


def _has_chats(db: SessionDB, platform: str) -> bool:
    """Whether a conversation of a chat on a platform is known."""
    return any(f":{platform}:" in route.session_key for route in db.routes.all())


def require_set_up(platform: str, *, has_chats: bool = False) -> None:
    """Raise UsageError if a platform is not known, or needs a key and has none."""
    config = ConfigFile.of_home()
    names = {f"keys.{platform.lower()}", f"keys.{platform.lower()}_bot"}
    keys = [setting.name for setting in SETTINGS if setting.name in names]
    if platform in config.block("platforms") or any(map(config.secret, keys)):
        return
    if not keys:
        if has_chats or platform == LOCAL_PLATFORM:
            return
        raise UsageError(
            f"Unknown target '{platform}'. Agents: {', '.join(WRITERS)}. "
            "Chat apps: those that `hermes gateway add` has set up."
        )
    raise UsageError(
        f"{platform.capitalize()} is not set up. Run `hermes gateway add {platform.lower()}`."
    )


def is_agent(target: str) -> bool:
    """Whether a target is an agent, not a chat platform."""
    return target in WRITERS


class AgentHandoff(NamedTuple):
    """A conversation as a session of another agent."""

    session_id: str
    writer: SessionWriter
    native_id: str
    path: Path
    folder: str  # in which it continues
    is_redacted: bool
    is_new: bool = True  # False for a session that the agent itself has written
    is_imported: bool = False  # by the import command of the agent

    @property
    def import_command(self) -> Sequence[str]:
        """The command that brings the file into the agent; empty if that is not needed."""
        if self.is_imported or not self.is_new:
            return ()
        return self.writer.import_command(self.path)

    @property
    def resume_command(self) -> Sequence[str]:
        """The command that continues the session, in its folder."""
        return self.writer.resume_command(self.native_id)

    @property
    def is_installed(self) -> bool:
        """Whether the program of the agent is here."""
        return program_on_path(self.writer.program) is not None

    @property
    def shell_line(self) -> str:
        """The commands as a line for a shell."""
        commands = [("cd", self.folder), self.import_command, self.resume_command]
        return " && ".join(shlex.join(command) for command in commands if command)

    @property
    def text(self) -> str:
        """What was done, and how the conversation continues."""
        writer = self.writer
        done = f"Wrote the conversation as a session of {writer.label}: {self.path}"
        if not self.is_new:
            done = f"{self.session_id} is a session of {writer.label}; nothing was written."
        lines = [done, f"Continue it there: {self.shell_line}"]
        if not self.is_installed:
            lines.append(
                f"`{writer.program}` is not on your PATH. Install it first: "
                f"npm install -g {writer.package}"
            )
        return "\n".join(lines)


def hand_to_agent(
    db: SessionDB, session_id: str, agent: str, *, is_redacted: bool = False
) -> AgentHandoff:
    """Write a conversation as a session of an agent, in that agent's own folder."""
    from hermes_import.writers.conversation import (  # noqa: PLC0415 - rarely needed
        folder_of,
        read_conversation,
    )

    writer = writer_of(agent, Path.home(), os.environ)
    origin = db.imports.of_session(session_id)
    if origin is not None and origin.agent == agent and Path(origin.path).exists():
        folder = folder_of(db, session_id)
        path = Path(origin.path)
        return AgentHandoff(
            session_id, writer, origin.native_id, path, folder, is_redacted=False, is_new=False
        )
    talk = read_conversation(db, session_id, agent, is_redacted=is_redacted)
    path = writer.path(talk)
    handoff = AgentHandoff(session_id, writer, talk.native_id, path, talk.cwd, is_redacted)
    try:
        create_atomically(path, b"".join(writer.pieces(talk)))
    except FileExistsError:
        raise UsageError(
            f"{path} exists: this conversation was handed off already, and has no new message. "
            f"Continue it there: {handoff.shell_line}"
        ) from None
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}.") from error
    return handoff
