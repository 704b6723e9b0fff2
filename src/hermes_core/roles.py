"""Roles of people and programs, and what each role may do.

Everything here is default-deny: a right that is not in ROLE_RIGHTS is not given, a tool that is
not listed needs a right that only the owner has. Slash commands state their right themselves.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum, StrEnum
from typing import Final, NamedTuple


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
    **dict.fromkeys(("session_search", "session_read"), Right.CHAT_HISTORY),
    "memory": Right.MEMORY,
    **dict.fromkeys(("read_file", "write_file", "patch", "search_files", "send_file"), Right.FILES),
    "delegate_task": Right.DELEGATE,
    "schedule": Right.SCHEDULE,
    **dict.fromkeys(("terminal", "process"), Right.COMMANDS),
}

UNLISTED_TOOL_RIGHT: Final = Right.EXTENSIONS


def may(role: Role, right: Right) -> bool:
    """Whether a role has a right."""
    return right in ROLE_RIGHTS[role]


def may_use_tool(role: Role, name: str) -> bool:
    """Whether a tool is offered to the model in a turn of a role."""
    return may(role, TOOL_RIGHTS.get(name, UNLISTED_TOOL_RIGHT))


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
