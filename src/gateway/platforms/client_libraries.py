"""The client libraries of platforms: fetched when a platform is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.errors import UsageError
from hermes_core.optional_libraries import Library

if TYPE_CHECKING:
    from gateway.platforms.registry import Entry
    from hermes_core.package_installer import Progress

LOCKS: Final = Path(__file__).with_name("libraries")
SIZES: Final = {"telegram": (9, 36), "matrix": (9, 39), "discord": (6, 23), "slack": (5, 19)}  # MB


def library(entry: Entry) -> Library | None:
    """What a platform needs; None when it needs nothing, or a plugin sees to it."""
    if not entry.needs or entry.name not in SIZES:
        return None
    lock = LOCKS / f"{entry.name}.lock"
    return Library(entry.name, entry.label, entry.needs, lock, *SIZES[entry.name])


def is_usable(entry: Entry) -> bool:
    """Whether a platform's library can be imported."""
    found = library(entry)
    return found is None or found.is_usable()


def fetch(entry: Entry, progress: Progress) -> bool:
    """Have a platform's library in place; whether anything had to be fetched."""
    found = library(entry)
    if found is None:
        raise UsageError(f"{entry.label} needs no library")
    return found.fetch(progress)
