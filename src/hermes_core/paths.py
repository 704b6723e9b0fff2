"""Where everything lives on disk, and who may read it.

This module is the only reader of HERMES_HOME. Without it, an existing `~/.hermes`
wins (that is where the original keeps its histories); otherwise the data folder of
the XDG convention is used.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def hermes_home() -> Path:
    """The folder that holds everything of one user's Hermes."""
    chosen = os.environ.get("HERMES_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    classic = Path.home() / ".hermes"
    xdg = os.environ.get("XDG_DATA_HOME")
    if xdg and not classic.exists():
        return Path(xdg).expanduser().absolute() / "hermes"
    return classic


def environment() -> dict[str, str]:
    """The environment for a process of ours in another folder: the same home, by its full name."""
    return {**os.environ, "HERMES_HOME": str(hermes_home())}


def state_db_path() -> Path:
    """The session store."""
    return hermes_home() / "state.db"


def config_path() -> Path:
    """The settings that are not secret."""
    return hermes_home() / "config.yaml"


def env_path() -> Path:
    """The secrets."""
    return hermes_home() / ".env"


def plugins_path() -> Path:
    """The user's own plugins."""
    return hermes_home() / "plugins"


def logs_path() -> Path:
    """Log files."""
    return hermes_home() / "logs"


def private_folder(path: Path) -> Path:
    """Make *path* and its missing parents, readable by the owner alone."""
    missing = []
    current = path
    while not current.exists():
        missing.append(current)
        current = current.parent
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return path


def private_file(path: Path) -> Path:
    """Take other people's rights on *path* away."""
    if path.stat().st_mode & 0o077:
        path.chmod(FILE_MODE)
    return path
