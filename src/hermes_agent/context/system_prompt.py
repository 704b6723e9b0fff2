"""The system prompt: short, and constant during a conversation.

It is fixed and stored when the conversation starts, so that providers can cache it. Values
that change during a conversation do not belong here.
"""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Final

from hermes_agent.context.profiles import PROFILES, Profile, cut

if TYPE_CHECKING:
    from pathlib import Path

ROLE: Final = """\
You are Hermes, a personal agent. You talk with one user and act for them with tools.

- Do exactly and completely what was asked. Briefly state what you do and what you found.
- Read a file before you edit it, and check your work by running it.
- Prefer small exact edits. Run commands without prompts for input; long ones in the background.
- If a call fails, read the error and try another way. If you are stuck, say so.
- Never invent results. If you do not know, look it up or say that you do not know.
- Ask only if a decision is the user's to make and cannot be undone.
- Answer in the user's language, in plain sentences; use Markdown where it helps.\
"""
INSTRUCTIONS_HEAD: Final = "# Instructions of the client program"
LARGE_PROFILE: Final = PROFILES[-1]


def system_prompt(
    cwd: Path,
    *,
    memory: str = "",
    user: str = "",
    skills: str = "",
    about: str = "",
    today: str = "",
    profile: Profile = LARGE_PROFILE,
    instructions: str = "",
) -> str:
    """The prompt of a new conversation in *cwd*, within the limits of *profile*."""
    environment = _environment(cwd, today or time.strftime("%A, %d %B %Y"))
    parts = {
        "# This chat": about,
        "# Instructions of the user and of this project": instructions,
        "# About the user": cut(user, profile.memory_characters, "USER.md"),
        "# Your memory": cut(memory, profile.memory_characters, "MEMORY.md"),
        "# Skills (read one with skill_view before using it)": cut(
            skills, profile.skills_characters, "the skill folders"
        ),
    }
    return "\n\n".join(
        [ROLE, environment, *(f"{head}\n{text}" for head, text in parts.items() if text)]
    )


def with_instructions(prompt: str, text: str) -> str:
    """A prompt with the instructions of an API client, instead of those that it has."""
    before, found, _ = prompt.rpartition(f"\n\n{INSTRUCTIONS_HEAD}\n")
    text = text.replace(INSTRUCTIONS_HEAD, INSTRUCTIONS_HEAD.removeprefix("# "))
    return f"{before if found else prompt}\n\n{INSTRUCTIONS_HEAD}\n{text}"


def _environment(cwd: Path, today: str) -> str:
    return f"Working folder: {cwd}\nSystem: {platform.system()}\nToday: {today}"
