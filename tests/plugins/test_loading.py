"""Plugins of several files, and plugins that are only a dashboard tab."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hermes_plugin_host
from hermes_core.config.file import ConfigFile
from hermes_plugin_host import activation
from hermes_plugin_host.importer import import_file
from hermes_plugin_host.manager import PluginManager
from support.plugin_folders import make_dashboard_plugin, make_plugin

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.command_line import Hermes

PACKAGE = """
from . import helper
from .inner import deep
import hermes_plugins.two.helper as same
from hermes_plugins import two
def register(ctx):
    assert same is helper is two.helper
    ctx.register_command("roll", deep.roll)
"""


def load_plugins(*enabled: str) -> PluginManager:
    manager = PluginManager(enabled, ())
    manager.load()
    return manager


def write_package(home: Path, number: int = 4) -> None:
    folder = home / "plugins" / "two"
    if not folder.exists():
        make_plugin(home, "two", PACKAGE)
        (folder / "inner").mkdir()
        (folder / "inner" / "__init__.py").touch()
        (folder / "inner" / "deep.py").write_text("from ..helper import roll\n")
    (folder / "helper.py").write_text(f"def roll(text):\n    return '{number}'\n")


def test_a_plugin_may_have_several_files_and_packages(hermes_home: Path) -> None:
    write_package(hermes_home)
    plugin = load_plugins("two").plugins["two"]
    assert (plugin.status, plugin.detail) == ("loaded", "")
    assert plugin.registered.commands[0].handler("") == "4"


def test_all_files_of_a_plugin_are_read_again_when_it_is_loaded_again(hermes_home: Path) -> None:
    write_package(hermes_home)
    load_plugins("two")
    write_package(hermes_home, 60)
    plugin = load_plugins("two").plugins["two"]
    assert plugin.registered.commands[0].handler("") == "60"


def test_a_failed_plugin_leaves_no_module(hermes_home: Path) -> None:
    write_package(hermes_home)
    (hermes_home / "plugins" / "two" / "inner" / "deep.py").write_text("1 / 0")
    plugin = load_plugins("two").plugins["two"]
    assert plugin.detail == "ZeroDivisionError: division by zero"
    assert [name for name in sys.modules if name.startswith("hermes_plugins.two")] == []


def test_a_plugin_without_plugin_yaml_that_has_a_tab_can_be_enabled(
    hermes: Hermes, hermes_home: Path
) -> None:
    root = hermes_home / "plugins"
    make_dashboard_plugin(root, "classic", version="2.0", description="An old board")
    make_dashboard_plugin(root / "group", "inner", label="Inner")
    listed = {row["name"]: row for row in json.loads(hermes("plugins", "list", "--json").out)}
    assert listed["classic"]["state"] == listed["group/inner"]["state"] == "available"
    assert listed["classic"]["kind"] == "dashboard"
    assert listed["classic"]["description"] == "An old board"
    assert listed["classic"]["version"] == "2.0"
    result = hermes("plugins", "enable", "classic")
    assert (result.code, result.out) == (0, "Enabled classic.\n")
    assert hermes("plugins", "disable", "classic").code == 0
    assert ConfigFile.of_home().settings().get_list("plugins.enabled") == ()


def test_the_bundled_tab_is_listed_and_can_be_disabled(hermes_home: Path) -> None:
    del hermes_home
    assert activation.find_plugin("hermes-achievements").status == "loaded"
    assert "hermes-achievements" in hermes_plugin_host.active().enabled
    assert activation.disable("hermes-achievements").status == "disabled"
    assert "hermes-achievements" not in hermes_plugin_host.active().enabled
    assert activation.enable("hermes-achievements", None).status == "loaded"


def test_a_broken_manifest_of_a_tab_does_not_hide_the_plugin(hermes_home: Path) -> None:
    folder = make_dashboard_plugin(hermes_home / "plugins", "classic")
    (folder / "manifest.json").write_text("[")
    plugin = load_plugins("classic").plugins["classic"]
    assert (plugin.status, plugin.discovered.manifest.name) == ("loaded", "classic")


CLI_COMMANDS = """
def setup(parser):
    actions = parser.add_subparsers()
    join = actions.add_parser("join")
    join.set_defaults(func=lambda arguments: print("joined"))
def register(ctx):
    ctx.register_cli_command(name="meet", help="meetings", description="Join meetings.",
                             setup_fn=setup)
    ctx.register_cli_command("plain", "no arguments", handler_fn=lambda arguments: print("plain"))
"""


def test_a_command_may_have_a_description_and_set_its_handlers_itself(
    hermes: Hermes, hermes_home: Path
) -> None:
    make_plugin(hermes_home, "meet", CLI_COMMANDS)
    assert hermes("plugins", "enable", "meet").code == 0
    assert hermes("meet", "join").out == "joined\n"
    assert hermes("plain").out == "plain\n"
    without_action = hermes("meet")
    assert without_action.code == 2
    assert "Join meetings." in without_action.out


class NameReadDuringAnImport(str):
    """The name of a module; while it is compared, another thread imports a module."""

    __slots__ = ()

    def startswith(self, *_arguments: Any) -> bool:
        sys.modules["imported_meanwhile"] = ModuleType("imported_meanwhile")
        return False


def test_a_plugin_is_imported_while_another_thread_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text("number = 1\n")
    first = {NameReadDuringAnImport("first"): ModuleType("first")}
    monkeypatch.setattr(sys, "modules", {**first, **sys.modules})
    assert import_file("hermes_plugins.one", tmp_path / "one.py").number == 1
