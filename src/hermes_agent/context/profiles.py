"""Profiles of an agent: the system prompt and the tools that fit its context window."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.toolbox import Toolbox


ALL_TOOLS: Final[frozenset[str]] = frozenset()
SMALL_TOOLS: Final = frozenset({"terminal", "read_file", "write_file", "patch"})
MEDIUM_TOOLS: Final = SMALL_TOOLS | {
    "process",
    "search_files",
    "memory",
    "session_search",
    "clarify",
}
WINDOW_ADVICE: Final = (
    "If its context window is larger, set it with `hermes config set llm.window TOKENS` "
    "(for Ollama, set OLLAMA_CONTEXT_LENGTH)."
)


class Profile(NamedTuple):
    """Limits for windows up to `max_tokens`."""

    name: str
    max_tokens: int
    tools: frozenset[str]  # ALL_TOOLS means every tool
    instructions_bytes: int  # of AGENTS.md and the like
    memory_characters: int  # of each of the two memory files
    skills_characters: int
    full: float  # share of the window at which a conversation is summarized
    warning: str = ""

    def select(self, toolbox: Toolbox) -> Toolbox:
        """The tools of this profile."""
        return toolbox if self.tools == ALL_TOOLS else toolbox.only(self._names(toolbox))

    def _names(self, toolbox: Toolbox) -> list[str]:
        return [name for name in toolbox.names() if name in self.tools]


PROFILES: Final = (
    Profile(
        "small", 8_192, SMALL_TOOLS, 800, 500, 0, 0.6,
        "so it gets only the command and file tools, a short prompt, and no memory.",
    ),
    Profile(
        "medium", 32_768, MEDIUM_TOOLS, 3_000, 2_200, 0, 0.65,
        "so it gets no sub-agents, skills, MCP servers or plugin tools.",
    ),
    Profile("large", 0, ALL_TOOLS, 32_768, 4_000, 8_000, 0.7),
)  # fmt: skip


class AgentProfile(NamedTuple):
    """The prompt, the tools and notices for the user."""

    prompt: str
    toolbox: Toolbox
    notices: tuple[str, ...] = ()


def profile_for(window: int) -> Profile:
    """The profile for a context window."""
    matching = (profile for profile in PROFILES if window <= profile.max_tokens)
    return next(matching, PROFILES[-1])


def warning_for(model: str, window: int) -> str:
    """The warning about a small context window, or an empty text."""
    profile = profile_for(window)
    if not profile.warning:
        return ""
    return (
        f"{model} has a context window of only {window:,} tokens, {profile.warning} {WINDOW_ADVICE}"
    )


def cut(text: str, characters: int, where: str) -> str:
    """The beginning of a long text, cut at a line end if possible."""
    if len(text) <= characters:
        return text
    result = text[:characters]
    result = result[: result.rfind("\n")] if "\n" in result else result
    return f"{result}\n(cut; the rest is in {where})" if result.strip() else ""


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
