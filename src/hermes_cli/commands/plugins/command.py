"""`hermes plugins`: list, enable, disable and install plugins."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import hermes_plugin_host
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_plugin_host import activation

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_cli.parser import Run
    from hermes_plugin_host.manager import Plugin

EXAMPLES = """\
examples:
  hermes plugins list
  hermes plugins enable boundary-log
  hermes plugins info boundary-log
  hermes plugins install ./dice

Plugins come with Hermes, from the `plugins` folder of HERMES_HOME, or from installed
packages. Only enabled plugins are loaded.
"""
COLUMNS = (
    TableColumn("plugin", style="cyan"),
    TableColumn("state"),
    TableColumn("from", optional=True),
    TableColumn("version", optional=True),
    TableColumn("what", flexible=True),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_command(
        actions, "list", "list plugins and their state", "hermes plugins list",
        "hermes plugins list --json", run=print_list, has_json=True,
    )  # fmt: skip
    for name, purpose, run in (
        ("enable", "enable a plugin", _of("installation", "enable")),
        ("disable", "disable a plugin", disable),
        ("info", "show the details of a plugin", info),
    ):
        action = add_command(actions, name, purpose, f"hermes plugins {name} boundary-log", run=run)
        action.add_argument(
            "name", metavar="NAME", help="plugin, as shown by `hermes plugins list`"
        )
        add_json_option(action)
    _configure_installation(actions)


def _configure_installation(actions: Any) -> None:
    install_parser = add_command(
        actions, "install", "install a plugin from a folder, a git URL or a package index",
        "hermes plugins install ./dice", "hermes plugins install https://example.org/dice.git#v2",
        "hermes plugins install hermes-dice --yes", run=_of("installation", "install"),
    )  # fmt: skip
    install_parser.add_argument(
        "source", metavar="PATH|GIT-URL|NAME", help="folder, git URL (#BRANCH) or package name"
    )
    install_parser.add_argument(
        "--no-enable", action="store_true", help="install the plugin without enabling it"
    )
    update_parser = add_command(
        actions, "update", "install the current version of a plugin from where it came from",
        "hermes plugins update dice", run=_of("installation", "update"),
    )  # fmt: skip
    remove_parser = add_command(
        actions, "remove", "disable a plugin and delete its files", "hermes plugins remove dice",
        run=_of("installation", "remove"),
    )  # fmt: skip
    for parser in (update_parser, remove_parser):
        parser.add_argument("name", metavar="NAME", help="plugin in the folder of HERMES_HOME")
    for parser in (install_parser, update_parser, remove_parser):
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
        add_json_option(parser)
    doctor_parser = add_command(
        actions, "doctor", "check plugins: loading, changed files, requirements",
        "hermes plugins doctor", "hermes plugins doctor dice --json",
        run=_of("installation", "doctor"),
    )  # fmt: skip
    doctor_parser.add_argument("name", metavar="NAME", nargs="?", help="plugin (default: all)")
    add_json_option(doctor_parser)


def _of(module: str, name: str) -> Run:
    """A function of a module beside this one, which is imported to run it."""

    def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
        found = import_module(f"hermes_cli.commands.plugins.{module}")
        return int(getattr(found, name)(arguments, out))

    return run


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print all plugins."""
    manager = hermes_plugin_host.active()
    if arguments.json:
        out.json([as_dict(plugin) for plugin in manager.plugins.values()])
        return 0
    if not manager.plugins:
        out.text("No plugins.")
        return 0
    out.table(COLUMNS, [_row(plugin) for plugin in manager.plugins.values()])
    return 0


def _row(plugin: Plugin) -> tuple[str, ...]:
    manifest = plugin.discovered.manifest
    what = plugin.detail if plugin.status == "failed" else manifest.description
    return plugin.key, plugin.status, plugin.discovered.origin, manifest.version, what


def as_dict(plugin: Plugin) -> dict[str, object]:
    """A plugin as a dict."""
    manifest = plugin.discovered.manifest
    return {
        "name": plugin.key,
        "state": plugin.status,
        "problem": plugin.detail,
        "origin": plugin.discovered.origin,
        "folder": str(plugin.discovered.folder or ""),
        "version": manifest.version,
        "description": manifest.description,
        "author": manifest.author,
        "kind": manifest.kind,
        "requires_env": list(manifest.requires_env),
        "hooks": sorted({name for name, _ in plugin.registered.hooks}),
        "commands": [command.name for command in plugin.registered.commands],
        "cli_commands": [command.name for command in plugin.registered.cli_commands],
        "tools": [tool.name for tool in plugin.registered.tools],
        "platforms": [platform.name for platform in plugin.registered.platforms],
        "load_seconds": round(plugin.seconds, 4),
    }


def disable(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Disable a plugin."""
    plugin = activation.disable(arguments.name)
    if arguments.json:
        out.json(as_dict(plugin))
    else:
        out.text(f"Disabled {arguments.name}.")
    return 0


def info(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the details of a plugin."""
    plugin = activation.find_plugin(arguments.name)
    facts = as_dict(plugin)
    if arguments.json:
        out.json(facts)
        return 0
    out.text(plugin.key, "bold")
    out.pairs(
        [(name.replace("_", " "), _value_text(value)) for name, value in facts.items() if value]
    )
    return 0


def _value_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
