"""The record of a checkpoint: the message of its commit, as JSON."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_agent.sandbox.policy import CREDENTIALS
from hermes_core.json_values import list_in, number_in, object_in, text_in

if TYPE_CHECKING:
    from hermes_core.config.file import Settings
    from hermes_core.json_values import JsonObject

MEGABYTE: Final = 1_000_000
DAY_SECONDS: Final = 86_400
# In the notation of .gitignore; a folder's own .gitignore can include them again with `!`.
DEFAULT_EXCLUDES: Final = (
    "node_modules/", "bower_components/", ".venv/", "venv/", "__pycache__/", "*.pyc", ".tox/",
    ".nox/", ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".hypothesis/", ".eggs/",
    "*.egg-info/", ".ipynb_checkpoints/", "build/", "dist/", "target/", ".gradle/", ".next/",
    ".nuxt/", ".svelte-kit/", ".turbo/", ".parcel-cache/", ".cache/", ".terraform/", ".hg/",
    ".svn/", ".jj/", "*.o", "*.so", "*.dylib", "*.class", ".DS_Store", "Thumbs.db", "*.swp",
)  # fmt: skip
SECRET_NAMES: Final = frozenset(
    {
        *(name for name in CREDENTIALS if "/" not in name),  # those of a home folder
        ".npmrc", ".envrc", ".htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
        "credentials.json", "service-account.json", "secrets.yaml", "secrets.yml", "secrets.json",
    }
    - {".docker"}  # in a project it holds files for builds
)  # fmt: skip
SECRET_SUFFIXES: Final = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ovpn")
ENV_FILE: Final = re.compile(r"(.*\.)?env(\..+)?", re.IGNORECASE)
ENV_EXAMPLE: Final = re.compile(
    r".*\.(example|sample|template|dist|defaults?|schema|d\.ts|ts|js|py|rs|go|rb|md)", re.IGNORECASE
)


class CheckpointLimits(NamedTuple):
    """The limits; sizes in bytes."""

    is_enabled: bool = True
    max_files: int = 20_000
    max_folder_bytes: int = 500 * MEGABYTE
    max_file_bytes: int = 5 * MEGABYTE
    keep_seconds: float = 14 * DAY_SECONDS
    max_store_bytes: int = 2_000 * MEGABYTE
    min_free_bytes: int = 1_000 * MEGABYTE
    excludes: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> CheckpointLimits:
        """The limits that are configured."""
        return cls(
            settings.get_bool("checkpoints.enabled"),
            settings.get_int("checkpoints.max_files"),
            settings.get_int("checkpoints.max_folder_mb") * MEGABYTE,
            settings.get_int("checkpoints.max_file_mb") * MEGABYTE,
            settings.get_int("checkpoints.keep_days") * DAY_SECONDS,
            settings.get_int("checkpoints.max_mb") * MEGABYTE,
            settings.get_int("checkpoints.min_free_mb") * MEGABYTE,
            tuple(settings.get_list("checkpoints.exclude")),
        )


@lru_cache(maxsize=20_000)  # the files of a folder are the same in each snapshot
def is_secret_name(path: bytes) -> bool:
    """Whether a file is named like one that holds credentials; such files are not copied."""
    parts = os.fsdecode(path).split("/")
    name = parts[-1]
    if any(part in SECRET_NAMES for part in parts) or name.lower().endswith(SECRET_SUFFIXES):
        return True
    if ENV_FILE.fullmatch(name) is None or ENV_EXAMPLE.fullmatch(name):
        return False
    return name.lower().startswith((".env", "env.")) or name.lower().endswith(".env")


def refusal_of_folder(folder: Path, home: Path) -> str:
    """Why no checkpoints of a folder are kept, whatever it holds; empty if they are."""
    real_home = Path(os.path.realpath(home))
    if folder == Path(folder.anchor) or real_home.is_relative_to(folder):
        place = "the home folder" if folder == real_home else f"{folder}"
        return (
            f"No checkpoints of {place} are kept: it contains more than one project. "
            "Only files that the agent edits itself can be restored. Start Hermes in a project "
            "folder to be able to undo all file changes."
        )
    return ""


VERSION: Final = 1
TURN: Final = "turn"
RESTORE: Final = "restore"
Kind = Literal["turn", "restore"]


class ModeChange(NamedTuple):
    """The permissions of a file before and after; None where it did not exist."""

    before: int | None
    after: int | None


class Checkpoint(NamedTuple):
    """The state of a folder before a turn, and after it.

    `after` is empty while the turn runs. After a crash, the next look at the folder stands for
    it, and `is_interrupted` is set.
    """

    number: int
    kind: Kind
    folder: str
    session_id: str
    message_id: int  # of the prompt; 0 if unknown
    started_at: float
    before: str  # a tree
    after: str = ""
    ended_at: float = 0.0
    files: int = 0  # that differ
    is_interrupted: bool = False
    is_shared: bool = False  # another turn ran in the folder at the same time
    restored: tuple[int, ...] = ()  # the checkpoints that a restore undid
    modes: tuple[tuple[bytes, ModeChange], ...] = ()
    paths: tuple[bytes, ...] = ()  # in the store of single files: those that it is about
    lost: tuple[tuple[bytes, str], ...] = ()  # edited files of which no copy is kept, and why

    @property
    def is_open(self) -> bool:
        """Whether its end is not recorded."""
        return not self.after

    def encoded(self) -> bytes:
        """The record as one line of ASCII."""
        fields = self._asdict()
        fields["modes"] = {os.fsdecode(path): list(change) for path, change in self.modes}
        fields["paths"] = [os.fsdecode(path) for path in self.paths]
        fields["lost"] = {os.fsdecode(path): reason for path, reason in self.lost}
        return json.dumps({"version": VERSION, **fields}).encode()

    @classmethod
    def parse(cls, line: bytes) -> Checkpoint | None:
        """The record in a line; None for one of another layout."""
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("version") != VERSION:
            return None
        return cls(
            number=number_in(fields, "number"),
            kind=RESTORE if fields.get("kind") == RESTORE else TURN,
            folder=text_in(fields, "folder"),
            session_id=text_in(fields, "session_id"),
            message_id=number_in(fields, "message_id"),
            started_at=_time(fields, "started_at"),
            before=text_in(fields, "before"),
            after=text_in(fields, "after"),
            ended_at=_time(fields, "ended_at"),
            files=number_in(fields, "files"),
            is_interrupted=fields.get("is_interrupted") is True,
            is_shared=fields.get("is_shared") is True,
            restored=tuple(item for item in list_in(fields, "restored") if isinstance(item, int)),
            modes=tuple(_modes(fields)),
            paths=tuple(os.fsencode(str(path)) for path in list_in(fields, "paths")),
            lost=tuple(
                (os.fsencode(path), str(reason))
                for path, reason in object_in(fields, "lost").items()
            ),
        )


def _time(fields: JsonObject, name: str) -> float:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _modes(fields: JsonObject) -> list[tuple[bytes, ModeChange]]:
    found = []
    for path, change in object_in(fields, "modes").items():
        if isinstance(change, list) and len(change) == 2:
            before, after = (mode if isinstance(mode, int) else None for mode in change)
            found.append((os.fsencode(path), ModeChange(before, after)))
    return found
