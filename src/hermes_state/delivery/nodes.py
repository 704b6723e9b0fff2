"""The processes that use a history, on this and other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine import process_identity
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

GATEWAY_LEASE: Final = "hermes:gateway"
SELECT_NODES: Final = """
    SELECT p.process_id, p.host, p.pid, p.seen_at,
           (SELECT count(*) FROM hermes_lease l
            WHERE l.process_id = p.process_id AND l.session_id <> 'hermes:gateway'),
           (SELECT count(*) FROM hermes_inbox i
            WHERE i.state = 'claimed' AND i.state IN ('waiting', 'claimed')
                AND i.process_id = p.process_id),
           (SELECT count(*) FROM hermes_lease l
            WHERE l.process_id = p.process_id AND l.session_id = 'hermes:gateway')
    FROM hermes_process p ORDER BY p.host, p.pid
"""


class NodeProcess(NamedTuple):
    """A process that has written to the history."""

    name: str
    pid: int
    is_alive: bool
    is_active_gateway: bool
    turns: int
    claims: int
    seconds_since_seen: float


class NodeRepository(Repository):
    """Registered processes."""

    def all(self) -> list[NodeProcess]:
        """Every registered process, by machine."""
        return self.engine.read(self._read)

    def _read(self, reader: Reader) -> list[NodeProcess]:
        if not reader.columns.has_own_tables:
            return []
        dead = set(process_identity.dead_processes(reader, self.identity, self.engine.clock))
        now = self.engine.clock.now()
        return [
            NodeProcess(host, pid, process_id not in dead, bool(active), turns, claims, now - seen)
            for process_id, host, pid, seen, turns, claims, active in reader.rows(SELECT_NODES)
        ]
