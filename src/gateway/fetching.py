"""The client libraries of platforms: fetched when somebody wants one, into a folder of their own.

They are pinned with their hashes and looked for behind everything that is installed, so
that they never change what the rest of Hermes runs with.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.atomic_files import folder_locked
from hermes_core.errors import UsageError
from hermes_core.installing import Pins, install
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from gateway.registry import Entry
    from hermes_core.installing import Progress

LOCKS: Final = Path(__file__).with_name("libraries")
STAMP: Final = "installed.lock"
SIZES: Final = {"telegram": (9, 45), "matrix": (9, 35), "discord": (5, 20), "slack": (5, 25)}  # MB


def folder_of(name: str) -> Path:
    """Where the libraries of a platform are."""
    return hermes_home() / "libraries" / name


def is_fetched(name: str) -> bool:
    """Whether exactly the pinned libraries are there."""
    try:
        return (folder_of(name) / STAMP).read_bytes() == _lock(name).read_bytes()
    except OSError:
        return False


def is_usable(entry: Entry) -> bool:
    """Whether a platform's library can be imported; what was fetched is made known."""
    if not entry.needs or importlib.util.find_spec(entry.needs) is not None:
        return True
    folder = str(folder_of(entry.name))
    if is_fetched(entry.name) and folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()
    return importlib.util.find_spec(entry.needs) is not None


def fetch(entry: Entry, progress: Progress) -> bool:
    """Have a platform's library in place; whether anything had to be fetched."""
    if not entry.needs:
        return False
    if not _lock(entry.name).exists():
        raise UsageError(f"the library of {entry.label} comes with the plugin that brings it")
    folder = folder_of(entry.name)
    with folder_locked(private_folder(folder.parent)):
        if is_usable(entry):
            return False
        download, disk = SIZES[entry.name]
        pins = Pins(_lock(entry.name), f"the library for {entry.label}", download, disk)
        with tempfile.TemporaryDirectory(prefix=".", dir=folder.parent) as work:
            fresh = Path(work) / entry.name
            try:
                install(pins, fresh, progress)
            finally:
                progress("")
            shutil.copyfile(pins.lock, fresh / STAMP)
            if folder.exists():
                folder.rename(Path(work) / "old")
            fresh.rename(folder)
    return True


def _lock(name: str) -> Path:
    return LOCKS / f"{name}.lock"
