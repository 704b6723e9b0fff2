"""The system prompt: short, and constant during a conversation.

It is fixed and stored when the conversation starts, so that providers can cache it. Values
that change during a conversation do not belong here.
"""

from __future__ import annotations

import os
import platform
import stat
import time
from pathlib import Path
from typing import Final

from hermes_agent.context.profiles import PROFILES, Profile, cut
from hermes_agent.permissions.file_access import FileAccess
from hermes_agent.tools.real_paths import open_file
from hermes_core.paths import hermes_home

ROLE: Final = """\
You are Hermes, a personal agent. You talk with one user and act for them with tools.

- Do what was asked, completely, and nothing that was not. Say briefly what you do and found.
- Look before you change: read a file before editing it, and check your work by running it.
- Prefer small exact edits. Run commands without prompts for input; long ones in the background.
- A failed call is information: read the error, think, try another way, and say so if stuck.
- Never invent results. If you do not know, look it up or say that you do not know.
- Ask only when a choice is the user's to make and cannot be undone.
- Answer in the user's language, in plain sentences; use Markdown where it helps.\
"""
INSTRUCTIONS_HEAD: Final = "# Instructions of the client program"
MAX_BYTES_PER_CHARACTER: Final = 4
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
    reads_agents_file: bool = True,
) -> str:
    """The prompt of a new conversation in *cwd*, within the limits of *profile*."""
    notes = _notes(cwd, profile.notes_characters) if reads_agents_file else ""
    environment = _environment(cwd, today or time.strftime("%A, %d %B %Y"))
    parts = {
        "# This chat": about,
        "# Instructions for this folder (AGENTS.md)": notes,
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


def _notes(cwd: Path, characters: int) -> str:
    """The beginning of AGENTS.md; a command could make it a link to a hidden file, or a pipe."""
    path = Path(os.path.realpath(cwd / "AGENTS.md"))
    try:
        with os.fdopen(open_file(path), "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            if not is_regular or FileAccess(hermes_home(), Path.home()).is_hidden(path, cwd):
                return ""
            data = file.read(MAX_BYTES_PER_CHARACTER * (characters + 1))
    except OSError:
        return ""
    return cut(data.decode(errors="replace").strip(), characters, str(cwd / "AGENTS.md"))
