"""Process groups: who is in one, and ending all of it.

Every command runs as the leader of a session of its own, so its group has its process id
and holds whatever it starts, unless that makes a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

POLL_SECONDS = 0.02
PROC = Path("/proc")


def is_alive(group: int) -> bool:
    """Whether a process is left in the group; zombies do not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not (PROC / "self" / "stat").exists():
        return True
    return any(_is_living_member(folder.name, group) for folder in PROC.iterdir())


def _is_living_member(name: str, group: int) -> bool:
    """The session is compared, too: a number may be reused by another group."""
    if not name.isdigit():
        return False
    try:
        stat = (PROC / name / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    state, _parent, its_group, session = stat.rpartition(b")")[2].split()[:4]
    return int(its_group) == group == int(session) and state not in b"ZX"


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to all processes of the group; an empty one is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end(groups: Iterable[int], grace_seconds: float) -> None:
    """Ask every group to end, and end those by force that are left after a while."""
    left = [group for group in groups if is_alive(group)]
    for group in left:
        send(group, signal.SIGTERM)
        send(group, signal.SIGCONT)  # a stopped process handles no other signal
    deadline = time.monotonic() + grace_seconds
    while (left := [group for group in left if is_alive(group)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for group in left:
        send(group, signal.SIGKILL)
