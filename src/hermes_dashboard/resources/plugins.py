"""Plugins: which there are, which are on, and switching them."""

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
SWITCHING: Final = problems(400, 404)


def router(parts: DashboardContext) -> APIRouter:
    """The addresses of plugins."""
    routes = APIRouter(prefix="/api/plugins", tags=["plugins"])

    @routes.get("", response_model=PluginList)
    def list_plugins() -> dict[str, Any]:
        """All plugins and their states."""
        return {"items": [shown(one) for one in present()]}

    @routes.post("/{key}/enable", response_model=PluginItem, responses=SWITCHING)
    def enable(key: Name) -> dict[str, Any]:
        """Enable a plugin; `error` is set if it does not load."""
        return shown(activation.enable(_known(key), parts.db))

    @routes.post("/{group}/{name}/enable", response_model=PluginItem, responses=SWITCHING)
    def enable_inner(group: Name, name: Name) -> dict[str, Any]:
        """The same for a plugin in a group folder."""
        return shown(activation.enable(_known(f"{group}/{name}"), parts.db))

    @routes.post("/{key}/disable", response_model=PluginItem, responses=SWITCHING)
    def disable(key: Name) -> dict[str, Any]:
        """Disable a plugin."""
        return shown(activation.disable(_known(key)))

    @routes.post("/{group}/{name}/disable", response_model=PluginItem, responses=SWITCHING)
    def disable_inner(group: Name, name: Name) -> dict[str, Any]:
        """The same for a plugin in a group folder."""
        return shown(activation.disable(_known(f"{group}/{name}")))

    return routes


def present() -> list[Plugin]:
    """Every plugin that is there now, also one that was put there since this process began."""
    known = hermes_plugin_host.active().plugins
    return [known.get(key) or _new(one) for key, one in discover().items()]


def _new(found: DiscoveredPlugin) -> Plugin:
    return Plugin(found, "failed" if found.problem else "available", found.problem)


def _known(key: str) -> str:
    if key not in hermes_plugin_host.active().plugins:
        if key not in discover():
            raise HTTPException(404, f"plugin not found: {key}")
        hermes_plugin_host.active.cache_clear()  # it was put there since
    return key


def shown(plugin: Plugin) -> dict[str, Any]:
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
