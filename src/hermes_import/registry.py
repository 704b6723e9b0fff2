"""The agents whose histories can be imported."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.isolate import Failure, attempt, attempt_each
from hermes_import.importer import found_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_import.sources import AgentSource, Unit
    from hermes_state.store import SessionDB

# The module of each agent, and its class.
BUILT_IN: Final = {
    "claude-code": ("claude_code", "ClaudeCode"),
    "codex": ("codex", "Codex"),
    "gemini": ("gemini", "Gemini"),
    "opencode": ("opencode", "OpenCode"),
    "pi": ("pi", "Pi"),
    "openclaw": ("openclaw", "OpenClaw"),
    "copilot": ("copilot", "Copilot"),
    "qwen": ("qwen", "Qwen"),
    "aider": ("aider", "Aider"),
    "llm": ("llm", "Llm"),
    "goose": ("goose", "Goose"),
    "claude-ai": ("web_exports", "ClaudeAi"),
    "chatgpt": ("web_exports", "ChatGpt"),
    "open-webui": ("web_exports", "OpenWebUi"),
    "hermes-agent": ("hermes_agent", "HermesAgent"),
    "hermes-export": ("hermes_export", "HermesExport"),
}


class HistoryFacts(NamedTuple):
    """The history of an agent as it is listed."""

    agent: str
    label: str
    places: list[str]
    conversations: int
    size_bytes: int
    new: int  # or changed since they were imported


class FoundHistory(NamedTuple):
    """The history of an agent on this machine."""

    source: AgentSource
    roots: tuple[Path, ...]
    failure: Exception | None = None  # of the search for it

    def units(self) -> Iterator[Unit]:
        """Everything that can be read."""
        if self.failure is not None:
            raise self.failure
        yield from found_units(self.source, self.roots)

    def facts(self, db: SessionDB) -> HistoryFacts:
        """What it consists of, and how much of it is not imported."""
        known = db.imports.units(self.source.name)
        found = attempt_each(f"find conversations of {self.source.name}", self.units())
        units = [unit for unit in found if not isinstance(unit, Failure)]
        new = [
            unit
            for unit in units
            if (before := known.get(unit.unit_id)) is None or before.revision != unit.revision
        ]
        self.source.close()
        return HistoryFacts(
            self.source.name,
            self.source.label,
            [str(root) for root in self.roots],
            sum(unit.conversations for unit in units),
            sum(unit.size_bytes for unit in units),
            sum(unit.conversations for unit in new),
        )


class SourceRegistry:
    """The agents by name: the built-in ones and those of plugins."""

    def __init__(self, added: Iterable[AgentSource] = ()) -> None:
        self._added = {source.name: source for source in added}

    @property
    def names(self) -> list[str]:
        """The names of all agents."""
        return [*BUILT_IN, *(name for name in self._added if name not in BUILT_IN)]

    def get(self, name: str) -> AgentSource:
        """The agent with a name; UsageError if there is none."""
        if name in self._added:
            return self._added[name]
        if name not in BUILT_IN:
            known = ", ".join(self.names)
            raise UsageError(f"Unknown agent '{name}'. Known agents: {known}.")
        module, class_name = BUILT_IN[name]
        source: AgentSource = getattr(
            importlib.import_module(f"hermes_import.agents.{module}"), class_name
        )()
        return source

    def found_in(self, home: Path, environ: Mapping[str, str]) -> list[FoundHistory]:
        """The histories in a home folder."""
        found = (self.found_of(name, home, environ) for name in self.names)
        return [each for each in found if each is not None]

    def found_of(self, name: str, home: Path, environ: Mapping[str, str]) -> FoundHistory | None:
        """The history of an agent in a home folder."""
        source = self.get(name)
        roots = attempt(f"find {name}", lambda: source.roots(home, environ))
        if isinstance(roots, Failure):
            return FoundHistory(source, (), roots.error)
        return FoundHistory(source, tuple(roots)) if roots else None

    def found_at(self, name: str, path: Path) -> FoundHistory:
        """The history of an agent in its own folder, or in a home folder."""
        source = self.get(name)
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        root = source.root_at(path)
        roots = [root] if root is not None else source.roots(path, {})
        if not roots:
            raise UsageError(f"{path} has no history of {source.label}.")
        return FoundHistory(source, tuple(roots))

    def recognize(self, text: str) -> FoundHistory:
        """The history in a file or folder whose agent is not given."""
        path = Path(text).expanduser().absolute()
        if not path.exists():
            known = ", ".join(self.names)
            raise UsageError(f"'{text}' is neither an agent nor a file. Agents: {known}.")
        for name in self.names:
            source = self.get(name)
            root = source.root_at(path)
            if root is not None:
                return FoundHistory(source, (root,))
        raise UsageError(f"{path}: not a history of a known agent. Name the agent before the path.")
