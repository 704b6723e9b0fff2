"""The plugin list, requests to enable a plugin, and disabling plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Path
from pydantic import BaseModel

import hermes_plugin_host
from hermes_core.config.file import ConfigFile
from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.pending_changes import PendingChanges
from hermes_dashboard.resources.pending_changes import PendingChangeItem, change_item
from hermes_dashboard.routes import ResourceRouter
from hermes_plugin_host import activation
from hermes_plugin_host.discovery import discover
from hermes_plugin_host.manager import Plugin

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_plugin_host.discovery import DiscoveredPlugin

Name = Annotated[str, Path(min_length=1, max_length=150)]
SWITCH_PROBLEMS: Final = problems(400, 404)


class PluginItem(BaseModel):
    """A plugin and its state."""

    key: Text
    name: Text
    version: Text
    description: Text
    source: Text
    is_enabled: bool
    is_loaded: bool
    error: Text | None
    hooks: list[str]
    has_dashboard: bool


class PluginList(BaseModel):
    """All plugins."""

    items: list[PluginItem]


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of plugins."""
    routes = ResourceRouter("/api/plugins", tag="plugins")
    changes = PendingChanges(context.home)

    def request(key: str) -> PendingChangeItem:
        return change_item(changes.add("plugin", key, None), ConfigFile.of_home())

    @routes.get("")
    def list_plugins() -> PluginList:
        """All plugins and their states."""
        return PluginList(items=[plugin_item(plugin) for plugin in all_plugins()])

    @routes.post("/{key}/enable", status_code=202, responses=SWITCH_PROBLEMS)
    def enable(key: Name) -> PendingChangeItem:
        """Request a plugin; it is enabled after a confirmation in a terminal."""
        return request(_known_key(key))

    @routes.post("/{group}/{name}/enable", status_code=202, responses=SWITCH_PROBLEMS)
    def enable_inner(group: Name, name: Name) -> PendingChangeItem:
        """The same for a plugin in a group folder."""
        return request(_known_key(f"{group}/{name}"))

    @routes.post("/{key}/disable", responses=SWITCH_PROBLEMS)
    def disable(key: Name) -> PluginItem:
        """Disable a plugin."""
        return plugin_item(activation.disable(_known_key(key)))

    @routes.post("/{group}/{name}/disable", responses=SWITCH_PROBLEMS)
    def disable_inner(group: Name, name: Name) -> PluginItem:
        """The same for a plugin in a group folder."""
        return plugin_item(activation.disable(_known_key(f"{group}/{name}")))

    return routes


def all_plugins() -> list[Plugin]:
    """All installed plugins, including those installed since the process started."""
    manager = hermes_plugin_host.active()
    always = {key for key, item in manager.plugins.items() if item.discovered.is_always_active}
    if set(_enabled_keys()) - always != set(manager.enabled) - always:
        hermes_plugin_host.active.cache_clear()  # enabled or disabled in a terminal
    known = hermes_plugin_host.active().plugins
    return [known.get(key) or _new(discovered) for key, discovered in discover().items()]


def _enabled_keys() -> list[str]:
    settings = ConfigFile.of_home().settings()
    disabled = settings.get_list("plugins.disabled")
    return [key for key in settings.get_list("plugins.enabled") if key not in disabled]


def _new(discovered: DiscoveredPlugin) -> Plugin:
    return Plugin(discovered, "failed" if discovered.problem else "available", discovered.problem)


def _known_key(key: str) -> str:
    if key not in hermes_plugin_host.active().plugins:
        if key not in discover():
            raise HTTPException(404, f"Plugin not found: {key}")
        hermes_plugin_host.active.cache_clear()  # installed since the process started
    return key


def plugin_item(plugin: Plugin) -> PluginItem:
    """A plugin as the page shows it."""
    manifest = plugin.discovered.manifest
    return PluginItem(
        key=plugin.key,
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        source=plugin.discovered.origin,
        is_enabled=plugin.key in hermes_plugin_host.active().enabled,
        is_loaded=plugin.status == "loaded",
        error=plugin.detail if plugin.status == "failed" else None,
        hooks=sorted({name for name, _ in plugin.registered.hooks}),
        has_dashboard=plugin.discovered.has_dashboard,
    )
