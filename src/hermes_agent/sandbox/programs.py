"""Finds the programs that Hermes itself runs outside of the sandbox.

PATH often names folders that commands can write, such as the `bin` folder of a project's virtual
environment. A program from there would run without limits, so only folders of the system count.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSTEM_FOLDERS: Final = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
    "/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin", "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
)  # fmt: skip
SYSTEM_PATH: Final = os.pathsep.join(SYSTEM_FOLDERS)


def system_program(name: str) -> str | None:
    """The path of a program of the system; None without one."""
    for folder in _folders():
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None


def _folders() -> Iterator[Path]:
    yield from map(Path, SYSTEM_FOLDERS)
    if os.geteuid() != 0:
        named = map(Path, os.environ.get("PATH", "").split(os.pathsep))
        yield from (folder for folder in named if _is_of_system(folder))


def _is_of_system(folder: Path) -> bool:
    """Whether a folder and all above it belong to root."""
    real = Path(os.path.realpath(folder))
    try:
        return folder.is_absolute() and all(
            each.stat().st_uid == 0 for each in (real, *real.parents)
        )
    except OSError:
        return False
