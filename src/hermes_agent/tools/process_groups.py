"""Process groups: listing and terminating them, and a watchdog that does so when Hermes dies."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core.system_programs import SYSTEM_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable


log = logging.getLogger(__name__)

SCRIPT = """
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
  esac
done
left=
for group in $groups; do kill -s TERM -- "-$group" && left=yes; kill -s CONT -- "-$group"; done
test -n "$left" || exit 0
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Watchdog:
    """Knows every running group; starts when the first one does."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may come in the middle
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self._is_telling = False
        self._is_closing = False

    def guard(self, group: int) -> None:
        """End this group when our process ends."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """This group is over."""
        with self._lock:
            if group in self._groups:
                self._groups.discard(group)
                if self._process is not None:
                    self._tell(f"- {group}\n")

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return self._process.pid if self._process else None

    def close(self) -> None:
        """Let it end; groups that were not released end with it.

        A signal handler may have interrupted this very thread in the middle of a write to
        the pipe; then the pipe is closed after that write, since its number could else be
        another program's file by then.
        """
        with self._lock:
            if self._is_telling:
                self._is_closing = True
            else:
                self._shut()

    def _shut(self) -> None:
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            log.warning("command watchdog does not exit: process %s", process.pid)

    def _tell(self, line: str) -> None:
        """A short line goes through a pipe whole."""
        self._is_telling = True
        try:
            self._tell_or_replace(line)
        finally:
            self._is_telling = False
            if self._is_closing:
                self._is_closing = False
                self._shut()

    def _tell_or_replace(self, line: str) -> None:
        """A watchdog that died is replaced, and told everything."""
        everything = "".join(f"+ {group}\n" for group in self._groups)
        if self._process is None:
            self._process = self._start()
            line = everything
        try:
            self._write(line)
        except BrokenPipeError:
            log.warning("command watchdog died: starting another")
            self._shut()
            self._process = self._start()
            self._write(everything)

    def _write(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            os.write(self._process.stdin.fileno(), line.encode())

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT, "hermes-watchdog"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": SYSTEM_PATH},  # commands may write a folder of the own one
            start_new_session=True,
        )


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
