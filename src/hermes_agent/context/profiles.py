"""How much an agent takes along, by how much its model can read.

A model that reads little gets a short prompt and few tools, and is summed up early. It is
never refused: whoever chose it is told what it means, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_agent.toolbox import Toolbox

ALL_TOOLS: Final[frozenset[str]] = frozenset()
FEW_TOOLS: Final = frozenset({"terminal", "read_file", "write_file", "patch"})
MORE_TOOLS: Final = FEW_TOOLS | {"process", "search_files", "memory", "session_search", "clarify"}
ADVICE: Final = (
    "If its context window is larger, set it with `hermes config set llm.window TOKENS` "
    "(for Ollama, set OLLAMA_CONTEXT_LENGTH)."
)


class Profile(NamedTuple):
    """What goes along for windows up to `most_tokens`."""

    name: str
    most_tokens: int
    tools: frozenset[str]  # ALL_TOOLS: every one there is
    notes_characters: int  # of AGENTS.md
    memory_characters: int  # of each of the two memory files
    skills_characters: int
    full: float  # of the window: from here on a conversation is summed up
    warning: str = ""

    def takes(self, toolbox: Toolbox) -> Toolbox:
        """The tools that go along."""
        return toolbox if self.tools == ALL_TOOLS else toolbox.only(self._names(toolbox))

    def _names(self, toolbox: Toolbox) -> list[str]:
        return [name for name in toolbox.names() if name in self.tools]


PROFILES: Final = (
    Profile(
        "small", 8_192, FEW_TOOLS, 800, 500, 0, 0.6,
        "so it gets only the command and file tools, a short prompt, and no memory.",
    ),
    Profile(
        "medium", 32_768, MORE_TOOLS, 3_000, 2_200, 0, 0.65,
        "so it gets no sub-agents, skills, MCP servers or plugin tools.",
    ),
    Profile("large", 0, ALL_TOOLS, 6_000, 4_000, 8_000, 0.7),
)  # fmt: skip


class AgentProfile(NamedTuple):
    """What an agent sets out with, and what its person should know about it."""

    prompt: str
    toolbox: Toolbox
    warning: str = ""


def profile_for(window: int) -> Profile:
    """The profile for a model that reads *window* tokens at once."""
    fitting = (one for one in PROFILES if window <= one.most_tokens)
    return next(fitting, PROFILES[-1])


def warning_for(model: str, window: int) -> str:
    """What to say about a model that reads little; nothing about others."""
    profile = profile_for(window)
    if not profile.warning:
        return ""
    return f"{model} has a context window of only {window:,} tokens, {profile.warning} {ADVICE}"


def cut(text: str, characters: int, where: str) -> str:
    """The beginning of a text that is too long, at the end of a line where there is one."""
    if len(text) <= characters:
        return text
    kept = text[:characters]
    kept = kept[: kept.rfind("\n")] if "\n" in kept else kept
    return f"{kept}\n(cut; the rest is in {where})" if kept.strip() else ""
