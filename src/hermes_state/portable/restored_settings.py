"""What a backup would grant: settings, secrets, files and users that differ from the present ones.

A backup may come from elsewhere. Settings that select commands, endpoints or plugins, or that
let the agent or other people do more, are restored only if the user accepts them. The same holds
for rules, skills, plugins, commands and instructions.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

from hermes_core.config.env_file import EnvFile
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError
from hermes_core.home_files import FileCategory, category_of
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.reader_pool import read_only_uri
from hermes_state.portable.backup.archive_format import SECRETS_NAME, SETTINGS_NAME, STORE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SETTINGS_FILES: Final = (SETTINGS_NAME, SECRETS_NAME)
# Sections with keys of the user that only affect the display or when a chat starts again.
HARMLESS_BLOCKS: Final = frozenset({"reset_by_platform", "reset_by_type", "streaming"})
EMPTY: Final = "(empty)"
HIDDEN: Final = "a new value (hidden)"
SELECT_USERS: Final = "SELECT platform, user_id, user_name FROM hermes_allowed"
DELETE_USER: Final = "DELETE FROM hermes_allowed WHERE platform = ? AND user_id = ?"

User = tuple[str, str, str]


def granted_settings(work: Path, folder: Path) -> list[str]:
    """One line for each setting of the extracted backup that grants something new."""
    new, old = _config(work), _config(folder)
    lines = []
    if (work / SETTINGS_NAME).exists():
        lines += [*_changed_settings(new, old), *_changed_blocks(new, old)]
    if (work / SECRETS_NAME).exists():
        lines += _changed_secrets(work, folder)
    return lines


def is_granting(name: str) -> bool:
    """Whether a file may grant something."""
    return category_of(name) in {FileCategory.GRANTING, FileCategory.SECRET}


def granted_files(names: Iterable[str], work: Path, folder: Path) -> list[str]:
    """One line for each file or folder besides the settings that grants something new."""
    changes: dict[str, set[str]] = {}
    for name in names:
        if name in SETTINGS_FILES or not is_granting(name):
            continue
        present = folder / name
        if not present.exists():
            changes.setdefault(_part(name), set()).add("new")
        elif not present.is_file() or present.read_bytes() != (work / name).read_bytes():
            changes.setdefault(_part(name), set()).add("changed")
    return [f"{part}: {' and '.join(sorted(kinds))} files" for part, kinds in changes.items()]


def _part(name: str) -> str:
    """The plugin, skill or command that a file belongs to."""
    return "/".join(name.split("/")[:2])


def new_users(work: Path, folder: Path) -> list[User]:
    """Users with access to chats according to the backup, but not now."""
    present = {user[:2] for user in _users(folder / STORE_NAME)}
    return [user for user in _users(work / STORE_NAME) if user[:2] not in present]


def remove_users(store: Path, users: list[User]) -> None:
    """Remove the access of *users* from an extracted store."""
    if not users:
        return
    with contextlib.closing(driver.connect(str(store), 10)) as connection:
        connection.executemany(DELETE_USER, [user[:2] for user in users])
        connection.commit()


def _config(folder: Path) -> ConfigFile:
    return ConfigFile(folder / SETTINGS_NAME, folder / SECRETS_NAME, environ={})


def _changed_settings(new: ConfigFile, old: ConfigFile) -> list[str]:
    lines = []
    for setting in SETTINGS:
        if setting.only_by_hand and not setting.secret:
            before, after = _text(old, setting.name), _text(new, setting.name)
            if before != after:
                lines.append(f"{setting.name}: {before} -> {after}")
    return lines


def _text(config: ConfigFile, name: str) -> str:
    try:
        return config.entry(name).text or EMPTY
    except ConfigError:
        return "(invalid)"


def _changed_blocks(new: ConfigFile, old: ConfigFile) -> list[str]:
    """Sections whose keys the user chooses: MCP servers, platforms, and unknown ones."""
    known = {setting.section for setting in SETTINGS} | HARMLESS_BLOCKS
    before, after = _sections(old), _sections(new)
    return [
        f"{name}: {_json(before.get(name))} -> {_json(value)}"
        for name, value in after.items()
        if name not in known and value and value != before.get(name)
    ]


def _sections(config: ConfigFile) -> dict[str, object]:
    try:
        return config.sections()
    except ConfigError:
        return {"(the file)": "cannot be read"}


def _json(value: object) -> str:
    return EMPTY if not value else json.dumps(value, ensure_ascii=False, default=str)


def _changed_secrets(work: Path, folder: Path) -> list[str]:
    """Credentials of platforms and other variables; the keys of model providers grant nothing."""
    new, old = EnvFile(work / SECRETS_NAME).values(), EnvFile(folder / SECRETS_NAME).values()
    names = {setting.variable: setting.name for setting in SETTINGS if setting.secret}
    harmless = {
        setting.variable for setting in SETTINGS if setting.secret and not setting.only_by_hand
    }
    return [
        f"{names.get(variable, variable)}: {'set' if old.get(variable) else 'not set'} -> {HIDDEN}"
        for variable, value in new.items()
        if value and variable not in harmless and value != old.get(variable)
    ]


def _users(store: Path) -> list[User]:
    if not store.exists():
        return []
    try:
        with contextlib.closing(driver.connect(read_only_uri(store), 10, uri=True)) as connection:
            return [tuple(map(str, row)) for row in connection.execute(SELECT_USERS)]  # type: ignore[misc]
    except sqlite3.Error:
        return []  # without our tables, or damaged: no user has access
