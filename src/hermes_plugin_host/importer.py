"""Imports a plugin's file as a module under a name of its own."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def import_file(name: str, path: Path, package_folder: Path | None = None) -> ModuleType:
    """Import *path* as *name*, as a package if *package_folder* is given.

    A SystemExit during the import becomes a PluginError.
    """
    locations = None if package_folder is None else [str(package_folder)]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise PluginError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        del sys.modules[name]
        raise PluginError(exit_message(error)) from error
    except BaseException:
        del sys.modules[name]
        raise
    return module


def exit_message(error: SystemExit) -> str:
    """The message for a plugin that exits while it is imported."""
    return f"the plugin called sys.exit while loading ({error})"
