"""`hermes plugins doctor`: check plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import hermes_plugin_host
from hermes_cli.parser import COMMANDS
from hermes_conversation.plugin_commands import provided_commands
from hermes_conversation.slash_commands import BUILT_IN_NAMES
from hermes_core.errors import PluginError
from hermes_core.hooks import HOOKS
from hermes_plugin_host import activation
from hermes_plugin_host.importer import libraries_folder
from hermes_plugin_host.installation import libraries
from hermes_plugin_host.installation.installer import find_record, installed_hash

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from hermes_cli.output import CommandOutput
    from hermes_plugin_host.manager import Plugin


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
