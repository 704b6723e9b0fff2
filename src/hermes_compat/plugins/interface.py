"""The interface of plugins with the names of hermes-agent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from hermes_compat.plugins import modules
from hermes_compat.plugins.memory_provider import MemoryConnection
from hermes_compat.plugins.platform import parse_platform
from hermes_compat.plugins.tool_registry import registering
from hermes_compat.plugins.unsupported import refuse_method
from hermes_core.config.platform_spec import PlatformSpec
from hermes_plugin_host.context import PluginContext
from hermes_plugin_host.interface import PluginInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from hermes_plugin_host.manifest import PluginManifest

log = logging.getLogger(__name__)


class OriginalContext(PluginContext):
    """The `ctx` of `register(ctx)` for plugins of Hermes and of hermes-agent."""

    def register_platform(
        self,
        name: str | PlatformSpec,
        make: Callable[[Any], Any] | str | None = None,
        label: str | Callable[[Any], Any] = "",
        requires_env: tuple[str, ...] | Callable[[], bool] = (),
        optional_env: tuple[str, ...] = (),
        setup: str = "",
        **original: Any,
    ) -> None:
        """Add a chat platform to the gateway: a `PlatformSpec`, or its main facts.

        The arguments of hermes-agent (name, label, adapter_factory, check_fn, …) are accepted, too.
        """
        is_ours = callable(make) and isinstance(label, str) and not callable(requires_env)
        if isinstance(name, PlatformSpec) or (is_ours and not original):
            given: Any = (name, make, label, requires_env, optional_env, setup)
            super().register_platform(*given)
            return
        facts: dict[str, Any] = {"label": label or make}
        if callable(label):
            check = requires_env or None
            facts = {"label": make or label, "adapter_factory": label, "check_fn": check}
        super().register_platform(self._original_platform(name, {**facts, **original}))

    def _original_platform(self, name: str, given: dict[str, Any]) -> PlatformSpec:
        platform = parse_platform(name, given)
        if platform.ignored:
            unused = ", ".join(platform.ignored)
            log.warning("platform %s of plugin %s: ignored: %s", platform.name, self.key, unused)
        return PlatformSpec(
            platform.name,
            platform.label,
            platform.connect,
            secrets=platform.required_env,
            next_steps=tuple(platform.install_hint.splitlines()),
        )

    def register_memory_provider(self, provider: Any) -> None:
        """Add a memory of hermes-agent, e.g. a subclass of `agent.memory_provider.MemoryProvider`.

        It adds to each prompt what it remembers about it, and gets every completed turn.
        """
        MemoryConnection(provider).connect(self)
        self.registered.memory_providers.append(str(provider.name))

    def __getattr__(self, name: str) -> Any:
        raise refuse_method(name)


class OriginalInterface(PluginInterface):
    """Adds the context, modules and objects that plugins of hermes-agent use."""

    def context(self, key: str, manifest: PluginManifest) -> PluginContext:
        """The context with the methods of both."""
        return OriginalContext(key, manifest)

    def loading(self, context: PluginContext) -> AbstractContextManager[None]:
        """Tools that register themselves meanwhile belong to the plugin."""
        return registering(context.register_tool)

    def install_modules(self) -> None:
        """The modules of hermes-agent that plugins may import."""
        modules.install()

    def facts(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The routing table has the names of hermes-agent."""
        routes = facts.get("session_store")
        if routes is None:
            return facts
        from hermes_compat.session_store import SessionStore  # noqa: PLC0415 - only in the gateway

        return {**facts, "session_store": SessionStore.of(routes)}
