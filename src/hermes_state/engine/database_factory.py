"""Opens a database by its URL or path, regardless of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.errors import UsageError
from hermes_state.engine.sqlite.database import SqliteDatabase
from hermes_state.store_settings import StoreSettings, store_password

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.database import Database


def is_url(place: str) -> bool:
    """Whether a place is a PostgreSQL database: a URL, or `service=NAME` and the like."""
    return place.startswith(("postgresql://", "postgres://")) or "=" in place.partition("/")[0]


def open_database(
    place: str, *, read_only: bool, may_be_empty: bool = False, may_be_unfinished: bool = False
) -> Database:
    """Open a database; with *may_be_empty*, one without a history can be read.

    With *may_be_unfinished*, a copy into it can be continued.
    """
    clock, settings = SystemClock(), StoreSettings.of_home()
    if not is_url(place):
        path = Path(place).expanduser().absolute()
        if not place or path.is_dir():
            raise UsageError(
                f"{place or 'An empty text'} is not a file. Name a new file, or a URL."
            )
        if "://" in place:
            raise UsageError(f"{place} is not a PostgreSQL URL: postgresql://USER@HOST/DATABASE")
        return SqliteDatabase(
            path,
            read_only=read_only,
            clock=clock,
            settings=settings,
            may_be_unfinished=may_be_unfinished,
        )
    return open_postgres(
        place,
        paths.state_db_path(),
        read_only=read_only,
        clock=clock,
        settings=settings,
        may_be_empty=may_be_empty,
        may_be_unfinished=may_be_unfinished,
    )


def open_postgres(
    url: str,
    path: Path,
    *,
    read_only: bool,
    clock: Clock,
    settings: StoreSettings,
    may_be_empty: bool = False,
    may_be_unfinished: bool = False,
) -> Database:
    """Open a PostgreSQL database; its journals and derived files are beside *path*."""
    from hermes_state.engine.postgres.driver import require_driver  # noqa: PLC0415 - an extra

    require_driver()
    from hermes_state.engine.postgres.connection import with_password  # noqa: PLC0415 - an extra
    from hermes_state.engine.postgres.database import PostgresDatabase  # noqa: PLC0415 - an extra

    return PostgresDatabase(
        with_password(url, store_password()),
        path,
        read_only=read_only,
        clock=clock,
        settings=settings,
        may_be_empty=may_be_empty,
        may_be_unfinished=may_be_unfinished,
    )
