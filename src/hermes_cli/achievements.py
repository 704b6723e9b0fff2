"""Achievements put together: the store's history, the user's settings, plugins' additions."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from hermes_core import paths
from hermes_core.config_file import ConfigFile
from hermes_core.mentions import is_mentioned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hermes_achievements.catalogue import Achievement
    from hermes_achievements.service import Service, Source

log = logging.getLogger(__name__)

PLUGIN = "hermes-achievements"
HOOK = "on_achievement_unlocked"


def folder() -> Path:
    """Where unlocks and the snapshot are kept."""
    return paths.private_folder(paths.plugins_path() / PLUGIN)


def is_enabled() -> bool:
    """Whether the user wants achievements at all."""
    if not is_mentioned("achievements.enabled"):
        return True
    return ConfigFile.of_home().settings().get_bool("achievements.enabled")


def source(path: Path | None = None) -> Source:
    """The user's own history, or the one at *path*."""
    from hermes_achievements.service import Source  # noqa: PLC0415 - loaded when it is needed
    from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - as above
    from hermes_state.ledger.opening import open_history  # noqa: PLC0415 - as above

    database = path or paths.state_db_path()
    return Source(
        functools.partial(open_history, str(database)),
        functools.partial(LedgerFile, database),
        ConfigFile.of_home().settings().get_str("display.timezone"),
        can_travel=True,
    )


def service() -> Service:
    """The user's achievements."""
    from hermes_achievements.service import Service  # noqa: PLC0415 - loaded when it is needed

    return Service(folder, announce=announce, added=added, hidden=hidden)


def announce(announcement: dict[str, Any]) -> None:
    """Tell plugins, all at once: the first scan of a long history is one announcement."""
    from hermes_cli import plugins  # noqa: PLC0415 - most have no plugins

    plugins.invoke_hook(HOOK, **announcement)


def added() -> Iterable[Achievement]:
    """The achievements that plugins bring."""
    from hermes_cli import plugins  # noqa: PLC0415 - most have no plugins

    found: dict[str, Achievement] = {}
    for plugin in plugins.active().plugins.values():
        for one in plugin.registered.achievements:
            if one.id in found:
                holder = found[one.id].origin
                log.warning("achievement %s of %s: %s has it", one.id, plugin.key, holder)
            else:
                found[one.id] = one
    return found.values()


def hidden() -> Iterable[str]:
    """The achievements that the user does not want to see."""
    return ConfigFile.of_home().settings().get_list("achievements.hidden")
