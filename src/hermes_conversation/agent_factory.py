"""Builds an agent from the store, the selected model, tools, plugins and the prompt."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import hermes_plugin_host
from hermes_agent import toolbox
from hermes_agent.agent import AIAgent
from hermes_agent.checkpoints.limits import CheckpointLimits
from hermes_agent.checkpoints.turn_checkpoints import TurnCheckpoints
from hermes_agent.context.profiles import AgentProfile, profile_for, warning_for
from hermes_agent.context.system_prompt import LARGE_PROFILE, system_prompt, with_instructions
from hermes_agent.events import Failed
from hermes_agent.memory.files import MemoryFiles
from hermes_agent.messages import ModelRequest
from hermes_agent.permissions.approvals import ApprovalGuard, Approvals, CommandLimits, parse_mode
from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from hermes_agent.project.instructions import Instructions, read_instructions
from hermes_agent.providers import selection
from hermes_agent.providers.retry import FallbackProvider
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.toolbox import Toolbox
from hermes_agent.tools.delegate import EXCLUDED_TOOLS, TaskDelegation
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.plan import plan_tool, with_plan_note
from hermes_agent.tools.schedule import SCHEDULE_TOOL, schedule_tool
from hermes_agent.tools.send_file import send_file_tool
from hermes_agent.tools.toolset import standard_tools
from hermes_agent.tools.web.tools import WebTools
from hermes_agent.turn_deadline import TurnLimits
from hermes_agent.turn_hooks import TurnPlugins
from hermes_conversation import shell_hooks
from hermes_conversation.command_environment import (
    command_environment,
    environment_without_secrets,
)
from hermes_conversation.extensions import AgentTools, Extensions, with_plugins
from hermes_conversation.history_scope import ConversationHistory, ScopedHistory
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
from hermes_conversation.scheduled_jobs import PersonsJobs, chat_requester, local_requester
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.config.presence import is_set
from hermes_core.errors import NoModelError, PluginError
from hermes_core.paths import hermes_home, workspace_path
from hermes_core.roles import Right, Role, may
from hermes_plugin_host.services import ModelAnswer
from hermes_state.files import media_of, shared_files
from hermes_state.schedules.rows import CRON

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_agent.context.profiles import Profile
    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.permissions.approvals import Mode
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.selection import ModelChoice
    from hermes_agent.shell_hooks.invoker import ShellHookInvoker
    from hermes_agent.skills import Skill
    from hermes_agent.toolbox import ToolItem
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.tools.send_file import SendsFiles
    from hermes_conversation.scheduled_jobs import JobRequester
    from hermes_core.config.file import Settings
    from hermes_core.json_values import JsonObject
    from hermes_plugin_host.callbacks import Callback
    from hermes_state.delivery.stored_json import StoredSource
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

    Run = Callable[[JsonObject], str]


# Plugins in a turn: middleware around tool calls, and the agent as plugins use it.
#
# `tool_request` may change the arguments of a call. `tool_execution` runs around it: it gets
# `next_call`, which runs the rest, and returns the result. Changed arguments are checked as the
# model's own are.

TOOL_REQUEST: Final = "tool_request"
TOOL_EXECUTION: Final = "tool_execution"


def turn_plugins() -> TurnPlugins:
    """The effects of the enabled plugins; without any, nothing is imported."""
    if not is_set("plugins.enabled"):
        return TurnPlugins()
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    def change_arguments(facts: JsonObject, arguments: JsonObject) -> JsonObject:
        for middleware in hermes_plugin_host.active().middleware(TOOL_REQUEST):
            answer = middleware.call({**facts, "args": dict(arguments)}).result
            changed = answer.get("args") if isinstance(answer, dict) else None
            arguments = changed if isinstance(changed, dict) else arguments
        return arguments

    def execute(facts: JsonObject, arguments: JsonObject, run: Run) -> str:
        around = hermes_plugin_host.active().middleware(TOOL_EXECUTION)
        return _run_chain(around, facts, arguments, run)

    return TurnPlugins(hermes_plugin_host.has_hook, change_arguments, execute)


def _run_chain(around: list[Callback], facts: JsonObject, arguments: JsonObject, run: Run) -> str:
    if not around:
        return run(arguments)
    first, rest = around[0], around[1:]
    results: list[str] = []

    def next_call(args: JsonObject | None = None) -> str:
        chosen = arguments if args is None else args
        results.append(_run_chain(rest, facts, chosen, run))
        return results[-1]

    answer = _called(first, {**facts, "args": arguments, "next_call": next_call})
    if answer is None:  # it only observes
        return results[-1] if results else next_call()
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _called(middleware: Callback, facts: dict[str, Any]) -> Any:
    """Call middleware in this thread: it takes as long as the tool does."""
    try:
        answer = middleware.function(**facts)
        return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer
    except SystemExit as stop:
        raise PluginError(f"the plugin {middleware.plugin} called sys.exit ({stop})") from stop


async def _awaited(answer: Any) -> Any:
    return await answer


class AgentForPlugins:
    """One agent, for `ctx.inject_message`, `ctx.dispatch_tool` and `ctx.llm`.

    Unread input of a chat stays in the inbox, so chats take none from here.
    """

    def __init__(self, agent: AIAgent, *, is_chat: bool) -> None:
        self._agent = agent
        self._is_chat = is_chat

    @property
    def session_id(self) -> str:
        """The session ID."""
        return self._agent.session_id

    def inject(self, text: str) -> bool:
        """Give a text to the running turn; whether there is one that takes it."""
        if self._is_chat or not self._agent.is_running:
            return False
        self._agent.steer(text)
        return True

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool with the rights of the conversation."""
        return self._agent.call_tool(name, arguments)

    def complete(self, messages: Sequence[Any], max_tokens: int | None) -> ModelAnswer:
        """Ask the model of the conversation."""
        answer = self._agent.complete(ModelRequest(list(messages), [], max_tokens))
        if isinstance(answer, Failed):
            raise PluginError(str(answer))
        return ModelAnswer(answer.text, self._agent.model, answer.usage._asdict())


def offer_to_plugins(agent: AIAgent, *, is_chat: bool) -> Callable[[], None]:
    """Let plugins use a conversation; returns the function that ends it."""
    if not is_set("plugins.enabled"):
        return lambda: None
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    offered = AgentForPlugins(agent, is_chat=is_chat)
    hermes_plugin_host.conversations().add(offered)
    return lambda: hermes_plugin_host.conversations().remove(offered)


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


def build_agent(db: SessionDB, asks: Prompter, options: ConversationOptions) -> AgentBundle:
    """Build the agent of a new or a resumed conversation."""
    config = ConfigFile.of_home()
    settings = config.settings()
    role, cwd = options.role, conversation_folder(options)
    row = db.sessions.find(options.session_id) if options.session_id else None
    hosts = tuple(settings.get_list("agent.allowed_hosts")) if may(role, Right.ALL_FILES) else ()
    variables = command_environment(role, cwd, settings)
    jobs, memory = Jobs(variables, hosts), conversation_memory(db, options)
    may_extend = may(role, Right.EXTENSIONS)
    extensions = (
        Extensions.load(config, cwd, environment_without_secrets, options.mcp_servers)
        if may_extend
        else Extensions([], None, cwd)
    )
    web = WebTools.of_settings(settings)
    approvals = Approvals(
        _approval_mode(options, settings),
        is_sandboxed=find_sandbox().is_available,
        call_reviews={
            **extensions.reviews(),
            **web.reviews(lambda: approvals.mode == "plan"),
            SCHEDULE_TOOL: schedule_review(role),
        },
        # What the owner always allows is for the owner's conversations.
        grants=_kept_grants(db, options) if may(role, Right.APPROVE) else Grants(None),
        has_allowed_hosts=bool(hosts) and find_sandbox().name == "bubblewrap",
    )
    hooks = shell_hooks.invoker_of(
        db,
        shell_hooks.load_hooks(config, extensions.trust),
        cwd,
        environment_without_secrets,
        notify_plugins,
    )
    extensions.limit_servers(
        lambda server, folder: approvals.server_policy(server, folder, jobs.temporary)
    )
    guard = ApprovalGuard(approvals, notify_plugins, options.platform, options.session_key)
    shared: dict[str, Any] = {
        "platform": options.platform,
        "cwd": cwd,
        "announce": with_plan_note(hooks or notify_plugins, approvals),
        "plugins": turn_plugins(),
        "guard": guard,
        "limits": TurnLimits(
            settings.get_int("agent.idle_seconds"), settings.get_int("agent.turn_seconds")
        ),
        "max_steps": options.max_steps or settings.get_int("agent.max_steps"),
    }

    def build_provider() -> FallbackProvider:
        return FallbackProvider(
            [
                choice.with_limits(
                    options.max_output or settings.get_int("llm.max_output_tokens"),
                    options.effort or settings.get_str("llm.effort"),
                ).provider(cwd)
                for choice in model_chain(settings, options.model)
            ],
            max_wait_seconds=settings.get_int("llm.max_wait_seconds"),
            media=media_of(db),
        )

    def build_child(parent_id: str) -> AIAgent:
        """The agent of a delegated task; it cannot prompt the user."""
        tools = Toolbox(tool for tool in agent_tools.tools if tool.name not in EXCLUDED_TOOLS)
        return AIAgent(
            db,
            build_provider(),
            tools,
            source="subagent",
            system_prompt=system_prompt(
                cwd,
                skills=extensions.skill_lines(LARGE_PROFILE.skills_characters),
                instructions=_instructions(cwd, role, LARGE_PROFILE).text,
            ),
            parent_session_id=parent_id,
            model_config={"_delegate_from": parent_id},
            **shared,
        )

    delegate = TaskDelegation(build_child, db.sessions.end_session, notify_plugins).tool()
    limits = limits_of_role(role, CommandLimits(approvals, guard, jobs))
    history = searchable_history(db, options)
    own = standard_tools(jobs, limits, memory or MemoryFiles(), history, media_of(db))
    own = [tool for tool in own if memory is not None or tool.name != "memory"]
    if options.source != CRON:  # a scheduled run does not schedule further ones
        own.append(schedule_tool(PersonsJobs(db, job_requester(options))))
    if options.send_file is not None:
        own.append(send_file_tool(limits, options.send_file))
    own.append(plan_tool(approvals))
    own = tools_of_role(role, [*own, *web.tools(), *extensions.tools(), delegate])
    agent_tools = with_plugins(own) if may_extend else AgentTools(own, {})
    checkpoints = TurnCheckpoints(CheckpointLimits.of(settings))
    agent_tools = agent_tools._replace(tools=[checkpoints.wrap(each) for each in agent_tools.tools])
    tools, provider = Toolbox(agent_tools.tools), build_provider()

    def build_profile(window: int) -> AgentProfile:
        profile = profile_for(window)
        prompt, notices = _stored_prompt(row, role), [_window_warning(provider.current, window)]
        if not prompt:
            found = _instructions(cwd, role, profile)
            prompt = _build_prompt(cwd, memory, extensions, profile, options, found.text)
            notices += found.notices
        if options.instructions:
            prompt = with_instructions(prompt, options.instructions)
        if row is None:
            notices.insert(0, environment_notice(settings, options))
        notices += extensions.notices
        return AgentProfile(prompt, profile.select(tools), tuple(filter(None, notices)))

    agent = AIAgent(
        db,
        provider,
        tools,
        session_id=options.session_id,
        source=options.source,
        build_profile=build_profile,
        review_turns=0 if memory is None else settings.get_int("memory.review_turns"),
        prompter=prompter_of_role(role, asks),
        checkpoints=checkpoints,
        **shared,
    )
    is_chat = options.chat is not None or bool(options.session_key)
    withdraw = offer_to_plugins(agent, is_chat=is_chat)
    return AgentBundle(agent, jobs, extensions, approvals, agent_tools.items(), withdraw, hooks)


def conversation_folder(options: ConversationOptions) -> Path:
    """The working folder of a conversation; people other than the owner do not choose it."""
    if may(options.role, Right.ALL_FILES):
        return working_folder(options.cwd)
    return folder_of_role(options.role, options.person)


def job_requester(options: ConversationOptions) -> JobRequester:
    """Who schedules jobs in a conversation."""
    if options.chat is None:
        return local_requester()
    return chat_requester(options.chat, options.role)


def _kept_grants(db: SessionDB, options: ConversationOptions) -> Grants:
    """The rules of the owner: of this machine, or of all that share the history."""
    path = hermes_home() / GRANTS_FILE
    return Grants(path, rules=options.allow, shared=shared_files(db))


def conversation_memory(db: SessionDB, options: ConversationOptions) -> MemoryFiles | None:
    """The notes that a conversation may use."""
    is_private = not options.scope_key
    return memory_of(options.role, options.person, shared_files(db), is_private=is_private)


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
        variable = "ANTHROPIC_MODEL" if choice.api == "anthropic" else "OPENAI_MODEL"
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
    return "" if provider.api_mode == "local" else warning_for(provider.model, window)


def _stored_prompt(row: SessionRow | None, role: Role) -> str:
    """The prompt the conversation started with; it is kept for the provider's cache.

    Only the owner's: that of another person may be from a time when they had more rights.
    """
    if role is not Role.OWNER or row is None:
        return ""
    return row.system_prompt or ""


def _memory_text(memory: MemoryFiles | None, target: str) -> str:
    return "\n".join(memory.entries(target)) if memory else ""


def _build_prompt(
    cwd: Path,
    memory: MemoryFiles | None,
    extensions: Extensions,
    profile: Profile,
    options: ConversationOptions,
    instructions: str,
) -> str:
    skills = extensions.skill_lines(profile.skills_characters)
    return system_prompt(
        cwd,
        memory=_memory_text(memory, "memory"),
        user=_memory_text(memory, "user"),
        skills=skills,
        about=options.about,
        profile=profile,
        instructions=instructions,
    )


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
