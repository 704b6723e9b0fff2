"""JSON files: written atomically; damaged files are kept under another name."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.atomic_files import sync_folder, write_atomically

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from hermes_core.clock import Clock

log = logging.getLogger(__name__)


class JsonRead(NamedTuple):
    """The content of a JSON file, and the new path of a damaged file."""

    value: object
    set_aside: Path | None = None


def write_json(path: Path, value: object) -> None:
    """Write *value* as portable JSON: no NaN, ASCII only."""
    write_atomically(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def read_json(path: Path, default: object, clock: Clock) -> JsonRead:
    """Read *path*; returns *default* if the file is missing.

    A file with invalid JSON is renamed and reported, so that the next write does not
    overwrite it.
    """
    try:
        identity = path.stat()
        data = path.read_bytes()
    except FileNotFoundError:
        return JsonRead(default)
    try:
        return JsonRead(json.loads(data))
    except (ValueError, RecursionError) as error:
        damage = error
    set_aside = _set_aside(path, identity, clock)
    if set_aside is None:
        return read_json(path, default, clock)
    log.warning("%s is damaged (%s); it is kept as %s", path, damage, set_aside.name)
    return JsonRead(default, set_aside)


def _set_aside(path: Path, identity: os.stat_result, clock: Clock) -> Path | None:
    """Rename the damaged file; None when another process has already replaced it."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.now()))
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    try:
        current = path.stat()
        if (current.st_ino, current.st_mtime_ns) != (identity.st_ino, identity.st_mtime_ns):
            return None
        path.rename(aside)
    except FileNotFoundError:
        return None
    sync_folder(path.parent)
    return aside
