"""Achievements put together: the store's history, the user's settings, plugins' additions."""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, Any

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.config.file import ConfigFile
from hermes_core.config.probe import may_be_set
from hermes_core.errors import ConfigError
from hermes_core.time_zones import find_zone, system_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement
    from hermes_achievements.scan.history import Ledger
    from hermes_achievements.scan.plain_history import MemoryLedger
    from hermes_achievements.service import Service, Source

log = logging.getLogger(__name__)

PLUGIN = "hermes-achievements"
HOOK = "on_achievement_unlocked"


def folder_path() -> Path:
    """Where unlocks and the snapshot are kept; there may be nothing yet."""
    return paths.plugins_path() / PLUGIN


def folder() -> Path:
    """The same, made if it is missing."""
    return paths.private_folder(folder_path())


def is_enabled() -> bool:
    """Whether the user wants achievements at all."""
    if not may_be_set("achievements.enabled"):
        return True
    return ConfigFile.of_home().settings().get_bool("achievements.enabled")


def is_writable(path: Path | None = None) -> bool:
    """Whether anything can be kept beside the history."""
    return os.access((path or paths.state_db_path()).parent, os.W_OK)


def source(path: Path | None = None) -> Source:
    """The user's own history, or the one at *path*.

    Where nothing can be written, what is read is kept in memory.
    """
    from hermes_achievements.service import Source  # noqa: PLC0415 - loaded when it is needed
    from hermes_state.ledger.history import open_history  # noqa: PLC0415 - as above

    database = path or paths.state_db_path()
    name, is_remembered = zone()
    can_keep = is_writable(database)
    return Source(
        functools.partial(open_history, str(database)),
        _ledger(database) if can_keep else functools.partial(_in_memory, database),
        name,
        can_travel=can_keep,
        is_remembered=is_remembered,
    )


def _ledger(database: Path) -> Callable[[], Ledger]:
    from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - loaded when it is needed

    return functools.partial(LedgerFile, database)


@functools.cache
def _in_memory(database: Path) -> MemoryLedger:
    """One for each history, as long as this process lives."""
    from hermes_achievements.scan.plain_history import MemoryLedger  # noqa: PLC0415 - rarely needed

    log.info("achievements not saved: no write access beside %s", database)
    return MemoryLedger()


def zone() -> tuple[str, bool]:
    """The zone by which days are told, and whether it is to be remembered.

    Without a setting it is the one that was used first: a service and a shell of the same
    user may live in different zones, and a day must be the same day for both.
    """
    from hermes_achievements.evaluation.records import Records  # noqa: PLC0415 - loaded when it is needed

    chosen = ConfigFile.of_home().settings().get_str("display.timezone")
    if chosen:
        return chosen, False
    known = Records(folder_path, SystemClock()).zone()
    if known and _is_zone(known):
        return known, False
    name = system_zone().key or ""
    return (name, True) if _is_zone(name) else ("", False)


def _is_zone(name: str) -> bool:
    try:
        find_zone(name)
    except ConfigError:  # of another machine, or a file without a name
        return False
    return bool(name)


def service() -> Service:
    """The user's achievements."""
    from hermes_achievements.service import Service  # noqa: PLC0415 - loaded when it is needed

    return Service(folder_path, announce=announce, added=added, hidden=hidden)


def announce(announcement: dict[str, Any]) -> None:
    """Tell plugins, all at once: the first scan of a long history is one announcement."""
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    hermes_plugin_host.invoke_hook(HOOK, **announcement)


def added() -> Iterable[Achievement]:
    """The achievements that plugins bring."""
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    found: dict[str, Achievement] = {}
    for plugin in hermes_plugin_host.active().plugins.values():
        for one in plugin.registered.achievements:
            if one.id in found:
                holder = found[one.id].origin
                log.warning("achievement %s of %s: %s has it", one.id, plugin.key, holder)
            else:
                found[one.id] = one
    return found.values()


def hidden() -> Iterable[str]:
    """The achievements that the user does not want to see."""
    if not may_be_set("achievements.hidden"):
        return []
    return ConfigFile.of_home().settings().get_list("achievements.hidden")
