"""Time zones by name, and the zone of this machine.

The current UTC offset would be wrong after a clock change, so the machine's zone is
determined as a zone.
"""

from __future__ import annotations

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes_core.errors import ConfigError


def find_zone(name: str) -> ZoneInfo:
    """The zone called *name*; the machine's zone if *name* is empty."""
    if not name:
        return system_zone()
    zone = _zone_or_none(name)
    if zone is None:
        raise ConfigError(
            f"Unknown time zone {name!r}. Use a name such as Europe/Berlin or UTC, "
            "or leave display.timezone empty for the system's."
        )
    return zone


def system_zone(localtime: Path = Path("/etc/localtime")) -> ZoneInfo:
    """The zone of TZ, otherwise of /etc/localtime; UTC if neither is readable."""
    chosen = os.environ.get("TZ", "").removeprefix(":")
    zone = _zone_or_none(chosen) if chosen else _zone_of_file(localtime)
    return zone or ZoneInfo("UTC")


def _zone_of_file(path: Path) -> ZoneInfo | None:
    _, separator, name = str(path.resolve()).partition("/zoneinfo/")
    zone = _zone_or_none(name) if separator else None
    if zone is not None:
        return zone
    try:
        with path.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError):
        return None


def _zone_or_none(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
