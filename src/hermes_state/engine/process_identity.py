"""Identity of processes, whether they are alive, and which sessions they own.

A process is identified by host, boot, PID namespace, PID and start time. Together they
are never reused, so a recycled PID is not mistaken for its predecessor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.transaction import Reader, Tx


REGISTER = """
    INSERT INTO hermes_process
        (process_id, host, boot_id, namespace, pid, birth, seen_at, seen_monotonic)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (process_id) DO UPDATE
        SET seen_at = excluded.seen_at, seen_monotonic = excluded.seen_monotonic
"""
SEEN_AT = "SELECT seen_at FROM hermes_process WHERE process_id = ?"
SELECT_PROCESSES = """
    SELECT process_id, host, boot_id, namespace, pid, birth, seen_at, seen_monotonic
    FROM hermes_process
"""
DELETE_PROCESS = "DELETE FROM hermes_process WHERE process_id = ?"


class ProcessIdentity(NamedTuple):
    """A process, distinguishable from all others."""

    process_id: str
    host: str
    boot_id: str
    namespace: str
    pid: int
    birth: str

    @classmethod
    def of_this_process(cls) -> ProcessIdentity:
        """The identity of the current process."""
        return cls(
            process_id=os.urandom(8).hex(),
            host=node_name(),
            boot_id=_boot_id(),
            namespace=_namespace(),
            pid=os.getpid(),
            birth=start_time_of(os.getpid()) or "",
        )

    def shares_pid_namespace(self, other: ProcessIdentity) -> bool:
        """Whether each of the two processes can see the PID of the other."""
        return (self.host, self.boot_id, self.namespace) == (
            other.host,
            other.boot_id,
            other.namespace,
        )


def node_name() -> str:
    """The name of this machine among those that share a history."""
    return os.environ.get("HERMES_NODE_NAME") or os.uname().nodename


def start_time_of(pid: int) -> str | None:
    """Start time of a process in the system's units; None if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return _start_time_without_proc(pid)
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


def _start_time_without_proc(pid: int) -> str | None:
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
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text("utf-8").strip() if path.exists() else "unknown"


def _namespace() -> str:
    path = Path("/proc/self/ns/pid")
    return str(path.readlink()) if path.exists() else "unknown"


def register(tx: Tx, identity: ProcessIdentity) -> None:
    """Register a process, unless its heartbeat has done so lately.

    Concurrent transactions that wrote the same row would wait for each other.
    """
    seen_at = tx.value(SEEN_AT, (identity.process_id,))
    seconds = tx.columns.process_timeout_seconds / 2
    if seen_at is None or not 0 <= tx.clock.now() - seen_at < seconds:
        refresh(tx, identity)


def refresh(tx: Tx, identity: ProcessIdentity) -> None:
    """Note that a process is alive."""
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


def unregister(tx: Tx, process_id: str) -> None:
    """Delete the registration of a process."""
    tx.execute(DELETE_PROCESS, (process_id,))


class LastHeartbeat(NamedTuple):
    """When a process was seen last, and how long that counts."""

    at: float
    monotonic: float
    timeout_seconds: float


def dead_processes(reader: Reader, current: ProcessIdentity, clock: Clock) -> list[str]:
    """Registered processes that are no longer running."""
    dead = []
    for *identity, seen_at, seen_monotonic in reader.rows(SELECT_PROCESSES):
        process = ProcessIdentity(*identity)
        if process.process_id == current.process_id:
            continue
        seen = LastHeartbeat(seen_at, seen_monotonic, reader.columns.process_timeout_seconds)
        if not _is_alive(process, current, seen, clock):
            dead.append(process.process_id)
    return dead


def _is_alive(
    process: ProcessIdentity, current: ProcessIdentity, seen: LastHeartbeat, clock: Clock
) -> bool:
    if process.shares_pid_namespace(current):
        if process.pid == current.pid:  # an earlier program of this PID, replaced by exec
            return False
        birth = start_time_of(process.pid)
        return birth is not None and birth == process.birth
    if (process.host, process.boot_id) == (current.host, current.boot_id):
        # Another container of the same boot: it shares the clock, but not the PIDs.
        return clock.monotonic() - seen.monotonic < seen.timeout_seconds
    if process.host == current.host and process.boot_id != current.boot_id:
        return False  # the machine was rebooted since
    return abs(clock.now() - seen.at) < seen.timeout_seconds


JOIN = """
    INSERT INTO hermes_participant (session_id, process_id, since) VALUES (?, ?, ?)
    ON CONFLICT DO NOTHING
"""
LEAVE = "DELETE FROM hermes_participant WHERE session_id = ? AND process_id = ?"
CLEAR_PARTICIPANTS = "DELETE FROM hermes_participant WHERE session_id = ?"
JOINED_SESSIONS = "SELECT session_id FROM hermes_participant WHERE process_id = ?"
PARTICIPANTS = "SELECT process_id FROM hermes_participant WHERE session_id = ?"
OPEN_WITHOUT_PARTICIPANT = """
    SELECT s.id FROM sessions s WHERE s.ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM hermes_participant p WHERE p.session_id = s.id)
"""
CRASHED: Final = "crashed"


def join(tx: Tx, session_id: str, process_id: str) -> None:
    """Make a process a participant of a session: it has the session open and wrote to it."""
    tx.execute(JOIN, (session_id, process_id, tx.clock.now()))


def leave(tx: Tx, session_id: str, process_id: str) -> bool:
    """Remove a process from the participants of a session; whether it was one."""
    return tx.execute(LEAVE, (session_id, process_id)).rowcount > 0


def clear_participants(tx: Tx, session_id: str) -> None:
    """Remove all participants of a session."""
    tx.execute(CLEAR_PARTICIPANTS, (session_id,))


def joined_by(reader: Reader, process_id: str) -> list[str]:
    """Sessions in which a process participates."""
    return [row[0] for row in reader.rows(JOINED_SESSIONS, (process_id,))]


def participants(
    reader: Reader, session_id: str, current: ProcessIdentity, clock: Clock
) -> set[str]:
    """The running processes that participate in a session."""
    found = {str(row[0]) for row in reader.rows(PARTICIPANTS, (session_id,))}
    if found <= {current.process_id}:
        return found
    return found - set(dead_processes(reader, current, clock))


def open_without_participant(reader: Reader) -> list[str]:
    """Open sessions without a participant: left by another program, or released."""
    return [row[0] for row in reader.rows(OPEN_WITHOUT_PARTICIPANT)]
