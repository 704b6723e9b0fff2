"""Builds the achievement service from the history, the settings and plugins."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError
from hermes_core.time_zones import find_zone, system_zone
from hermes_state.files import ACHIEVEMENTS_PREFIX
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement
    from hermes_achievements.evaluation.snapshot import Announcement
    from hermes_achievements.scan.plain_history import MemoryLedger
    from hermes_achievements.service import AchievementService, HistorySource
    from hermes_core.json_values import JsonObject
    from hermes_state.files import FileRepository

log = logging.getLogger(__name__)

PLUGIN_NAME = "hermes-achievements"
UNLOCK_HOOK = "on_achievement_unlocked"


def folder_path() -> Path:
    """The folder of unlocks and the snapshot; it may not exist."""
    return paths.plugins_path() / PLUGIN_NAME


def folder() -> Path:
    """The same folder, created if it is missing."""
    return paths.private_folder(folder_path())


def is_enabled() -> bool:
    """Whether achievements are enabled."""
    if not is_set("achievements.enabled"):
        return True
    return ConfigFile.of_home().settings().get_bool("achievements.enabled")


def is_writable(path: Path | None = None) -> bool:
    """Whether scan results can be stored: in the database, or beside the file."""
    path = path or paths.state_db_path()
    return bool(store_url(path)) or os.access(path.parent, os.W_OK)


def source(path: Path | None = None) -> HistorySource:
    """The user's history, or the one at *path*.

    Without write access, the scan results are kept in memory.
    """
    from hermes_achievements.service import HistorySource  # noqa: PLC0415 - loaded when it is needed
    from hermes_state.ledger.file import open_ledger  # noqa: PLC0415 - as above
    from hermes_state.ledger.history import open_history  # noqa: PLC0415 - as above

    database = path or paths.state_db_path()
    name, is_zone_new = time_zone()
    can_keep = is_writable(database)
    return HistorySource(
        functools.partial(open_history, str(database)),
        functools.partial(open_ledger if can_keep else _memory_ledger, database),
        name,
        is_shareable=can_keep,
        is_zone_new=is_zone_new,
    )


@functools.cache
def _memory_ledger(database: Path) -> MemoryLedger:
    """One ledger per history for the lifetime of the process."""
    from hermes_achievements.scan.plain_history import MemoryLedger  # noqa: PLC0415 - rarely needed

    log.info("achievements not saved: no write access to the folder of %s", database)
    return MemoryLedger()


def time_zone() -> tuple[str, bool]:
    """The time zone of calendar days, and whether it has to be stored.

    Without a setting it is the one used first: a service and a shell of the same user may
    have different zones, and a day must be the same day for both.
    """
    from hermes_achievements.evaluation.records import FolderStorage, UnlockRecords  # noqa: PLC0415 - loaded when it is needed

    chosen = ConfigFile.of_home().settings().get_str("display.timezone")
    if chosen:
        return chosen, False
    known = UnlockRecords(
        lambda: shared_storage() or FolderStorage(folder_path(), SystemClock())
    ).zone()
    if known and _is_zone(known):
        return known, False
    name = system_zone().key or ""
    return (name, True) if _is_zone(name) else ("", False)


def _is_zone(name: str) -> bool:
    try:
        find_zone(name)
    except ConfigError:  # unknown on this machine, or a file without a name
        return False
    return bool(name)


def service() -> AchievementService:
    """The user's achievements."""
    from hermes_achievements.service import AchievementService  # noqa: PLC0415 - loaded when it is needed

    return AchievementService(
        folder_path,
        announce=notify_plugins,
        added=plugin_achievements,
        hidden=hidden_ids,
        shared=shared_storage,
    )


class SharedStorage:
    """Achievement records in the database of the history, for all machines that share it."""

    def read(self, name: str) -> JsonObject:
        """An object; empty if it is missing or unreadable."""
        with _shared_files() as files:
            return _decoded(name, files.get(f"{ACHIEVEMENTS_PREFIX}{name}"))

    def write(self, name: str, value: JsonObject) -> None:
        """Replace an object."""
        from hermes_achievements.evaluation.records import encode  # noqa: PLC0415 - loaded when it is needed

        with _shared_files() as files:
            files.put(f"{ACHIEVEMENTS_PREFIX}{name}", encode(value))

    def change(self, name: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace an object in one transaction."""
        from hermes_achievements.evaluation.records import encode  # noqa: PLC0415 - loaded when it is needed

        with _shared_files() as files:
            files.change(
                f"{ACHIEVEMENTS_PREFIX}{name}",
                lambda before: encode(change(_decoded(name, before))),
            )

    def remove(self, name: str) -> None:
        """Delete an object, if it exists."""
        with _shared_files() as files:
            files.remove(f"{ACHIEVEMENTS_PREFIX}{name}")


@contextlib.contextmanager
def _shared_files() -> Iterator[FileRepository]:
    from hermes_state.store import SessionDB  # noqa: PLC0415 - loaded when it is needed

    with SessionDB(is_recovering=False) as db:
        yield db.files


def shared_storage() -> SharedStorage | None:
    """The records in the database of the history; None if that is a file."""
    return SharedStorage() if store_url(paths.state_db_path()) else None


def _decoded(name: str, content: bytes | None) -> JsonObject:
    try:
        result = json.loads(content or b"{}")
    except ValueError as error:
        log.warning("achievements record %s unreadable: %s", name, error)
        return {}
    return result if isinstance(result, dict) else {}


def notify_plugins(announcement: Announcement) -> None:
    """Invoke the unlock hook once per scan, also for the first scan of a long history."""
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    hermes_plugin_host.invoke_hook(UNLOCK_HOOK, **announcement)


def plugin_achievements() -> Iterable[Achievement]:
    """The achievements of plugins; of two with one ID the first wins."""
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    result: dict[str, Achievement] = {}
    for plugin in hermes_plugin_host.active().plugins.values():
        for achievement in plugin.registered.achievements:
            if achievement.id in result:
                holder = result[achievement.id].origin
                log.warning(
                    "achievement %s of %s skipped: used by %s",
                    achievement.id,
                    plugin.key,
                    holder,
                )
            else:
                result[achievement.id] = achievement
    return result.values()


def hidden_ids() -> Iterable[str]:
    """The IDs of hidden achievements."""
    if not is_set("achievements.hidden"):
        return []
    return ConfigFile.of_home().settings().get_list("achievements.hidden")
