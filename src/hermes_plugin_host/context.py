"""The context object passed to a plugin's `register` function."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hermes_plugin_host
from hermes_core.config.platform_spec import PlatformSpec
from hermes_core.errors import PluginError
from hermes_core.hooks import HOOKS
from hermes_plugin_host.services import PluginModel

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from hermes_achievements.catalogue import Achievement
    from hermes_import.sources import AgentSource
    from hermes_plugin_host.manifest import PluginManifest

log = logging.getLogger(__name__)

SKILL_FILE: Final = "SKILL.md"
PROVIDER_APIS: Final = ("openai", "anthropic")
MIDDLEWARE_KINDS: Final = ("tool_request", "tool_execution")


@dataclass(frozen=True)
class PluginSlashCommand:
    """A slash command in conversations: `/name arguments`."""

    name: str
    handler: Callable[[str], Any]
    description: str = ""
    args_hint: str = ""
    for_pages: bool = False


@dataclass(frozen=True)
class CliCommand:
    """A command of the command line: `hermes name …`."""

    name: str
    help: str
    setup: Callable[[argparse.ArgumentParser], object] | None
    handler: Callable[[argparse.Namespace], int | None] | None
    description: str = ""


@dataclass(frozen=True)
class PluginTool:
    """A tool of the agent."""

    name: str
    toolset: str
    schema: dict[str, Any]
    handler: Callable[..., Any]
    check: Callable[[], bool] | None = None
    requires_env: tuple[str, ...] = ()
    is_async: bool = False
    description: str = ""
    emoji: str = ""
    overrides: bool = False


@dataclass(frozen=True)
class ModelProvider:
    """A provider of models: an endpoint with a known API, or a function that opens one."""

    name: str
    title: str
    model: str
    base_url: str = ""
    variable: str = ""
    api: str = "openai"
    open: Callable[[Any, Path], Any] | None = None
    models: Callable[[], Iterable[str]] | None = None


@dataclass
class Registrations:
    """Everything that one plugin has registered."""

    hooks: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)
    middleware: list[tuple[str, Callable[..., Any]]] = field(default_factory=list)
    commands: list[PluginSlashCommand] = field(default_factory=list)
    cli_commands: list[CliCommand] = field(default_factory=list)
    tools: list[PluginTool] = field(default_factory=list)
    achievements: list[Achievement] = field(default_factory=list)
    platforms: list[PlatformSpec] = field(default_factory=list)
    providers: list[ModelProvider] = field(default_factory=list)
    agent_sources: list[AgentSource] = field(default_factory=list)
    skills: list[Path] = field(default_factory=list)  # folders with a SKILL.md
    transcribers: list[Callable[[str], Any]] = field(default_factory=list)
    memory_providers: list[str] = field(default_factory=list)


class PluginContext:
    """The `ctx` of `register(ctx)`: registers the features of a plugin."""

    def __init__(self, key: str, manifest: PluginManifest, profile_name: str = "main") -> None:
        self.key = key
        self.manifest = manifest
        self.profile_name = profile_name
        self.registered = Registrations()

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        """Call *callback* with keyword arguments whenever the hook *name* is invoked.

        The callback may be a plain or an async function. See docs/reference/hooks.md.
        """
        if not callable(callback):
            raise PluginError(f"the callback for {name} is not callable")
        if name not in {hook.name for hook in HOOKS}:
            log.warning(
                "plugin %s registered for unknown hook %s: it is never called", self.key, name
            )
        self.registered.hooks.append((name, callback))

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        """Run *callback* for tool calls: `tool_request` before, `tool_execution` around them."""
        if kind not in MIDDLEWARE_KINDS:
            raise PluginError(
                f"middleware {kind!r} is not supported: use {' or '.join(MIDDLEWARE_KINDS)}; "
                "for requests to the model, the hooks pre_api_request and post_api_request"
            )
        if not callable(callback):
            raise PluginError(f"the middleware {kind} is not callable")
        self.registered.middleware.append((kind, callback))

    def register_command(
        self,
        name: str,
        handler: Callable[[str], Any],
        description: str = "",
        args_hint: str = "",
        *,
        for_pages: bool = False,
    ) -> None:
        """Add `/name` to conversations; *handler* gets the text after the name.

        A web page may run it only with *for_pages*: its text comes from a browser.
        """
        clean = name.lstrip("/")
        self.registered.commands.append(
            PluginSlashCommand(clean, handler, description, args_hint, for_pages)
        )

    def register_cli_command(
        self,
        name: str,
        help: str = "",  # noqa: A002 - the name plugins already use
        setup_fn: Callable[[argparse.ArgumentParser], object] | None = None,
        handler_fn: Callable[[argparse.Namespace], int | None] | None = None,
        description: str = "",
    ) -> None:
        """Add `hermes name` to the command line.

        Without *handler_fn*, *setup_fn* sets one: `parser.set_defaults(func=…)`.
        """
        if setup_fn is None and handler_fn is None:
            raise PluginError(f"the command {name} has neither setup_fn nor handler_fn")
        self.registered.cli_commands.append(
            CliCommand(name, help or description, setup_fn, handler_fn, description)
        )

    def register_platform(
        self,
        name: str | PlatformSpec,
        make: Callable[[Any], Any] | None = None,
        label: str = "",
        requires_env: tuple[str, ...] = (),
        optional_env: tuple[str, ...] = (),
        setup: str = "",
    ) -> None:
        """Add a chat platform to the gateway: a `PlatformSpec`, or its main facts.

        *make* gets the context described in docs/reference/plugins.md and returns an adapter.
        Variables in *requires_env* must be set; those and *optional_env* are secrets, which the
        commands of the agent do not get. *setup* is what `hermes gateway add` prints.
        """
        if isinstance(name, PlatformSpec):
            spec = name
        elif callable(make):
            spec = PlatformSpec(
                name,
                label or name,
                make,
                secrets=tuple(requires_env),
                optional_secrets=tuple(optional_env),
                next_steps=tuple(setup.splitlines()),
            )
        else:
            raise PluginError(f"the platform {name} has no function that makes its adapter")
        if not spec.name.isidentifier() or spec.name != spec.name.lower():
            raise PluginError(f"invalid platform name {spec.name!r}: use lower-case letters")
        self.registered.platforms.append(spec)

    def register_provider(
        self,
        name: str,
        title: str = "",
        *,
        model: str,
        base_url: str = "",
        variable: str = "",
        api: str = "openai",
        open: Callable[[Any, Path], Any] | None = None,  # noqa: A002 - what it does
        models: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """Add a provider, whose models are called NAME:MODEL; *model* is the default.

        It is an endpoint *base_url* with a known *api*, or *open* gets a `ModelChoice` and the
        folder of the conversation and returns a `hermes_agent.providers.base.Provider`. The
        environment or .env has its key in *variable*. *models* lists the models without HTTP.
        """
        if not name.isidentifier() or name != name.lower():
            raise PluginError(f"invalid provider name {name!r}: use lower-case letters")
        if open is None and not base_url.startswith(("http://", "https://")):
            raise PluginError(f"the provider {name} needs a base_url or open")
        if api not in PROVIDER_APIS:
            raise PluginError(f"the provider {name} has the unknown api {api!r}")
        self.registered.providers.append(
            ModelProvider(name, title or name, model, base_url, variable, api, open, models)
        )

    def register_agent_source(self, source: AgentSource) -> None:
        """Add an agent whose history `hermes import` can read.

        *source* implements the protocol in `hermes_import.sources`.
        """
        self.registered.agent_sources.append(source)

    def register_achievement(self, **fields: Any) -> None:
        """Add an achievement; docs/reference/achievements.md describes the fields."""
        from hermes_achievements import catalogue  # noqa: PLC0415 - rarely needed

        item = catalogue.achievement_from(fields, self.key)
        # Raises on a duplicate ID and on an unknown category or icon.
        catalogue.load().with_added([*self.registered.achievements, item])
        self.registered.achievements.append(item)

    def register_tool(
        self,
        name: str,
        toolset: str,
        schema: dict[str, Any],
        handler: Callable[..., Any],
        *,
        check_fn: Callable[[], bool] | None = None,
        requires_env: tuple[str, ...] = (),
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        override: bool = False,
    ) -> None:
        """Add a tool to the agent."""
        self.registered.tools.append(
            PluginTool(
                name,
                toolset,
                schema,
                handler,
                check_fn,
                tuple(requires_env),
                is_async,
                description,
                emoji,
                override,
            )
        )

    def register_skill(self, name: str, path: str | Path, description: str = "") -> None:
        """Add a skill: a folder with a SKILL.md, or the path of that file."""
        del description  # it is in the file
        folder = Path(path)
        folder = folder.parent if folder.name == SKILL_FILE else folder
        if not (folder / SKILL_FILE).is_file():
            raise PluginError(f"the skill {name} has no {SKILL_FILE} in {folder}")
        self.registered.skills.append(folder)

    def register_transcription_provider(self, provider: Any) -> None:
        """Add a transcriber of voice messages: a function of a path, or an object with one.

        It is used if no other one is configured; the result is a text, or a dict with `text`.
        """
        transcribe = getattr(provider, "transcribe", provider)
        if not callable(transcribe):
            raise PluginError("the transcription provider has no method transcribe(path)")
        self.registered.transcribers.append(transcribe)

    def inject_message(
        self, content: str, role: str = "user", session_id: str | None = None
    ) -> bool:
        """Give a text to the running turn of a terminal or the page; whether there is one."""
        if role != "user":
            raise PluginError(f"messages with the role {role!r} cannot be injected, only 'user'")
        conversation = hermes_plugin_host.conversations().find(session_id)
        return conversation is not None and conversation.inject(content)

    def dispatch_tool(
        self, tool_name: str, args: dict[str, Any], session_id: str | None = None
    ) -> str:
        """Call a tool of an open conversation, with its rights; the result as the model gets it."""
        return hermes_plugin_host.conversations().get(session_id).call_tool(tool_name, args)

    @property
    def llm(self) -> PluginModel:
        """The model of an open conversation: `ctx.llm.complete(messages)`."""
        return PluginModel(hermes_plugin_host.conversations())
