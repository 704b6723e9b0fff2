"""`hermes plugins` install, enable, update, remove and doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import hermes_plugin_host
from hermes_cli import history
from hermes_cli.commands.plugins.command import as_dict
from hermes_cli.output import confirm
from hermes_cli.parser import COMMANDS
from hermes_conversation.plugin_commands import provided_commands
from hermes_conversation.slash_commands import BUILT_IN_NAMES
from hermes_core.errors import PluginError, UsageError
from hermes_core.hooks import HOOKS
from hermes_plugin_host import activation
from hermes_plugin_host.importer import libraries_folder
from hermes_plugin_host.installation import installer, libraries
from hermes_plugin_host.installation.installer import PluginSource, find_record, installed_hash

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

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


class PluginReport(NamedTuple):
    """The problems of a plugin, which must be solved, and notes."""

    key: str
    status: str
    problems: list[str]
    notes: list[str]


def _requirement_problems(key: str, requirements: Iterable[str]) -> list[str]:
    """What is wrong with the packages of a plugin; those of Hermes may be newer by now."""
    folder = libraries_folder(key)
    if not folder.is_dir():
        missing = ", ".join(requirements)
        return [f"its requirements are missing: {missing}"] if missing else []
    conflict = libraries.find_conflict(key, folder)
    return [f"{conflict}. Run `hermes plugins update {key}`."] if conflict else []


def _check(plugin: Plugin) -> PluginReport:
    problems = [plugin.detail] if plugin.status == "failed" else []
    notes: list[str] = []
    try:
        record = find_record(plugin.key)
    except PluginError as error:
        record = None
        problems.append(str(error))
    if record is not None:
        if installed_hash(plugin.key) != record.sha256:
            problems.append(
                f"its files have changed since they were installed (sha256 {record.sha256[:16]}…). "
                f"Run `hermes plugins update {plugin.key}`."
            )
        problems += _requirement_problems(plugin.key, record.requirements)
    elif plugin.discovered.origin == "user":
        notes.append("it was copied by hand: updates and changes are not tracked")
        folder = plugin.discovered.folder
        if folder is not None and (folder / libraries.REQUIREMENTS_FILE).is_file():
            notes.append(
                "its requirements.txt is not used: install the plugin with `hermes plugins install`"
            )
    known = {hook.name for hook in HOOKS}
    unknown = sorted({name for name, _ in plugin.registered.hooks} - known)
    notes += [f"the hook {name} is never called by this release" for name in unknown]
    notes += unused_commands(plugin)
    return PluginReport(plugin.key, plugin.status, problems, notes)


def doctor(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Check all plugins, or one."""
    found = hermes_plugin_host.active().plugins.values()
    plugins = [activation.find_plugin(arguments.name)] if arguments.name else list(found)
    reports = [_check(plugin) for plugin in plugins]
    if arguments.json:
        out.json([report._asdict() for report in reports])
    else:
        for report in reports:
            _print_report(report, out)
    return int(any(report.problems for report in reports))


def _print_report(report: PluginReport, out: CommandOutput) -> None:
    out.text(f"{report.key}: {report.status}", "red" if report.problems else "")
    for text in (*report.problems, *report.notes):
        out.text(f"  {text}")


def unused_commands(plugin: Plugin) -> Iterator[str]:
    """A line for each command that is not used, with the reason."""
    provided = provided_commands(BUILT_IN_NAMES)
    for command in plugin.registered.commands:
        name = command.name.lower()
        owner = provided[name].plugin if name in provided else ""
        if owner != plugin.key:
            yield _line(f"/{command.name}", owner, is_built_in=name in BUILT_IN_NAMES)
    built_in = {command.name for command in COMMANDS}
    for cli_command in plugin.registered.cli_commands:
        name = cli_command.name
        owner = "" if name in built_in or name.startswith("-") else _cli_owner(name)
        if owner != plugin.key:
            yield _line(f"hermes {name}", owner, is_built_in=name in built_in)


def _cli_owner(name: str) -> str:
    """The first plugin that has a command, which is the one that is called."""
    plugins = hermes_plugin_host.active().plugins.values()
    names = (
        (each.key, command.name) for each in plugins for command in each.registered.cli_commands
    )
    return next((key for key, each in names if each == name), "")


def _line(command: str, owner: str, *, is_built_in: bool) -> str:
    if is_built_in:
        return f"the command {command} is ignored: Hermes has a command with this name"
    if owner:
        return f"the command {command} is ignored: the plugin {owner} has a command with this name"
    return f"the command {command} is ignored: invalid name"
