"""Finds programs; the only module that looks at PATH (ruff forbids `shutil.which` elsewhere).

PATH often names folders that commands can write, such as the `bin` folder of a project's virtual
environment. A program from there would run without limits, so for programs that Hermes itself runs
outside of the sandbox only folders of the system count.
"""

from __future__ import annotations

import os
import shutil
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


def installer_program(name: str) -> str | None:
    """An installer such as uv: of the system or of the user's own programs, which commands of
    the agent cannot change (`.local/bin` is protected like a startup file)."""
    path = Path.home() / ".local" / "bin" / name
    return system_program(name) or (str(path) if os.access(path, os.X_OK) else None)


def program_on_path(name: str, path: str | None = None) -> str | None:
    """A program that the user's own settings name, or that is not run: wherever PATH leads."""
    return shutil.which(name, path=path)  # noqa: TID251 - the one place


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
