"""Fetching the built-in model: two pinned packages, with whatever installs packages here.

They go into a folder beside the target, are looked at, and take the target's place in one
step: the model is there completely or not at all.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.local.built_in import DISK_MB, DOWNLOAD_MB, LOCK, STAMP, TITLE, BuiltIn
from hermes_core.atomic_files import folder_locked
from hermes_core.errors import FetchError
from hermes_core.package_installer import Pins, install
from hermes_core.paths import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_core.package_installer import Progress

PINS: Final = Pins(LOCK, TITLE, DOWNLOAD_MB, DISK_MB)


def fetch(target: BuiltIn, progress: Progress, *, is_anew: bool = False) -> bool:
    """Have the pinned model in place; whether anything had to be fetched."""
    models = private_folder(target.folder.parent)
    progress("waiting for another fetch")
    with folder_locked(models):
        if target.is_current and not target.flaw() and not is_anew:
            progress("")
            return False
        _remove_leftovers(target)
        _require_room(models)
        with _beside(target) as fresh:
            try:
                install(PINS, fresh.folder, progress)
            finally:
                progress("")
            _put_in_place(fresh, target)
    return True


@contextmanager
def _beside(target: BuiltIn) -> Iterator[BuiltIn]:
    """A folder to work in, on the same file system; gone afterwards."""
    folder = tempfile.mkdtemp(prefix=_prefix(target), dir=target.folder.parent)
    try:
        yield BuiltIn(Path(folder) / target.folder.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(target: BuiltIn) -> str:
    return f".{target.folder.name}-"


def _remove_leftovers(target: BuiltIn) -> None:
    """What a killed fetch left; nobody else works here while the lock is held."""
    for folder in target.folder.parent.glob(f"{_prefix(target)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _require_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < 2 * DISK_MB:
        raise FetchError(
            f"{TITLE} needs {2 * DISK_MB} MB while it is fetched, and {folder} has {free} MB "
            "left; make room, or let HERMES_HOME point to a larger disk"
        )


def _put_in_place(fresh: BuiltIn, target: BuiltIn) -> None:
    flaw = fresh.flaw()
    if flaw:
        raise FetchError(
            f"what was fetched cannot be used: {flaw}; run `hermes models get smollm2` again"
        )
    shutil.copyfile(LOCK, fresh.folder / STAMP)
    if target.folder.exists():
        target.folder.rename(fresh.folder.with_name("old"))
    fresh.folder.rename(target.folder)
