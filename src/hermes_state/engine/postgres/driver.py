"""The client library of PostgreSQL, which is installed when a history needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hermes_core.errors import StoreUnavailableError
from hermes_core.package_installer import Library

DRIVER: Final = Library(
    "postgres",
    "PostgreSQL",
    "psycopg",
    Path(__file__).with_name("requirements.lock"),
    download_mb=6,
    disk_mb=21,
)


def require_driver() -> None:
    """Raise an error with the next step if the library is missing."""
    if not DRIVER.is_usable():
        raise StoreUnavailableError(
            "the history is in PostgreSQL (store.url), and its client library is not installed. "
            "Run `hermes store check` to install it (6 MB)."
        )
