"""Which process is which, and whether it still lives.

A process is known by host, boot, process-id namespace, process id and birth: together
they are never used twice, so a recycled process id is not mistaken for its predecessor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.transaction import Reader, Tx

SILENT_AFTER_SECONDS: Final = 120.0

REGISTER = """
    INSERT INTO hermes_process
        (process_id, host, boot_id, namespace, pid, birth, seen_at, seen_monotonic)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (process_id) DO UPDATE
        SET seen_at = excluded.seen_at, seen_monotonic = excluded.seen_monotonic
"""
EVERYBODY = """
    SELECT process_id, host, boot_id, namespace, pid, birth, seen_at, seen_monotonic
    FROM hermes_process
"""
FORGET = "DELETE FROM hermes_process WHERE process_id = ?"


class ProcessIdentity(NamedTuple):
    """One process, told apart from every other."""

    process_id: str
    host: str
    boot_id: str
    namespace: str
    pid: int
    birth: str

    @classmethod
    def of_this_process(cls) -> ProcessIdentity:
        """Who we are."""
        return cls(
            process_id=os.urandom(8).hex(),
            host=os.uname().nodename,
            boot_id=_boot_id(),
            namespace=_namespace(),
            pid=os.getpid(),
            birth=birth_of(os.getpid()) or "",
        )

    def shares_machine(self, other: ProcessIdentity) -> bool:
        """Whether one of the two could look the other up."""
        return (self.host, self.boot_id, self.namespace) == (
            other.host,
            other.boot_id,
            other.namespace,
        )


def birth_of(pid: int) -> str | None:
    """When a process started, as the system counts; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return _birth_without_proc(pid)
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _birth_without_proc(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""


def _boot_id() -> str:
    place = Path("/proc/sys/kernel/random/boot_id")
    return place.read_text(encoding="ascii").strip() if place.exists() else "unknown"


def _namespace() -> str:
    place = Path("/proc/self/ns/pid")
    return str(place.readlink()) if place.exists() else "unknown"


def register(tx: Tx, identity: ProcessIdentity) -> None:
    """Say that we are here."""
    tx.execute(
        REGISTER,
        (
            identity.process_id,
            identity.host,
            identity.boot_id,
            identity.namespace,
            identity.pid,
            identity.birth,
            tx.clock.now(),
            tx.clock.monotonic(),
        ),
    )


def forget(tx: Tx, process_id: str) -> None:
    """A process is gone."""
    tx.execute(FORGET, (process_id,))


def dead_processes(reader: Reader, us: ProcessIdentity, clock: Clock) -> list[str]:
    """The registered processes that no longer live."""
    dead = []
    for *identity, seen_at, seen_monotonic in reader.rows(EVERYBODY):
        process = ProcessIdentity(*identity)
        if process.process_id == us.process_id:
            continue
        if not _is_alive(process, us, seen_at, seen_monotonic, clock):
            dead.append(process.process_id)
    return dead


def _is_alive(
    process: ProcessIdentity,
    us: ProcessIdentity,
    seen_at: float,
    seen_monotonic: float,
    clock: Clock,
) -> bool:
    if process.shares_machine(us):
        if process.pid == us.pid:  # what this very process was before it began anew
            return False
        birth = birth_of(process.pid)
        return birth is not None and birth == process.birth
    if (process.host, process.boot_id) == (us.host, us.boot_id):
        # Another container of this boot: its clock is ours, its process ids are not.
        return clock.monotonic() - seen_monotonic < SILENT_AFTER_SECONDS
    if process.host == us.host and process.boot_id != us.boot_id:
        return False  # this machine has been started anew since
    return abs(clock.now() - seen_at) < SILENT_AFTER_SECONDS


OWN = """
    INSERT INTO hermes_owner (session_id, process_id, since) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET process_id = excluded.process_id, since = excluded.since
"""
DISOWN = "DELETE FROM hermes_owner WHERE session_id = ?"
OF_PROCESS = "SELECT session_id FROM hermes_owner WHERE process_id = ?"
OPEN_WITHOUT_OWNER = """
    SELECT s.id FROM sessions s WHERE s.ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM hermes_owner o WHERE o.session_id = s.id)
"""
CRASHED: Final = "crashed"


def own(tx: Tx, session_id: str, process_id: str) -> None:
    """A session belongs to a process from now on."""
    tx.execute(OWN, (session_id, process_id, tx.clock.now()))


def disown(tx: Tx, session_id: str) -> None:
    """A session belongs to nobody."""
    tx.execute(DISOWN, (session_id,))


def owned_by(reader: Reader, process_id: str) -> list[str]:
    """The sessions of a process."""
    return [row[0] for row in reader.rows(OF_PROCESS, (process_id,))]


def open_without_owner(reader: Reader) -> list[str]:
    """Open sessions that nobody carries: left by another program, or released."""
    return [row[0] for row in reader.rows(OPEN_WITHOUT_OWNER)]
