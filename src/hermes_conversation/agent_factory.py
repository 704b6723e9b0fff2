"""A conversation put together: the store, the chosen model, tools, plugins, the prompt."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent import toolbox
from hermes_agent.agent import AIAgent
from hermes_agent.context.profiles import AgentProfile, profile_for, warning_for
from hermes_agent.context.system_prompt import system_prompt
from hermes_agent.memory.files import MemoryFiles
from hermes_agent.permissions.approvals import MODES, Approvals, Guarding
from hermes_agent.providers import selection
from hermes_agent.providers.retry import FallbackProvider
from hermes_agent.toolbox import Toolbox
from hermes_agent.tools.delegate import NOT_FOR_CHILDREN, Delegating
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.toolset import standard_tools
from hermes_conversation.extensions import Equipment, with_plugins
from hermes_conversation.history_scope import OwnHistory
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.config.probe import may_be_set
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError, NoModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.context.profiles import Profile
    from hermes_agent.permissions.approvals import Mode
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.selection import Choice
    from hermes_agent.skills import Skill
    from hermes_agent.toolbox import Item
    from hermes_agent.tools.base import Asks
    from hermes_core.config.file import Settings
    from hermes_state import SessionDB

NO_MODEL: Final = (
    "No model is configured. Run `hermes setup`, or start Ollama, llama-server or LM Studio, "
    "or run `hermes models get smollm2` for the small built-in model."
)


class ConversationOptions(NamedTuple):
    """What the user asked for besides the settings."""

    session_id: str | None = None
    model: str = ""
    source: str = "cli"
    platform: str = "cli"
    cwd: Path | None = None
    about: str = ""  # what the prompt says about the place of the conversation
    only_of: str = ""  # the key of the place whose history alone may be searched


class AgentBundle(NamedTuple):
    """A conversation and what has to be let go of after it."""

    agent: AIAgent
    jobs: Jobs
    equipment: Equipment
    items: list[Item]  # what stands in the toolbox

    @property
    def skills(self) -> list[Skill]:
        """The skills that were found, the broken ones with what is wrong with them."""
        return self.equipment.skills

    def inventory(self) -> list[Item]:
        """All that the agent can do; asks MCP servers, which may take seconds."""
        names = self.agent.tool_names()
        taken = [item for item in self.items if item.name in names]
        servers = self.equipment.servers
        if servers is None or len(taken) < len(self.items):  # servers come with all the rest only
            return taken
        return taken + toolbox.of_servers(servers.survey())

    def close(self) -> None:
        """Stop everything that was started for it."""
        self.jobs.close()
        self.equipment.close()
        self.agent.close()


def build_agent(db: SessionDB, asks: Asks, wish: ConversationOptions) -> AgentBundle:
    """A new conversation, or one taken up again."""
    config = ConfigFile.of_home()
    settings = config.settings()
    cwd = (wish.cwd or Path.cwd()).resolve()
    row = db.get_session(wish.session_id) if wish.session_id else None
    jobs, memory = Jobs(environment=without_secrets()), MemoryFiles()
    is_owners = not wish.only_of  # what is remembered is the owner's, and for nobody else
    equipment = Equipment.found(config, cwd)
    approvals = Approvals(_mode(settings), judges=equipment.judges())
    shared: dict[str, Any] = {
        "platform": wish.platform,
        "cwd": cwd,
        "announce": announce,
        "guard": Guarding(approvals, announce, wish.platform),
    }

    def patient() -> FallbackProvider:
        return FallbackProvider([choice.provider(cwd) for choice in chain(settings, wish.model)])

    def child(parent_id: str) -> AIAgent:
        """The agent of a sub-agent's conversation; nobody can be asked in it."""
        tools = Toolbox(tool for tool in kit.tools if tool.name not in NOT_FOR_CHILDREN)
        return AIAgent(
            db,
            patient(),
            tools,
            source="subagent",
            system_prompt=system_prompt(cwd, skills=equipment.skill_lines),
            parent_session_id=parent_id,
            model_config={"_delegate_from": parent_id},
            **shared,
        )

    delegate = Delegating(child, db.end_session, announce).tool()
    own = standard_tools(jobs, memory, history_for(db, wish))
    own = [tool for tool in own if is_owners or tool.name != "memory"]
    kit = with_plugins([*own, *equipment.tools(), delegate])
    tools, answering = Toolbox(kit.tools), patient()

    def outfit(window: int) -> AgentProfile:
        profile = profile_for(window)
        kept = memory if is_owners else None
        prompt = _stored_prompt(row) or _fresh_prompt(cwd, kept, equipment, profile, wish.about)
        return AgentProfile(prompt, profile.takes(tools), _warning(answering.current, window))

    agent = AIAgent(
        db,
        answering,
        tools,
        session_id=wish.session_id,
        source=wish.source,
        outfit=outfit,
        review_turns=settings.get_int("memory.review_turns") if is_owners else 0,
        asks=asks,
        **shared,
    )
    return AgentBundle(agent, jobs, equipment, kit.items())


def history_for(db: SessionDB, wish: ConversationOptions) -> SessionDB | OwnHistory:
    """What may be searched in a conversation."""
    return OwnHistory(db, wish.only_of) if wish.only_of else db


def without_secrets() -> dict[str, str]:
    """The environment of commands: what is secret is the agent's, not theirs."""
    secret = {setting.variable for setting in SETTINGS if setting.secret}
    # What cannot be read names nothing; the gateway and `config check` say so.
    with contextlib.suppress(ConfigError):
        secret |= set(_named_secrets(ConfigFile.of_home().block("platforms")))
    return {name: value for name, value in os.environ.items() if name not in secret}


def _named_secrets(block: object) -> Iterator[str]:
    """Variables that the settings of platforms name as secrets: `secret_env`, wherever it is."""
    if not isinstance(block, dict):
        return
    for name, value in block.items():
        if name == "secret_env":
            yield str(value)
        else:
            yield from _named_secrets(value)


def _mode(settings: Settings) -> Mode:
    chosen = settings.get_str("agent.approvals")
    return next(mode for mode in MODES if mode == chosen)


def chain(settings: Settings, name: str = "") -> list[Choice]:
    """The model that answers and those that step in for it."""
    choice = selection.chosen(settings)
    if name:
        choice = selection.named(settings, name, choice)
    choice = choice or selection.found_here()
    if choice is None:
        raise NoModelError(with_command_name(NO_MODEL))
    fallbacks = settings.get_list("llm.fallbacks")
    return [choice, *(selection.named(settings, one, choice) for one in fallbacks)]


def _warning(provider: Provider, window: int) -> str:
    """What to say about a model that reads little; the built-in one is known to be a toy."""
    return "" if provider.api_mode == "local" else warning_for(provider.model, window)


def _stored_prompt(row: dict[str, Any] | None) -> str:
    """The prompt the conversation began with: it stays the same for the provider's cache."""
    return str((row or {}).get("system_prompt") or "")


def _fresh_prompt(
    cwd: Path, memory: MemoryFiles | None, equipment: Equipment, profile: Profile, about: str
) -> str:
    targets = ("memory", "user")
    texts = {one: "\n".join(memory.entries(one)) if memory else "" for one in targets}
    skills = equipment.skill_lines
    return system_prompt(
        cwd,
        memory=texts["memory"],
        user=texts["user"],
        skills=skills,
        about=about,
        profile=profile,
    )


def announce(name: str, **facts: Any) -> list[Any]:
    """Tell plugins; most people have none, and pay nothing for them."""
    if not may_be_set("plugins.enabled"):
        return []
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    return hermes_plugin_host.invoke_hook(name, **facts)


def summary(name: str, arguments: str) -> str:
    """A tool call in one line."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return name
    if not isinstance(found, dict):
        return name
    for key in ("command", "path", "pattern", "query", "question", "action", "name"):
        if isinstance(found.get(key), str):
            return f"{name} {found[key]}"
    return name
