"""Where the daemon of a Hermes folder listens, and the word that lets one in."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRIES: Final = 20
PAUSE_SECONDS: Final = 0.05


class Whereabouts(NamedTuple):
    """A daemon that runs."""

    url: str
    token: str
    pid: int
    version: str


def folder() -> Path:
    """What belongs to processes that run."""
    return paths.private_folder(paths.hermes_home() / "run")


def found() -> Whereabouts | None:
    """The daemon of this folder, if one runs; one that died does not count."""
    if not _is_held():
        return None
    try:
        facts = json.loads((folder() / "serve.json").read_text(encoding="utf-8"))
        return Whereabouts(facts["url"], facts["token"], int(facts["pid"]), facts["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is about to say where it listens


def publish(place: Whereabouts) -> None:
    """Let others find it: those who may read the folder."""
    write_atomically(folder() / "serve.json", json.dumps(place._asdict()))


@contextlib.contextmanager
def held() -> Iterator[bool]:
    """Be the daemon of this folder; False when another one is. Ends with the process, too."""
    handle = os.open(folder() / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        is_ours = _locked_soon(handle)
        if is_ours:
            (folder() / "serve.json").unlink(missing_ok=True)  # of one that was killed
        yield is_ours
        if is_ours:
            (folder() / "serve.json").unlink(missing_ok=True)
    finally:
        os.close(handle)


def _locked_soon(handle: int) -> bool:
    """Take the lock, past those who only look whether anybody has it; they share it."""
    for _ in range(TRIES):
        if _lock(handle, fcntl.LOCK_EX):
            return True
        if not _lock(handle, fcntl.LOCK_SH):
            return False  # another daemon
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(PAUSE_SECONDS)
    return False


def _is_held() -> bool:
    """Whether a living process has the lock."""
    try:
        handle = os.open(folder() / "serve.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
