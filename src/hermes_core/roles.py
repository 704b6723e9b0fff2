"""Roles of people and programs, and what each role may do.

Everything here is default-deny: a right that is not in ROLE_RIGHTS is not given, a tool or a
slash command that is not listed needs a right that only the owner has.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from hermes_core.errors import UsageError


class Role(StrEnum):
    """Whose rights a conversation has."""

    OWNER = "owner"  # the local user, and identities that the owner names
    MEMBER = "member"  # a paired person
    GUEST = "guest"  # a group member, a webhook, an API key without more rights


class Right(Enum):
    """Something a role may do."""

    CONVERSE = "talk to the agent and manage the current conversation"
    QUESTIONS = "be asked by the model during a turn, which waits for the answer"
    CHAT_HISTORY = "search, list and resume conversations of the same chat"
    ALL_HISTORY = "search all conversations, in a direct chat"
    MEMORY = "have notes that are included in prompts"
    FILES = "read, write and search files in the own folder"
    ALL_FILES = "use files elsewhere, as the mode allows"
    SCHEDULE = "set reminders and schedule jobs, which run with the same rights"
    DELEGATE = "have sub-agents, with the same rights"
    COMMANDS = "run commands and background jobs, in the sandbox"
    EXTENSIONS = "use skills, MCP servers and tools of plugins"
    APPROVE = "approve calls, also those of others"
    ADMINISTER = "change the model, the mode and settings, restart, hand conversations over"


ROLE_RIGHTS: Final[dict[Role, frozenset[Right]]] = {
    Role.OWNER: frozenset(Right),
    Role.MEMBER: frozenset(
        {
            Right.CONVERSE,
            Right.QUESTIONS,
            Right.CHAT_HISTORY,
            Right.MEMORY,
            Right.FILES,
            Right.COMMANDS,
            Right.DELEGATE,
            Right.SCHEDULE,
        }
    ),
    Role.GUEST: frozenset({Right.CONVERSE}),
}

TOOL_RIGHTS: Final[dict[str, Right]] = {
    "clarify": Right.QUESTIONS,
    "todo": Right.QUESTIONS,
    "session_search": Right.CHAT_HISTORY,
    "memory": Right.MEMORY,
    **dict.fromkeys(("read_file", "write_file", "patch", "search_files", "send_file"), Right.FILES),
    "delegate_task": Right.DELEGATE,
    "schedule": Right.SCHEDULE,
    **dict.fromkeys(("terminal", "process"), Right.COMMANDS),
}

COMMAND_RIGHTS: Final[dict[str, Right]] = {
    **dict.fromkeys(
        (
            "new", "reset", "clear", "title", "undo", "redo", "retry", "branch", "fork", "compress",
            "compact", "usage", "cost",
            "status", "tools", "deny", "stop", "queue", "steer", "help", "start", "whoami",
            "answer", "todo", "context",
        ),
        Right.CONVERSE,
    ),
    **dict.fromkeys(("resume", "sessions", "search"), Right.CHAT_HISTORY),
    "memory": Right.MEMORY,
    **dict.fromkeys(("diff", "checkpoints"), Right.FILES),
    "remind": Right.SCHEDULE,
    "skills": Right.EXTENSIONS,
    "approve": Right.APPROVE,
    **dict.fromkeys(
        (
            "save", "export", "copy", "init", "image", "rewind", "tree", "quit", "exit", "q",
        ),
        Right.ALL_FILES,
    ),
    **dict.fromkeys(("model", "handoff", "restart", "permissions", "trust"), Right.ADMINISTER),
}  # fmt: skip
UNLISTED_TOOL_RIGHT: Final = Right.EXTENSIONS
UNLISTED_COMMAND_RIGHT: Final = Right.ADMINISTER

NOT_FOR_GUESTS: Final = "/{name} is not available to guests. The owner can pair you as a member."
OWNER_ONLY: Final = "/{name} is only available to the owner (see `hermes people`)."


def may(role: Role, right: Right) -> bool:
    """Whether a role has a right."""
    return right in ROLE_RIGHTS[role]


def may_use_tool(role: Role, name: str) -> bool:
    """Whether a tool is offered to the model in a turn of a role."""
    return may(role, TOOL_RIGHTS.get(name, UNLISTED_TOOL_RIGHT))


def may_use_command(role: Role, name: str) -> bool:
    """Whether a role may use a slash command."""
    return may(role, COMMAND_RIGHTS.get(name, UNLISTED_COMMAND_RIGHT))


def require_command(role: Role, name: str) -> None:
    """Raise UsageError if a role may not use a slash command."""
    if not may_use_command(role, name):
        right = COMMAND_RIGHTS.get(name, UNLISTED_COMMAND_RIGHT)
        text = OWNER_ONLY if not may(Role.MEMBER, right) else NOT_FOR_GUESTS
        text = NOT_FOR_GUESTS if role is Role.GUEST else text
        raise UsageError(text.format(name=name))


def parse_role(text: str) -> Role | None:
    """The role with a name; None if the name is unknown."""
    return Role(text) if text in set(Role) else None


class Person(NamedTuple):
    """An identity on a platform."""

    platform: str
    user_id: str

    def __str__(self) -> str:
        return f"{self.platform}:{self.user_id}"

    @property
    def folder_name(self) -> str:
        """A safe folder name, different for different people."""
        digest = hashlib.sha256(f"{self.platform}\0{self.user_id}".encode(errors="replace"))
        readable = re.sub(r"[^a-z0-9]+", "-", f"{self.platform}-{self.user_id}".lower())
        return f"{readable.strip('-')[:40]}-{digest.hexdigest()[:12]}"
