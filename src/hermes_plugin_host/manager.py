"""Discovers, loads and calls the plugins of this process."""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import hermes_plugin_host
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError, PluginError
from hermes_core.hooks import DECIDING_HOOKS
from hermes_core.isolate import Failure, attempt
from hermes_plugin_host.callbacks import CALLBACK_TIMEOUT_SECONDS, Callback
from hermes_plugin_host.context import Registrations
from hermes_plugin_host.discovery import discover
from hermes_plugin_host.importer import add_libraries, contain_exits, import_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from hermes_core.config.file import Settings
    from hermes_plugin_host.callbacks import CallbackResult
    from hermes_plugin_host.discovery import DiscoveredPlugin

log = logging.getLogger(__name__)

DECISION_SECONDS: Final = 30.0
MODULE_PREFIX: Final = "hermes_plugins"
Status = Literal["loaded", "available", "disabled", "failed"]


@dataclass
class Plugin:
    """One plugin and its state."""

    discovered: DiscoveredPlugin
    status: Status
    detail: str = ""
    seconds: float = 0.0
    registered: Registrations = field(default_factory=Registrations)

    @property
    def key(self) -> str:
        """The name used to enable the plugin."""
        return self.discovered.key


class PluginManager:
    """Loads the enabled plugins; a failing plugin does not affect the others."""

    def __init__(
        self,
        enabled: tuple[str, ...],
        disabled: tuple[str, ...],
        variables: Mapping[str, str] = os.environ,
        decision_seconds: float = DECISION_SECONDS,
    ) -> None:
        self._interface = hermes_plugin_host.interface_choice().open()
        self._decision_seconds = decision_seconds
        self._enabled = set(enabled)
        self._disabled = set(disabled)
        self._variables = variables
        self.plugins: dict[str, Plugin] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        self._middleware: dict[str, list[Callback]] = {}

    @classmethod
    def of_home(cls) -> PluginManager:
        """The user's plugins, loaded."""
        try:
            config = ConfigFile.of_home()
            settings = config.settings()
            manager = cls(
                settings.get_list("plugins.enabled"),
                settings.get_list("plugins.disabled"),
                config.variables(),
                _decision_seconds(settings),
            )
        except ConfigError as error:
            log.warning("plugins not loaded: %s", error)
            manager = cls((), ())
        manager.load()
        return manager

    def load(self) -> None:
        """Discover all plugins and load the enabled ones."""
        for key, result in discover().items():
            self.plugins[key] = self._load_plugin(result)

    def _load_plugin(self, found: DiscoveredPlugin) -> Plugin:
        if found.key in self._disabled:
            return Plugin(found, "disabled")
        if found.problem:
            return Plugin(found, "failed", found.problem)
        if found.key not in self._enabled and not found.is_always_active:
            return Plugin(found, "available")
        missing = [name for name in found.manifest.requires_env if not self._variables.get(name)]
        if missing:
            return Plugin(found, "failed", f"missing environment variable {', '.join(missing)}")
        plugin = Plugin(found, "loaded")
        began = time.monotonic()
        result = attempt(f"load plugin {found.key}", lambda: self._register(plugin))
        plugin.seconds = time.monotonic() - began
        if isinstance(result, Failure):
            plugin.status = "failed"
            plugin.detail = f"{type(result.error).__name__}: {result.error}"
            plugin.registered = Registrations()
        return plugin

    def _register(self, plugin: Plugin) -> None:
        if _is_only_a_tab(plugin.discovered):
            return
        context = self._interface.context(plugin.key, plugin.discovered.manifest)
        with contain_exits(), self._interface.loading(context):
            self._interface.install_modules()
            module = _import_plugin(plugin.discovered)
            register = getattr(module, "register", None)
            if callable(register):
                register(context)
            elif not context.registered.tools:
                raise PluginError("the plugin has no register(ctx) function")
        plugin.registered = context.registered
        _add_callbacks(self._callbacks, plugin.key, context.registered.hooks)
        _add_callbacks(self._middleware, plugin.key, context.registered.middleware)

    @property
    def enabled(self) -> frozenset[str]:
        """The keys of the enabled plugins, loaded or not."""
        always = {key for key, item in self.plugins.items() if item.discovered.is_always_active}
        return frozenset((self._enabled | always) - self._disabled)

    @property
    def secret_variables(self) -> frozenset[str]:
        """The environment variables with secrets of platforms and providers."""
        registered = [plugin.registered for plugin in self.plugins.values()]
        keys = {provider.variable for each in registered for provider in each.providers}
        return frozenset(keys).union(
            *(
                (*platform.secrets, *platform.optional_secrets)
                for each in registered
                for platform in each.platforms
            )
        )

    def callbacks(self, hook: str) -> list[Callback]:
        """The callbacks of a hook, in the order of registration."""
        return self._callbacks.get(hook, [])

    def middleware(self, kind: str) -> list[Callback]:
        """The middleware of a kind; the first registered is the outermost."""
        return self._middleware.get(kind, [])

    def all_callbacks(self) -> list[Callback]:
        """Every registered callback."""
        return [item for callbacks in self._callbacks.values() for item in callbacks]

    def call(self, hook: str, facts: Mapping[str, Any]) -> list[CallbackResult]:
        """Call all callbacks of a hook; return their results."""
        seconds = self._decision_seconds if hook in DECIDING_HOOKS else CALLBACK_TIMEOUT_SECONDS
        callbacks = self.callbacks(hook)
        facts = self._interface.facts(facts) if callbacks else facts
        return [callback.call(facts, seconds) for callback in callbacks]


def _decision_seconds(settings: Settings) -> float:
    """The time limit of callbacks that decide; without a valid one they are loaded as well."""
    try:
        return settings.get_int("plugins.decision_seconds")
    except ConfigError as error:
        log.warning("default time limit used: %s", error)
        return DECISION_SECONDS


def _add_callbacks(
    known: dict[str, list[Callback]], key: str, added: list[tuple[str, Callable[..., Any]]]
) -> None:
    for name, function in added:
        callbacks = known.setdefault(name, [])
        number = sum(item.plugin == key for item in callbacks) + 1
        is_disabled_by_hangs = name not in DECIDING_HOOKS
        callback = Callback(key, name, function, number, is_disabled_by_hangs=is_disabled_by_hangs)
        callbacks.append(callback)


def _is_only_a_tab(found: DiscoveredPlugin) -> bool:
    """Whether a plugin has no code for this process; the dashboard loads its tab."""
    has_code = found.folder is None or (found.folder / "__init__.py").is_file()
    return found.has_dashboard and not has_code


def _import_plugin(found: DiscoveredPlugin) -> ModuleType | Any:
    """Import the plugin: an installed entry point, or a directory with an `__init__.py`."""
    if found.entry_point is not None:
        return found.entry_point.load()
    add_libraries(found.key)
    folder = found.folder
    if folder is None or not (folder / "__init__.py").is_file():
        raise PluginError("the plugin has no __init__.py")
    name = MODULE_PREFIX + "." + re.sub(r"\W", "_", found.key)
    return import_file(name, folder / "__init__.py", folder)
