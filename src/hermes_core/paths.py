"""Paths of Hermes' files, and their permissions.

This module is the only reader of HERMES_HOME. If it is not set, an existing `~/.hermes` is
used (the folder of hermes-agent), otherwise the XDG data folder.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
TRUST_FILE = "trusted_folders.json"  # which project files the user trusts


def hermes_home() -> Path:
    """The folder with all data of a user's Hermes."""
    chosen = os.environ.get("HERMES_HOME")
    if chosen:
        return _home_at(chosen) if chosen.startswith("/") else Path(chosen).expanduser().absolute()
    return default_home()


def default_home() -> Path:
    """The home where HERMES_HOME is not set."""
    default = Path.home() / ".hermes"
    xdg = os.environ.get("XDG_DATA_HOME")
    if xdg and not default.exists():
        return Path(xdg).expanduser().absolute() / "hermes"
    return default


@functools.lru_cache(maxsize=8)
def _home_at(path: str) -> Path:
    """A home, as one object: it is needed many times per message."""
    return Path(path)


def installation_paths() -> tuple[Path, ...]:
    """The program files of Hermes: its sources or packages, and its virtual environment.

    They run outside of the sandbox at the next start, so the agent must not change them. A
    Python of the system belongs to the system.
    """
    sources = Path(__file__).resolve().parents[1]
    root = sources.parent
    is_checkout = sources.name == "src" and (root / "hermes").is_file()
    prefix = () if sys.prefix == sys.base_prefix else (Path(sys.prefix).resolve(),)
    return (root if is_checkout else sources, *prefix)


def environment() -> dict[str, str]:
    """The environment of a child process, with the absolute path of the home."""
    return {**os.environ, "HERMES_HOME": str(hermes_home())}


def state_db_path() -> Path:
    """The session store."""
    return hermes_home() / "state.db"


def config_path() -> Path:
    """The settings file, without secrets."""
    return _config_in(hermes_home())


@functools.lru_cache(maxsize=8)
def _config_in(home: Path) -> Path:
    """The settings file, as one object: its change is looked for many times per message."""
    return home / "config.yaml"


def env_path() -> Path:
    """The file of secrets."""
    return hermes_home() / ".env"


def plugins_path() -> Path:
    """The folder of the user's plugins."""
    return hermes_home() / "plugins"


def workspaces_path() -> Path:
    """The folder with a workspace for each person."""
    return (hermes_home() / "workspaces").resolve()


def workspace_path(name: str) -> Path:
    """The folder that conversations of a person work in; it is created."""
    return private_folder(workspaces_path() / name).resolve()


def person_memory_path(name: str) -> Path:
    """The folder of the notes about a person other than the owner."""
    return hermes_home() / "memories" / "people" / name


def logs_path() -> Path:
    """The folder of log files."""
    return hermes_home() / "logs"


def private_folder(path: Path) -> Path:
    """Create *path* and its missing parents, accessible to the owner only."""
    missing = []
    current = path
    while not current.exists():
        missing.append(current)
        current = current.parent
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return path


def tighten_home() -> None:
    """Remove other users' permissions on the home and on its files with settings and secrets.

    Only a folder with files of Hermes is changed, and nothing that belongs to another user.
    """
    home = hermes_home()
    files = [home / name for name in ("config.yaml", ".env", "state.db")]
    try:
        is_ours = home != Path.home() and any(file.exists() for file in files)
        for path in (home, *files) if is_ours else ():
            _tighten(path)
    except OSError:
        return  # `hermes doctor` reports what stays open


def _tighten(path: Path) -> None:
    if path.is_symlink() or not path.exists():
        return
    stat = path.stat()
    if stat.st_uid == os.getuid() and stat.st_mode & 0o077:
        path.chmod(stat.st_mode & 0o700)


def private_file(path: Path) -> Path:
    """Remove other users' permissions on *path*."""
    if path.stat().st_mode & 0o077:
        path.chmod(FILE_MODE)
    return path
