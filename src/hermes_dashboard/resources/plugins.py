"""The plugin list, and enabling and disabling plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Path

import hermes_plugin_host
from hermes_dashboard.models.system import PluginItem, PluginList
from hermes_dashboard.models.text import problems
from hermes_plugin_host import activation
from hermes_plugin_host.discovery import discover
from hermes_plugin_host.manager import Plugin

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_plugin_host.discovery import DiscoveredPlugin

Name = Annotated[str, Path(min_length=1, max_length=150)]
SWITCH_PROBLEMS: Final = problems(400, 404)


def router(context: DashboardContext) -> APIRouter:
    """The routes of plugins."""
    routes = APIRouter(prefix="/api/plugins", tags=["plugins"])

    @routes.get("", response_model=PluginList)
    def list_plugins() -> dict[str, Any]:
        """All plugins and their states."""
        return {"items": [plugin_item(plugin) for plugin in all_plugins()]}

    @routes.post("/{key}/enable", response_model=PluginItem, responses=SWITCH_PROBLEMS)
    def enable(key: Name) -> dict[str, Any]:
        """Enable a plugin; `error` is set if it does not load."""
        return plugin_item(activation.enable(_known_key(key), context.db))

    @routes.post("/{group}/{name}/enable", response_model=PluginItem, responses=SWITCH_PROBLEMS)
    def enable_inner(group: Name, name: Name) -> dict[str, Any]:
        """The same for a plugin in a group folder."""
        return plugin_item(activation.enable(_known_key(f"{group}/{name}"), context.db))

    @routes.post("/{key}/disable", response_model=PluginItem, responses=SWITCH_PROBLEMS)
    def disable(key: Name) -> dict[str, Any]:
        """Disable a plugin."""
        return plugin_item(activation.disable(_known_key(key)))

    @routes.post("/{group}/{name}/disable", response_model=PluginItem, responses=SWITCH_PROBLEMS)
    def disable_inner(group: Name, name: Name) -> dict[str, Any]:
        """The same for a plugin in a group folder."""
        return plugin_item(activation.disable(_known_key(f"{group}/{name}")))

    return routes


def all_plugins() -> list[Plugin]:
    """All installed plugins, including those installed since the process started."""
    known = hermes_plugin_host.active().plugins
    return [known.get(key) or _new(discovered) for key, discovered in discover().items()]


def _new(discovered: DiscoveredPlugin) -> Plugin:
    return Plugin(discovered, "failed" if discovered.problem else "available", discovered.problem)


def _known_key(key: str) -> str:
    if key not in hermes_plugin_host.active().plugins:
        if key not in discover():
            raise HTTPException(404, f"Plugin not found: {key}")
        hermes_plugin_host.active.cache_clear()  # installed since the process started
    return key


def plugin_item(plugin: Plugin) -> dict[str, Any]:
    """A plugin as the page shows it."""
    manifest, folder = plugin.discovered.manifest, plugin.discovered.folder
    return {
        "key": plugin.key,
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "source": plugin.discovered.origin,
        "is_enabled": plugin.key in hermes_plugin_host.active().enabled,
        "is_loaded": plugin.status == "loaded",
        "error": plugin.detail if plugin.status == "failed" else None,
        "hooks": sorted({name for name, _ in plugin.registered.hooks}),
        "has_dashboard": folder is not None and (folder / "dashboard/manifest.json").is_file(),
    }
