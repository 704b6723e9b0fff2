"""Where the daemon of a Hermes folder listens, and the word that lets one in."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import instance_lock, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


LOCK: Final = "serve.lock"


class Whereabouts(NamedTuple):
    """A daemon that runs."""

    url: str
    token: str
    pid: int
    version: str


def folder(home: Path | None = None) -> Path:
    """What belongs to processes that run."""
    return paths.private_folder((home or paths.hermes_home()) / "run")


def is_held(home: Path) -> bool:
    """Whether a daemon of *home* lives, be it that it has not said yet where it listens."""
    return instance_lock.is_held(home / "run" / LOCK)


def found(home: Path | None = None) -> Whereabouts | None:
    """The daemon of this folder, if one runs; one that died does not count."""
    if not instance_lock.is_held(folder(home) / LOCK):
        return None
    try:
        facts = json.loads((folder(home) / "serve.json").read_text(encoding="utf-8"))
        return Whereabouts(facts["url"], facts["token"], int(facts["pid"]), facts["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is about to say where it listens


def publish(place: Whereabouts) -> None:
    """Let others find it: those who may read the folder."""
    write_atomically(folder() / "serve.json", json.dumps(place._asdict()))


@contextlib.contextmanager
def held() -> Iterator[bool]:
    """Be the daemon of this folder; False when another one is. Ends with the process, too."""
    with instance_lock.held(folder() / LOCK) as is_ours:
        if is_ours:
            (folder() / "serve.json").unlink(missing_ok=True)  # of one that was killed
        yield is_ours
        if is_ours:
            (folder() / "serve.json").unlink(missing_ok=True)
