"""The folder that the owner's chats work in, and whether it belongs to one node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_conversation.role_limits import OWNER_FOLDER
from hermes_core.errors import ConfigError
from hermes_core.paths import workspace_path

if TYPE_CHECKING:
    from hermes_core.config.file import Settings
    from hermes_state import SessionDB


def owners_workspace(settings: Settings) -> Path:
    """The configured folder, else one of its own; the root of all files is not accepted."""
    chosen = settings.get_str("gateway.workspace")
    if not chosen:
        return workspace_path(OWNER_FOLDER)
    folder = Path(chosen).expanduser()
    if not folder.is_absolute() or not folder.is_dir():
        raise ConfigError(f"gateway.workspace: {chosen} is not an absolute path of a folder.")
    if folder.resolve() == Path(folder.anchor):
        raise ConfigError(f"gateway.workspace: {chosen} cannot be a working folder.")
    return folder.resolve()


def is_bound_to_node(db: SessionDB, settings: Settings) -> bool:
    """Whether the owner's chats work in a folder that other nodes do not have."""
    if db.engine.database.is_file or not settings.get_str("gateway.workspace"):
        return False
    return not settings.get_bool("gateway.workspace_is_shared")
