"""Checks of plugins, for `hermes plugins doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_core.errors import PluginError
from hermes_core.hooks import HOOKS
from hermes_plugin_host.importer import libraries_folder
from hermes_plugin_host.installation import libraries
from hermes_plugin_host.installation.installer import find_record, installed_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def check_plugin(plugin: Plugin) -> PluginReport:
    """Check one plugin."""
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
    return PluginReport(plugin.key, plugin.status, problems, notes)
