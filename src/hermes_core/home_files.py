"""The files of HERMES_HOME: one list for `backup`, `restore`, `store copy` and the docs."""

from __future__ import annotations

import enum
import functools
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class FileCategory(enum.Enum):
    """What a backup does with a file; the value of one that it leaves out is the reason."""

    ARCHIVED = "in the archive"
    GRANTING = "in the archive, restored if you accept it"
    SECRET = "secrets; use --with-secrets to include them"  # noqa: S105 - a reason
    DERIVED = "rebuilt from the history"
    DOWNLOADED = "downloaded again when needed"
    RUNTIME = "logs, and files of running programs"
    WORK = "working folders and saved states of their files; back them up with your projects"
    COPIES = "earlier copies and backups"
    UNKNOWN = "not a file of Hermes"
    LINK = "a link; back up its target"

    @property
    def is_archived(self) -> bool:
        """Whether every backup contains it."""
        return self in {FileCategory.ARCHIVED, FileCategory.GRANTING}

    @property
    def may_be_archived(self) -> bool:
        """Whether a backup may contain it."""
        return self.is_archived or self is FileCategory.SECRET


class HomeEntry(NamedTuple):
    """Files of HERMES_HOME; a pattern with a slash at its end is a folder with all it contains."""

    pattern: str
    category: FileCategory
    contents: str
    is_shared: bool = False  # in the database, where several machines share one


_ARCHIVED, _GRANTING = FileCategory.ARCHIVED, FileCategory.GRANTING
_RUNTIME, _COPIES = FileCategory.RUNTIME, FileCategory.COPIES

STORE: Final = HomeEntry("state.db", _ARCHIVED, "the history")
# The first entry that matches applies.
HOME_FILES: Final = (
    HomeEntry("*/__pycache__/", FileCategory.DERIVED, "compiled Python code"),
    HomeEntry("*/node_modules/", FileCategory.DOWNLOADED, "JavaScript packages of plugins"),
    STORE,
    HomeEntry("state.db-*", _RUNTIME, "write-ahead log of the history, which is in the copy"),
    HomeEntry("spool/", _ARCHIVED, "journal: messages that are not in the database yet"),
    HomeEntry("config.yaml", _GRANTING, "settings"),
    HomeEntry("gateway.json", _GRANTING, "settings of the gateway, of hermes-agent"),
    HomeEntry(".env", FileCategory.SECRET, "API keys and other credentials"),
    HomeEntry("dashboard-password", FileCategory.SECRET, "hash of the dashboard's password"),
    HomeEntry("media/sent/", FileCategory.DERIVED, "names of sent files"),
    HomeEntry("media/", _ARCHIVED, "images and files of messages", is_shared=True),
    HomeEntry("uploads/", _ARCHIVED, "files that were added on the dashboard"),
    HomeEntry("memories/", _ARCHIVED, "the agent's memory", is_shared=True),
    HomeEntry("prompt_history", _ARCHIVED, "input history of `hermes chat`"),
    HomeEntry("cron/", _ARCHIVED, "scheduled jobs of hermes-agent"),
    HomeEntry("sessions/", _ARCHIVED, "routes and saved sessions of hermes-agent"),
    HomeEntry("approvals.json", _GRANTING, "rules of `hermes permissions`", is_shared=True),
    HomeEntry("trusted_folders.json", _GRANTING, "trusted project files"),
    HomeEntry("AGENTS.md", _GRANTING, "your instructions for the agent"),
    HomeEntry("commands/", _GRANTING, "your commands"),
    HomeEntry("skills/", _GRANTING, "your skills"),
    HomeEntry("pairing/", _GRANTING, "approved users, of hermes-agent"),
    HomeEntry("platforms/", _GRANTING, "approved users, of hermes-agent"),
    HomeEntry("plugin-data/", _ARCHIVED, "data of plugins"),
    HomeEntry(
        "plugins/hermes-achievements/state.json", _ARCHIVED, "earned achievements", is_shared=True
    ),
    HomeEntry(
        "plugins/hermes-achievements/scan_snapshot.json", FileCategory.DERIVED, "achievements"
    ),
    HomeEntry("plugins/.libraries/", FileCategory.DOWNLOADED, "libraries of plugins"),
    HomeEntry("plugins/", _GRANTING, "your plugins, and where they were installed from"),
    HomeEntry("search.db*", FileCategory.DERIVED, "search index"),
    HomeEntry("statistics.db*", FileCategory.DERIVED, "statistics"),
    HomeEntry("hook_transcripts/", FileCategory.DERIVED, "conversations as shell hooks read them"),
    HomeEntry("handoffs/", FileCategory.DERIVED, "conversations handed to other agents"),
    HomeEntry("cache/", FileCategory.DOWNLOADED, "lists of models, rules of servers"),
    HomeEntry("libraries/", FileCategory.DOWNLOADED, "libraries of optional features"),
    HomeEntry("models/", FileCategory.DOWNLOADED, "the built-in model"),
    HomeEntry("workspaces/", FileCategory.WORK, "working folders of chats and the dashboard"),
    HomeEntry("checkpoints/", FileCategory.WORK, "saved states of files, for `/undo`"),
    HomeEntry("backups/", _COPIES, "backups that were written on the dashboard"),
    HomeEntry("before-restore-*/", _COPIES, "files that a restore has replaced"),
    HomeEntry("*.from-backup", _COPIES, "settings that were not accepted in a restore"),
    HomeEntry("*.from-backup/", _COPIES, "files that were not accepted in a restore"),
    HomeEntry("*.damaged-*", _COPIES, "damaged files that were replaced"),
    HomeEntry("profiles/", _COPIES, "profiles of hermes-agent, each with a history of its own"),
    HomeEntry("dashboard-sessions.json", _RUNTIME, "sign-ins on the dashboard"),
    HomeEntry("gateway.lock", _RUNTIME, "lock of the gateway"),
    HomeEntry("gateway.pid", _RUNTIME, "process of the gateway"),
    HomeEntry("gateway_state.json", _RUNTIME, "state of the gateway"),
    HomeEntry("hook_failures.json", _RUNTIME, "failures of shell hooks"),
    HomeEntry("logs/", _RUNTIME, "logs"),
    HomeEntry("run/", _RUNTIME, "sockets, locks and access tokens of running programs"),
    HomeEntry("sandbox/", _RUNTIME, "temporary files of commands"),
    HomeEntry("*.lock", _RUNTIME, "locks"),
    HomeEntry(".*.tmp", _RUNTIME, "files that are being written"),
    HomeEntry(".hermes-backup-*/", _RUNTIME, "a backup that is being written"),
    HomeEntry(".restore-*/", _RUNTIME, "a backup that is being restored"),
)


@functools.lru_cache(maxsize=1024)
def category_of(name: str) -> FileCategory:
    """The category of a file, or of a folder with a slash at its end, by its path in the home."""
    return next((entry.category for entry in HOME_FILES if _matches(entry, name)), _unknown(name))


def is_shared(name: str) -> bool:
    """Whether a file is in the database if several machines share one."""
    return next((entry.is_shared for entry in HOME_FILES if _matches(entry, name)), False)


def _unknown(name: str) -> FileCategory:
    """A folder of which only a part is known is looked into."""
    is_parent = name.endswith("/") and any(e.pattern.startswith(name) for e in HOME_FILES)
    return FileCategory.ARCHIVED if is_parent else FileCategory.UNKNOWN


def _matches(entry: HomeEntry, name: str) -> bool:
    pattern = entry.pattern
    if pattern.endswith("/"):
        return fnmatchcase(name, f"{pattern}*")
    return pattern.count("/") == name.count("/") and fnmatchcase(name, pattern)


def is_file_name(name: str) -> bool:
    """Whether a text is the path of a file in a home, which does not lead out of it."""
    parts = PurePosixPath(name).parts
    is_plain = bool(parts) and "/".join(parts) == name and "\0" not in name
    return is_plain and not name.startswith("/") and ".." not in parts


def files_in(home: Path, folder: Path | None = None) -> Iterator[tuple[str, FileCategory]]:
    """Every file of a home with its category; a folder that is left out is one item."""
    for path in sorted((folder or home).iterdir()):
        name = path.relative_to(home).as_posix()
        if path.is_symlink() and (folder is not None or path.is_dir()):
            yield name, FileCategory.LINK  # other folders may contain what the agent may not read
        elif not path.is_dir():
            if path.is_file():
                yield name, category_of(name)
        elif category_of(f"{name}/").may_be_archived:
            yield from files_in(home, path)
        else:
            yield f"{name}/", category_of(f"{name}/")


def kept_here(home: Path) -> list[str]:
    """The top level of a home's files that are neither rebuilt nor shared in a database."""
    names = (
        name.partition("/")[0]
        for name, category in files_in(home)
        if category.may_be_archived and not is_shared(name) and name != STORE.pattern
    )
    return list(dict.fromkeys(names))


def left_out(found: list[tuple[str, FileCategory]], *, with_secrets: bool) -> dict[str, list[str]]:
    """What a backup does not contain: the names by reason."""
    names: dict[str, list[str]] = {}
    for name, category in found:
        is_included = category.may_be_archived if with_secrets else category.is_archived
        if not is_included:
            names.setdefault(category.value, []).append(name.removesuffix("/"))
    return names
