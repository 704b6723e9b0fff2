"""`hermes plugins install`, `update`, `remove` and `enable`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hermes_plugin_host
from hermes_cli import history
from hermes_cli.commands.plugins.command import as_dict
from hermes_cli.output import confirm
from hermes_core.errors import UsageError
from hermes_plugin_host import activation
from hermes_plugin_host.installation import installer
from hermes_plugin_host.installation.installer import PluginSource, find_record

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_plugin_host.installation.installer import StagedPlugin
    from hermes_plugin_host.manager import Plugin

NOT_CONFINED = "A plugin runs with all rights of Hermes. Enable only code that you trust."


def install(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Fetch a plugin, show what it is, and enable it after a confirmation."""
    with installer.staged(PluginSource.parse(arguments.source)) as plugin:
        _show(plugin, arguments, out)
        plugin.install()
        found = _staged_dict(plugin)
    hermes_plugin_host.active.cache_clear()
    is_enabled = not arguments.no_enable and _may_enable(plugin.key, arguments, out)
    loaded = enable_plugin(plugin.key) if is_enabled else activation.find_plugin(plugin.key)
    return _finish(loaded, found, arguments, out, is_enabled=is_enabled)


def _may_enable(key: str, arguments: argparse.Namespace, out: CommandOutput) -> bool:
    """Whether the user wants it; without a terminal and --yes it is only installed."""
    try:
        return confirm(f"Enable {key}?", out, is_confirmed=arguments.yes)
    except UsageError:
        out.note(f"{key} is installed but not enabled. Run `hermes plugins enable {key}`.")
        return False


def _finish(
    plugin: Plugin,
    found: dict[str, object],
    arguments: argparse.Namespace,
    out: CommandOutput,
    *,
    is_enabled: bool,
) -> int:
    if arguments.json:
        out.json({**found, "state": plugin.status, "problem": plugin.detail})
    elif not is_enabled:
        out.text(f"Installed {plugin.key}.")
    elif plugin.status == "loaded":
        out.text(f"Installed and enabled {plugin.key}.")
    else:
        out.text(f"Installed {plugin.key}, but it failed to load: {plugin.detail}")
    return 1 if is_enabled and plugin.status != "loaded" else 0


def enable(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Enable a plugin and print whether it loads."""
    activation.find_plugin(arguments.name)
    plugin = enable_plugin(arguments.name)
    if arguments.json:
        out.json(as_dict(plugin))
    elif plugin.status == "loaded":
        out.text(f"Enabled {plugin.key}.")
    else:
        out.text(f"Enabled {plugin.key}, but it failed to load: {plugin.detail}")
    return 0 if plugin.status == "loaded" else 1


def enable_plugin(key: str) -> Plugin:
    """Enable a plugin; the first one receives only new events."""
    if not history.exists():
        return activation.enable(key, None)
    with history.open_for_writing() as db:
        return activation.enable(key, db.boundaries)


def _show(plugin: StagedPlugin, arguments: argparse.Namespace, out: CommandOutput) -> None:
    if arguments.json:
        return
    manifest = plugin.manifest
    out.text(plugin.key, "bold")
    out.pairs(
        [
            ("description", manifest.description or "-"),
            ("version", manifest.version or "-"),
            ("from", f"{plugin.source.location} {plugin.commit[:12]}".strip()),
            ("sha256", plugin.sha256),
            *([("requires", ", ".join(plugin.requirements))] if plugin.requirements else []),
            *plugin.permissions.lines(),
        ]
    )
    out.text(NOT_CONFINED, "yellow")


def _staged_dict(plugin: StagedPlugin) -> dict[str, object]:
    return {
        "name": plugin.key,
        "version": plugin.manifest.version,
        "source": plugin.source.location,
        "commit": plugin.commit,
        "sha256": plugin.sha256,
        "requirements": plugin.requirements,
        "permissions": plugin.permissions.as_dict(),
    }


def update(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Install the current version of a plugin, after a confirmation if it has changed."""
    key = arguments.name
    record = find_record(key)
    if record is None:
        raise UsageError(f"{key} was not installed by `hermes plugins install`.")
    if record.kind not in {"path", "git", "package"}:
        raise UsageError(f"The record of {key} names an unknown source: {record.kind}.")
    source = PluginSource(record.kind, record.location, record.ref)  # type: ignore[arg-type]
    with installer.staged(source, key) as plugin:
        if plugin.sha256 == record.sha256 == installer.installed_hash(key):
            out.json(_staged_dict(plugin)) if arguments.json else out.text(f"{key} is up to date.")
            return 0
        _show(plugin, arguments, out)
        if not confirm(f"Update {key}?", out, is_confirmed=arguments.yes):
            return 1
        plugin.install()
        found = _staged_dict(plugin)
    hermes_plugin_host.active.cache_clear()
    loaded = activation.find_plugin(key)
    is_enabled = key in hermes_plugin_host.active().enabled
    if arguments.json:
        out.json({**found, "state": loaded.status, "problem": loaded.detail})
    else:
        out.text(f"Updated {key}." + (f" It failed to load: {loaded.detail}" * bool(loaded.detail)))
    return 1 if is_enabled and loaded.status != "loaded" else 0


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Disable a plugin and delete its files."""
    key = arguments.name
    plugin = activation.find_plugin(key)
    if plugin.discovered.origin != "user":
        raise UsageError(f"{key} cannot be removed. Run `hermes plugins disable {key}`.")
    if not confirm(f"Delete {plugin.discovered.folder}?", out, is_confirmed=arguments.yes):
        return 1
    activation.forget(key)
    installer.remove_plugin(key)
    hermes_plugin_host.active.cache_clear()
    out.json({"name": key, "removed": True}) if arguments.json else out.text(f"Removed {key}.")
    return 0
