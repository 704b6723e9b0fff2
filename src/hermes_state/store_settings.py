"""The user's settings for the store."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from hermes_core import paths
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

STORE_SETTING_KEYS = (
    "store.busy_seconds",
    "store.trash_days",
    "store.wal_limit_mb",
    "store.journal_mode",
    "store.draft_interval_ms",
    "store.node_timeout_seconds",
    "search.tool_output",
    "sessions.auto_prune",
    "sessions.retention_days",
)


class StoreSettings(NamedTuple):
    """Settings of the store; the defaults are those of the settings table."""

    busy_seconds: float = 10.0
    trash_days: int = 30
    wal_limit_mb: int = 64
    draft_interval_ms: int = 150
    retention_days: int = 0  # 0: no automatic pruning
    search_tools: bool = True
    converts_to_wal: bool = False  # of a file that another program created
    node_timeout_seconds: float = 15.0  # until a machine without a heartbeat counts as dead

    @classmethod
    def of_home(cls) -> StoreSettings:
        """The user's settings; an invalid value is logged and the defaults are used."""
        if not is_set(*STORE_SETTING_KEYS):
            return cls()
        from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - rarely needed
        from hermes_core.policy import retention_policy  # noqa: PLC0415 - as above

        try:
            settings = ConfigFile.of_home().settings()
            return cls(
                busy_seconds=settings.get_float("store.busy_seconds"),
                trash_days=settings.get_int("store.trash_days"),
                wal_limit_mb=settings.get_int("store.wal_limit_mb"),
                converts_to_wal=settings.get_str("store.journal_mode") == "wal",
                draft_interval_ms=settings.get_int("store.draft_interval_ms"),
                retention_days=retention_policy(settings).days,
                search_tools=settings.get_bool("search.tool_output"),
                node_timeout_seconds=settings.get_float("store.node_timeout_seconds"),
            )
        except ConfigError as error:
            log.warning("store settings invalid, using the defaults: %s", error)
            return cls()


def history_exists() -> bool:
    """Whether the home has a history: a file, or the name of a database."""
    path = paths.state_db_path()
    return path.exists() or bool(store_url(path))


def history_place() -> str:
    """Where the history of the home is, for people."""
    path = paths.state_db_path()
    url = store_url(path)
    return re.sub(r":[^:@/]*@|(?<=password=)[^ &]+", "@", url) if url else str(path)


def store_url(path: Path) -> str:
    """The database that holds the history at *path*; empty if that is a file.

    `store.url` replaces the home's own file only: other paths are files.
    """
    if not is_set("store.url"):
        return ""
    if os.path.realpath(path) != os.path.realpath(paths.state_db_path()):
        return ""
    from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - rarely needed

    return ConfigFile.of_home().settings().get_str("store.url")


def store_password() -> str:
    """The password of the database, from `.env`; empty if a service file has it."""
    from hermes_core.config.file import ConfigFile  # noqa: PLC0415 - rarely needed

    return ConfigFile.of_home().settings().get_secret("store.password") or ""
