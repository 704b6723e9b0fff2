"""Prompt size and tools by the size of the context window.

A model with a small window gets a short prompt and few tools, and its conversations are
summarized early. It is never rejected; the user is warned once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
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
