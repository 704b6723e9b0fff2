"""A backup of the store while others write: one consistent copy, checked, packed, checked again.

The copy is made by SQLite itself (VACUUM INTO), in one reading transaction; it holds no
remains of what was deleted. The search file is left out: it is made anew from the rest.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_core import paths
from hermes_core.errors import StoreError, UsageError
from hermes_state.engine import driver
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import explain
from hermes_state.engine.reader_pool import read_only_uri
from hermes_state.portable.archive import (
    SECRETS,
    SETTINGS,
    SPOOL,
    STORE,
    UNLOCKS,
    Manifest,
    remove_abandoned,
    write_archive,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine

    Progress = Callable[[str], object]

PREFIX: Final = ".hermes-backup-"
STEPS_BETWEEN_REPORTS: Final = 2_000_000
LAYOUT = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'layout'"


def make(
    engine: Engine, path: Path, *, with_secrets: bool, progress: Progress | None = None
) -> Manifest:
    """Write a backup to *path*; what it contains."""
    tell = progress or (lambda _text: None)
    if path.exists():
        raise UsageError(f"{path} exists already; a backup overwrites nothing. Choose a new name.")
    home = engine.path.parent
    try:
        remove_abandoned(path.parent, PREFIX)
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=path.parent) as folder:
            work = Path(folder)
            copy = work / STORE
            _copy(engine, copy, tell)
            tell("checking the copy …")
            manifest = inspect(copy)
            manifest.created_at = engine.clock.now()
            manifest.with_secrets = with_secrets and (home / SECRETS).exists()
            files = {STORE: copy} | _others(home, work, engine.path, with_secrets=with_secrets)
            tell("packing …")
            write_archive(path, files, manifest)
    except OSError as error:
        raise StoreError(f"the backup {path} cannot be written: {error}.") from error
    manifest.path = str(path)
    return manifest


def _copy(engine: Engine, copy: Path, tell: Progress) -> None:
    """One consistent copy, readable by the owner alone."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, paths.FILE_MODE))
    whole = max(engine.path.stat().st_size, 1)

    def report() -> int:
        tell(f"copying … {min(99, 100 * copy.stat().st_size // whole)} %")
        return 0

    uri = read_only_uri(engine.path)
    try:
        with contextlib.closing(driver.connect(uri, engine.busy_seconds, uri=True)) as connection:
            connection.set_progress_handler(report, STEPS_BETWEEN_REPORTS)
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        raise explain(error, engine.path) from error


def inspect(copy: Path) -> Manifest:
    """Check a copy of a store that nobody has open; what is in it."""
    try:
        with contextlib.closing(driver.connect(str(copy), 10)) as connection:
            warnings = _problems(connection)
            return Manifest(
                created_at=0.0,
                schema_version=_value(connection, "SELECT max(version) FROM schema_version"),
                layout=_value(connection, LAYOUT) if _has_own_tables(connection) else None,
                sessions=_value(connection, "SELECT count(*) FROM sessions"),
                messages=_value(connection, "SELECT count(*) FROM messages"),
                warnings=warnings,
            )
    except sqlite3.Error as error:
        raise explain(error, copy) from error


def _problems(connection: sqlite3.Connection) -> list[str]:
    """Damage to another program's search index is worth a remark; any other is an error."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    bad = [text for text in found if text != "ok" and "FTS5 table" not in text]
    if bad:
        raise StoreError(f"the history is damaged: {'; '.join(bad)}. Run `hermes doctor`.")
    return [text for text in found if text != "ok"]


def _has_own_tables(connection: sqlite3.Connection) -> bool:
    return bool(_value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'hermes_layout'"))


def _value(connection: sqlite3.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


def _others(home: Path, work: Path, store: Path, *, with_secrets: bool) -> dict[str, Path]:
    """Settings, unlocks and what waits in the journal, copied aside so that they hold still."""
    wanted = {name: home / name for name in (SETTINGS, UNLOCKS)}
    if with_secrets:
        wanted[SECRETS] = home / SECRETS
    for spool in sorted((home / "spool").glob(f"{store.name}-*.jsonl")):
        wanted[SPOOL + spool.name] = spool
    found = {}
    for number, (name, source) in enumerate(wanted.items()):
        with contextlib.suppress(FileNotFoundError):
            found[name] = Path(shutil.copyfile(source, work / f"other-{number}"))
    # Files that came with messages never change: they need not be copied aside.
    return found | {
        one.relative_to(home).as_posix(): one for one in sorted((home / "media").glob("*/*"))
    }
