"""Where the dashboard of a Hermes folder is, and the word that lets programs in."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import instance_lock
from hermes_core.atomic_files import write_atomically
from hermes_core.paths import private_folder
from hermes_dashboard.auth.access import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK: Final = "dashboard.lock"


class Place(NamedTuple):
    """A dashboard that runs."""

    url: str
    token: str
    pid: int
    version: str
    certificate: str = ""


def found(home: Path) -> Place | None:
    """The dashboard of this folder, if one runs; one that died does not count."""
    if not is_held(home):
        return None
    try:
        facts = json.loads((home / "run" / PLACE).read_text(encoding="utf-8"))
        return Place(
            facts["url"], facts["token"], int(facts["pid"]), facts["version"], facts["certificate"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is about to say where it is


def is_held(home: Path) -> bool:
    """Whether a living process is the dashboard of this folder."""
    return instance_lock.is_held(home / "run" / LOCK)


def publish(home: Path, place: Place) -> None:
    """Let others find it: those who may read the folder."""
    write_atomically(home / "run" / PLACE, json.dumps(place._asdict()))


@contextlib.contextmanager
def held(home: Path) -> Iterator[bool]:
    """Be the dashboard of this folder; False when another process is."""
    run = private_folder(home / "run")
    with instance_lock.held(run / LOCK) as is_ours:
        if is_ours:
            (run / PLACE).unlink(missing_ok=True)  # of one that was killed
        yield is_ours
        if is_ours:
            (run / PLACE).unlink(missing_ok=True)
