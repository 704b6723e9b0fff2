"""Libraries that not everybody needs: fetched when somebody wants one, into a folder of their own.

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
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import folder_locked
from hermes_core.package_installer import Pins, install
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from hermes_core.package_installer import Progress

STAMP: Final = "installed.lock"  # a copy of the pins, written last


class Library(NamedTuple):
    """Something that can be fetched: what it is for, how it is imported, its pins."""

    name: str
    label: str
    imported: str
    lock: Path
    download_mb: int
    disk_mb: int

    @property
    def folder(self) -> Path:
        """Where it is, once it was fetched."""
        return hermes_home() / "libraries" / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether exactly the pinned packages are there."""
        try:
            return (self.folder / STAMP).read_bytes() == self.lock.read_bytes()
        except OSError:
            return False

    def is_usable(self) -> bool:
        """Whether it can be imported; what was fetched is made known."""
        if importlib.util.find_spec(self.imported) is not None:
            return True
        folder = str(self.folder)
        if self.is_fetched and folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
        return importlib.util.find_spec(self.imported) is not None

    def fetch(self, progress: Progress) -> bool:
        """Have it in place; whether anything had to be fetched."""
        with folder_locked(private_folder(self.folder.parent)):
            if self.is_usable():
                return False
            pins = Pins(self.lock, f"the library for {self.label}", self.download_mb, self.disk_mb)
            with tempfile.TemporaryDirectory(prefix=".", dir=self.folder.parent) as work:
                fresh = Path(work) / self.name
                try:
                    install(pins, fresh, progress)
                finally:
                    progress("")
                shutil.copyfile(pins.lock, fresh / STAMP)
                if self.folder.exists():
                    self.folder.rename(Path(work) / "old")
                fresh.rename(self.folder)
        return self.is_usable()
