"""Imports a plugin's file as a module under a name of its own."""

from __future__ import annotations

import importlib.util
import signal
import sys
import threading
import types
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import hermes_plugin_host
from hermes_core import paths
from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType, ModuleType


@contextmanager
def contain_exits() -> Iterator[None]:
    """Turn a SystemExit or KeyboardInterrupt of a plugin into a PluginError.

    Ctrl+C of the user while the plugin is loaded still interrupts.
    """
    with _interrupts() as interrupts:
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            if interrupts:
                raise
            raise PluginError(_message(error)) from error


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects the interrupts of the user, which are raised as usual."""
    received: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield received  # no signal raises KeyboardInterrupt here
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield received
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:  # the plugin may have set its own
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the plugin called sys.exit while loading ({error})"
    return f"the plugin raised {type(error).__name__} while loading"


LIBRARIES: Final = ".libraries"


def libraries_folder(key: str) -> Path:
    """The folder with the packages that a plugin requires."""
    return paths.plugins_path() / LIBRARIES / key


def add_libraries(key: str) -> None:
    """Make the packages of a plugin importable, after those of Hermes."""
    folder = libraries_folder(key)
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()


def import_file(name: str, path: Path, package_folder: Path | None = None) -> ModuleType:
    """Import *path* as *name*, as a package if *package_folder* is given.

    What would end the process, such as a SystemExit, becomes a PluginError.
    """
    hermes_plugin_host.interface_choice().open().install_modules()
    _forget(name)
    parent = _parent_package(name)
    locations = None if package_folder is None else [str(package_folder)]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise PluginError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with contain_exits():
            spec.loader.exec_module(module)
    except BaseException:
        _forget(name)
        raise
    if parent is not None:
        setattr(parent, name.rpartition(".")[2], module)
    return module


def _parent_package(name: str) -> ModuleType | None:
    """The package that *name* is in; `import package.plugin.file` needs it."""
    package = name.rpartition(".")[0]
    if not package:
        return None
    module = sys.modules.get(package)
    if module is None:
        module = types.ModuleType(package)
        module.__path__ = []
        sys.modules[package] = module
    return module


def _forget(name: str) -> None:
    """Remove a module and its submodules, which belong to an earlier or failed import."""
    for known in list(sys.modules):  # a copy: other threads import meanwhile
        if known == name or known.startswith(f"{name}."):
            sys.modules.pop(known, None)
    package, _, last = name.rpartition(".")
    if package in sys.modules:
        vars(sys.modules[package]).pop(last, None)
