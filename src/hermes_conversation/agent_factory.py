"""Builds an agent from the store, the selected model, tools, plugins and the prompt."""

from __future__ import annotations

import functools
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import hermes_plugin_host
from hermes_agent import toolbox
from hermes_agent.agent import AIAgent
from hermes_agent.checkpoints.records import CheckpointLimits
from hermes_agent.checkpoints.turn_checkpoints import TurnCheckpoints
from hermes_agent.context.system_prompt import Situation, Told, system_prompt, with_instructions
from hermes_agent.context.window import LARGE_PROFILE, AgentProfile, profile_for, warning_for
from hermes_agent.conversation_store import PROMPT_FACTS
from hermes_agent.memory.files import MEMORY_KINDS
from hermes_agent.permissions.approvals import ApprovalGuard, Approvals, CommandLimits, parse_mode
from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from hermes_agent.project.files import git_branch
from hermes_agent.project.instructions import Instructions, read_instructions
from hermes_agent.providers import selection
from hermes_agent.providers.retry import FallbackProvider
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.toolbox import Toolbox
from hermes_agent.tools.delegate import EXCLUDED_TOOLS, TaskDelegation
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.memory import MEMORY_TOOL, memory_review
from hermes_agent.tools.plan import PLAN_NOTE, plan_tool
from hermes_agent.tools.schedule import SCHEDULE_TOOL, schedule_tool
from hermes_agent.tools.send_file import send_file_tool
from hermes_agent.tools.toolset import standard_tools
from hermes_agent.tools.web.tools import WebTools
from hermes_agent.turn_control import TurnLimits
from hermes_conversation import shell_hooks
from hermes_conversation.command_environment import (
    command_environment,
    environment_without_secrets,
)
from hermes_conversation.extensions import AgentTools, Extensions, with_plugins
from hermes_conversation.history_scope import ConversationHistory, ScopedHistory
from hermes_conversation.known_fixes import hints_for
from hermes_conversation.plugin_turns import offer_to_plugins, turn_plugins
from hermes_conversation.role_limits import (
    OWNER_FOLDER,
    folder_of_role,
    limits_of_role,
    memory_of,
    prompter_of_role,
    reads_agents_file,
    schedule_review,
    tools_of_role,
)
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import NoModelError
from hermes_core.paths import hermes_home, workspace_path
from hermes_core.roles import Right, Role, may
from hermes_core.system_programs import system_program
from hermes_core.time_zones import find_zone
from hermes_state.files import media_of, shared_files
from hermes_state.schedules.rows import CRON

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from hermes_agent.context.window import Profile
    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.memory.facts import AgentMemory
    from hermes_agent.permissions.approvals import Mode
    from hermes_agent.providers.apis import ModelChoice
    from hermes_agent.providers.base import Provider
    from hermes_agent.shell_hooks.invoker import ShellHookInvoker
    from hermes_agent.skills import Skill
    from hermes_agent.toolbox import ToolItem
    from hermes_agent.tools.base import Tool
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.tools.send_file import SendsFiles
    from hermes_agent.tools.terminal import LimitsCommands
    from hermes_conversation.scheduled_jobs import JobRequester, PersonsJobs
    from hermes_core.config.file import Settings
    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.rows import StoredSource
    from hermes_state.facts import Fact
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

NO_MODEL: Final = (
    "No model is configured. Run `hermes setup`, or start Ollama, llama-server or LM Studio, "
    "or run `hermes models get smollm2` for the small built-in model."
)


class ConversationOptions(NamedTuple):
    """Options of one conversation, besides the settings."""

    session_id: str | None = None
    model: str = ""
    source: str = "cli"
    platform: str = "cli"
    cwd: Path | None = None
    about: str = ""  # description of the chat, for the system prompt
    scope_key: str = ""  # restricts history search to the chat with this session key
    role: Role = Role.OWNER
    person: str = ""  # the folder name of a person other than the owner
    send_file: SendsFiles | None = None  # to the chat of the conversation
    chat: StoredSource | None = None  # chat and sender in a chat app, for jobs that they schedule
    mode: Mode | None = None  # instead of the configured one
    allow: tuple[str, ...] = ()  # permission rules for this conversation
    instructions: str = ""  # of an API client, for the system prompt
    session_key: str = ""  # of the chat, for plugins
    has_automatic_title: bool = False
    mcp_servers: tuple[McpServerConfig, ...] = ()  # besides the configured ones
    max_steps: int = 0  # model requests of a turn, instead of the setting
    max_output: int = 0  # tokens of an answer, instead of the setting
    effort: str = ""  # instead of the setting


class AgentBundle(NamedTuple):
    """An agent and the resources that are closed with it."""

    agent: AIAgent
    jobs: Jobs
    extensions: Extensions
    approvals: Approvals
    items: list[ToolItem]  # the tools of the agent, for listings
    withdraw: Callable[[], None]  # from plugins
    shell_hooks: ShellHookInvoker | None = None

    @property
    def skills(self) -> list[Skill]:
        """All skills; unusable ones carry their problem."""
        return self.extensions.skills

    def inventory(self) -> list[ToolItem]:
        """All tools of the agent; lists the tools of MCP servers, which may take seconds."""
        names = self.agent.tool_names()
        taken = [item for item in self.items if item.name in names]
        servers = self.extensions.servers
        if servers is None or len(taken) < len(self.items):  # a small profile has no MCP tools
            return taken
        return taken + toolbox.server_tool_items(servers.catalog())

    def close(self) -> None:
        """Stop everything that was started for the agent."""
        self.withdraw()
        self.jobs.close()
        self.extensions.close()
        self.agent.close()
        if self.shell_hooks is not None:
            self.shell_hooks.close()


class AgentContext(NamedTuple):
    """What the parts of an agent are built from."""

    db: SessionDB
    options: ConversationOptions
    config: ConfigFile
    settings: Settings
    cwd: Path
    zone: tzinfo | None  # of the user
    shell: str

    @property
    def role(self) -> Role:
        """Whose rights the agent has."""
        return self.options.role

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Hosts that commands reach without asking."""
        is_owner = may(self.role, Right.ALL_FILES)
        return tuple(self.settings.get_list("agent.allowed_hosts")) if is_owner else ()


def build_agent(db: SessionDB, asks: Prompter, options: ConversationOptions) -> AgentBundle:
    """Build the agent of a new or a resumed conversation."""
    config = ConfigFile.of_home()
    settings, cwd = config.settings(), conversation_folder(options)
    zone = find_zone(settings.get_str("display.timezone"))
    shell = "bash" if system_program("bash") else "sh"
    context = AgentContext(db, options, config, settings, cwd, zone, shell)
    jobs = Jobs(command_environment(options.role, cwd, settings), context.allowed_hosts)
    memory = conversation_memory(db, options)
    extensions, web = _load_extensions(context), WebTools.of_settings(settings)
    approvals = _build_approvals(context, extensions, web, memory)
    extensions.limit_servers(
        lambda server, folder: approvals.server_policy(server, folder, jobs.temporary)
    )
    hooks = shell_hooks.invoker_of(
        db, shell_hooks.load_hooks(config, extensions.trust), cwd, environment_without_secrets,
        notify_plugins,
    )  # fmt: skip
    guard = ApprovalGuard(approvals, notify_plugins, options.platform, options.session_key)
    new_agent = functools.partial(
        AIAgent, db, platform=options.platform, cwd=cwd, guard=guard, plugins=turn_plugins(),
        announce=hooks or notify_plugins,
        limits=_turn_limits(settings),
        max_steps=options.max_steps or settings.get_int("agent.max_steps"),
        hints=hints_for(
            db, searchable_history(db, options), options.role,
            is_on=settings.get_bool("agent.hints"),
        ),
    )  # fmt: skip

    def build_child(parent_id: str) -> AIAgent:
        """The agent of a delegated task; it cannot prompt the user."""
        child_tools = [tool for tool in agent_tools.tools if tool.name not in EXCLUDED_TOOLS]
        return new_agent(
            _build_provider(context), Toolbox(child_tools), source="subagent",
            system_prompt=_child_prompt(context, extensions, approvals),
            parent_session_id=parent_id, model_config={"_delegate_from": parent_id},
        )  # fmt: skip

    delegate = TaskDelegation(build_child, db.sessions.end_session, notify_plugins).tool()
    limits = limits_of_role(options.role, CommandLimits(approvals, guard, jobs))
    own = _own_tools(context, jobs, limits, memory)
    own += [plan_tool(approvals), *web.tools(), *extensions.tools(), delegate]
    agent_tools, checkpoints = _with_checkpoints(context, own)
    tools, provider = Toolbox(agent_tools.tools), _build_provider(context)
    prompts = PromptBuilder(context, memory, extensions, approvals, tools, provider)
    agent = new_agent(
        provider, tools, session_id=options.session_id, source=options.source,
        prompts=prompts, prompter=prompter_of_role(options.role, asks),
        review_turns=0 if memory is None else settings.get_int("memory.review_turns"),
        checkpoints=checkpoints, pop_news=jobs.pop_news,
    )  # fmt: skip
    is_chat = options.chat is not None or bool(options.session_key)
    withdraw = offer_to_plugins(agent, is_chat=is_chat)
    return AgentBundle(agent, jobs, extensions, approvals, agent_tools.items(), withdraw, hooks)


def _turn_limits(settings: Settings) -> TurnLimits:
    return TurnLimits(
        settings.get_int("agent.idle_seconds"), settings.get_int("agent.turn_seconds")
    )


def _load_extensions(context: AgentContext) -> Extensions:
    """Skills, MCP servers and tools of plugins."""
    if not may(context.role, Right.EXTENSIONS):
        return Extensions([], None, context.cwd)
    servers = context.options.mcp_servers
    return Extensions.load(context.config, context.cwd, environment_without_secrets, servers)


def _build_approvals(
    context: AgentContext, extensions: Extensions, web: WebTools, memory: AgentMemory | None
) -> Approvals:
    """What needs approval, and the rules that answer for the user."""
    may_approve = may(context.role, Right.APPROVE)
    approvals = Approvals(
        _approval_mode(context.options, context.settings),
        is_sandboxed=find_sandbox().is_available,
        call_reviews={
            **extensions.reviews(),
            **web.reviews(lambda: approvals.mode == "plan"),
            SCHEDULE_TOOL: schedule_review(context.role),
            **({} if memory is None else {MEMORY_TOOL: memory_review(memory)}),
        },
        # What the owner always allows is for the owner's conversations.
        grants=_kept_grants(context.db, context.options) if may_approve else Grants(None),
        has_allowed_hosts=bool(context.allowed_hosts) and find_sandbox().name == "bubblewrap",
    )
    return approvals


def _build_provider(context: AgentContext) -> FallbackProvider:
    """The selected model and its fallbacks."""
    options, settings = context.options, context.settings
    max_output = options.max_output or settings.get_int("llm.max_output_tokens")
    effort = options.effort or settings.get_str("llm.effort")
    return FallbackProvider(
        [
            choice.with_limits(max_output, effort).provider(context.cwd)
            for choice in model_chain(settings, options.model)
        ],
        max_wait_seconds=settings.get_int("llm.max_wait_seconds"),
        media=media_of(context.db),
    )


def _own_tools(
    context: AgentContext, jobs: Jobs, limits: LimitsCommands, memory: AgentMemory | None
) -> list[Tool]:
    """The tools of Hermes that a conversation may have."""
    db, options = context.db, context.options
    history = searchable_history(db, options)
    own = standard_tools(jobs, limits, memory, history, media_of(db))
    if options.source != CRON:  # a scheduled run does not schedule further ones
        own.append(schedule_tool(lambda: _persons_jobs(db, options)))
    if options.send_file is not None:
        own.append(send_file_tool(limits, options.send_file))
    return own


def _with_checkpoints(
    context: AgentContext, tools: list[Tool]
) -> tuple[AgentTools, TurnCheckpoints]:
    """The tools that the role may use, with those of plugins; a checkpoint before each change."""
    allowed = tools_of_role(context.role, tools)
    may_extend = may(context.role, Right.EXTENSIONS)
    agent_tools = with_plugins(allowed) if may_extend else AgentTools(allowed, {})
    checkpoints = TurnCheckpoints(CheckpointLimits.of(context.settings))
    wrapped = [checkpoints.wrap(tool) for tool in agent_tools.tools]
    return agent_tools._replace(tools=wrapped), checkpoints


def _child_prompt(context: AgentContext, extensions: Extensions, approvals: Approvals) -> str:
    situation = _situation(context, context.cwd, approvals)
    instructions = _instructions(context.cwd, context.role, LARGE_PROFILE).text
    return system_prompt(
        situation._replace(instructions=instructions),
        skills=extensions.skill_lines(LARGE_PROFILE.skills_characters),
        is_sub_agent=True,
    )


def _situation(context: AgentContext, cwd: Path, approvals: Approvals) -> Situation:
    """The time and the place, and what a conversation may do."""
    return Situation(
        datetime.fromtimestamp(context.db.clock.now(), context.zone),
        cwd,
        mode=approvals.description(may_ask=may(context.role, Right.APPROVE)),
        reminder=PLAN_NOTE if approvals.mode == "plan" else "",
        shell=context.shell,
        branch=git_branch(cwd) if may(context.role, Right.ALL_FILES) else "",
    )


class PromptBuilder:
    """Builds the system prompt for the context window of a model, and the notices about it."""

    def __init__(
        self,
        context: AgentContext,
        memory: AgentMemory | None,
        extensions: Extensions,
        approvals: Approvals,
        tools: Toolbox,
        provider: FallbackProvider,
    ) -> None:
        self._context = context
        self._memory = memory
        self._extensions = extensions
        self._approvals = approvals
        self._tools = tools
        self._provider = provider
        self._used: list[Fact] = []  # in the prompt of a new conversation
        session_id = context.options.session_id
        self._row = context.db.sessions.find(session_id) if session_id else None

    def profile(
        self, window: int, cwd: Path, question: str = "", *, is_new: bool = False
    ) -> AgentProfile:
        """The prompt and the tools for a window; a stored prompt is used again."""
        context, row = self._context, self._row
        profile, options = profile_for(window), context.options
        notices = [_window_warning(self._provider.current, window)]
        prompt = "" if is_new or row is None else _stored_prompt(row, context.role)
        if row is not None and prompt:
            marker = row.marker(PROMPT_FACTS)
            facts = marker if isinstance(marker, dict) else {}
        else:
            # A prompt that is written for each turn is the same until it changes.
            asked = question if row is None or is_new else ""
            situation, found = self._situation_with_notices(window, cwd, self._choose(cwd, asked))
            if row is not None and not is_new:
                start = datetime.fromtimestamp(row.started_at, situation.now.tzinfo)
                situation = situation._replace(now=start)
            skills = self._extensions.skill_lines(profile.skills_characters)
            prompt = system_prompt(situation, skills=skills, about=options.about, profile=profile)
            facts, notices = situation.facts(), [*notices, *found]
        if options.instructions:
            prompt = with_instructions(prompt, options.instructions)
        if row is None:
            notices.insert(0, environment_notice(context.settings, options))
        notices += self._extensions.notices
        tools = profile.select(self._tools)
        return AgentProfile(prompt, facts, tools, tuple(filter(None, notices)))

    def situation(self, window: int, cwd: Path, told: JsonObject) -> Situation:
        """The situation of a conversation that has been *told* some facts."""
        memory = self._memory
        facts: dict[str, list[Fact]] = {}
        for target in MEMORY_KINDS if memory is not None else ():
            known = Told.of(told, target)
            facts[target] = memory.current(target, cwd, known.has, known.since) if memory else []
        return self._situation_with_notices(window, cwd, facts)[0]

    def note_use(self) -> None:
        """Count the facts of the memory in the prompt of a conversation that has begun."""
        used, self._used = self._used, []
        if self._memory is not None:
            self._memory.note_use(used)

    def _choose(self, cwd: Path, question: str) -> dict[str, list[Fact]]:
        """The facts of the memory for a new prompt."""
        memory = self._memory
        if memory is None:
            return {}
        facts = {target: memory.chosen(target, cwd, question) for target in MEMORY_KINDS}
        self._used = [fact for chosen in facts.values() for fact in chosen]
        return facts

    def _situation_with_notices(
        self, window: int, cwd: Path, facts: dict[str, list[Fact]]
    ) -> tuple[Situation, tuple[str, ...]]:
        found = _instructions(cwd, self._context.role, profile_for(window))
        situation = _situation(self._context, cwd, self._approvals)._replace(
            model=self._provider.selected.model,
            instructions=found.text,
            memory=[fact.text for fact in facts.get("memory", ())],
            user=[fact.text for fact in facts.get("user", ())],
        )
        return situation, found.notices


def conversation_folder(options: ConversationOptions) -> Path:
    """The working folder of a conversation; people other than the owner do not choose it."""
    if may(options.role, Right.ALL_FILES):
        return working_folder(options.cwd)
    return folder_of_role(options.role, options.person)


def _persons_jobs(db: SessionDB, options: ConversationOptions) -> PersonsJobs:
    from hermes_conversation.scheduled_jobs import PersonsJobs  # noqa: PLC0415 - most turns do without

    return PersonsJobs(db, job_requester(options))


def job_requester(options: ConversationOptions) -> JobRequester:
    """Who schedules jobs in a conversation."""
    from hermes_conversation.scheduled_jobs import chat_requester, local_requester  # noqa: PLC0415 - as above

    if options.chat is None:
        return local_requester()
    return chat_requester(options.chat, options.role)


def _kept_grants(db: SessionDB, options: ConversationOptions) -> Grants:
    """The rules of the owner: of this machine, or of all that share the history."""
    path = hermes_home() / GRANTS_FILE
    return Grants(path, rules=options.allow, shared=shared_files(db))


def conversation_memory(db: SessionDB, options: ConversationOptions) -> AgentMemory | None:
    """The notes that a conversation may use."""
    is_private = not options.scope_key
    return memory_of(options.role, options.person, db, is_private=is_private)


def working_folder(chosen: Path | None) -> Path:
    """The working folder of a conversation: the chosen one, else the current folder.

    The root of all files is not one: a server that runs there gets a folder of its own.
    """
    folder = (chosen or Path.cwd()).resolve()
    if folder != Path(folder.anchor):
        return folder
    return workspace_path(OWNER_FOLDER)


def searchable_history(db: SessionDB, options: ConversationOptions) -> ConversationHistory:
    """The history that may be searched in a conversation."""
    if options.scope_key or not may(options.role, Right.ALL_HISTORY):
        return ScopedHistory(db, options.scope_key)
    return ConversationHistory(db)


def _approval_mode(options: ConversationOptions, settings: Settings) -> Mode:
    mode = options.mode or parse_mode(settings.get_str("agent.approvals"))
    return "workspace" if mode == "full" and not may(options.role, Right.ALL_FILES) else mode


def model_chain(settings: Settings, name: str = "") -> list[ModelChoice]:
    """The selected model, followed by its fallbacks."""
    choice = selection.selected_model(settings)
    if name:
        choice = selection.model_by_name(settings, name, choice)
    choice = choice or selection.find_local_model()
    if choice is None:
        raise NoModelError(with_command_name(NO_MODEL))
    if not choice.model:
        choice = choice._replace(model=_first_listed(choice))
    fallbacks = settings.get_list("llm.fallbacks")
    return [
        choice,
        *(selection.model_by_name(settings, fallback, choice) for fallback in fallbacks),
    ]


def _first_listed(choice: ModelChoice) -> str:
    """The first model of an endpoint from the environment that names none."""
    from hermes_agent.providers import catalog  # noqa: PLC0415 - only for such an endpoint

    (listed,) = catalog.ModelCatalog().load([catalog.endpoint_of(choice)])
    if not listed.models:
        problem = listed.problem or f"{choice.base_url} lists no models."
        variable = f"{choice.api.name.upper()}_MODEL"
        raise NoModelError(f"{problem} Name a model with --model NAME or in {variable}.")
    return listed.models[0].model


def environment_notice(settings: Settings, options: ConversationOptions) -> str:
    """A line about a model that is used because its key was found; empty for other models."""
    if options.model or options.role is not Role.OWNER or selection.configured_model(settings):
        return ""
    found = selection.environment_model(settings)
    if found is None:
        return ""
    model = model_chain(settings)[0].model
    return with_command_name(found._replace(choice=found.choice._replace(model=model)).notice)


def _window_warning(provider: Provider, window: int) -> str:
    """A warning about a small context window; the built-in demo model needs none."""
    return "" if provider.is_demo else warning_for(provider.model, window)


def _stored_prompt(row: SessionRow, role: Role) -> str:
    """The prompt the conversation started with; it is kept for the provider's cache.

    Only the owner's: that of another person may be from a time when they had more rights.
    """
    return row.system_prompt or "" if role is Role.OWNER else ""


def _instructions(cwd: Path, role: Role, profile: Profile) -> Instructions:
    """The instruction files that a role reads."""
    if not reads_agents_file(role):
        return Instructions()
    return read_instructions(cwd, profile.instructions_bytes)


def notify_plugins(name: str, **facts: Any) -> list[Any]:
    """Invoke a hook; without enabled plugins nothing is imported."""
    if not is_set("plugins.enabled"):
        return []

    return hermes_plugin_host.invoke_hook(name, **facts)


def summarize_call(name: str, arguments: str) -> str:
    """Describe a tool call in one line."""
    try:
        data = json.loads(arguments)
    except ValueError:
        return name
    if not isinstance(data, dict):
        return name
    for key in ("command", "path", "url", "pattern", "query", "question", "action", "name"):
        if isinstance(data.get(key), str):
            return f"{name} {data[key]}"
    return name
