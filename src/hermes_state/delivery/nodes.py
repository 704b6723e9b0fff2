"""The processes that use a history, on this and other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine import process_identity
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

PLATFORM_LEASE_PREFIX: Final = "hermes:platform:"
SELECT_NODES: Final = """
    SELECT p.process_id, p.host, p.pid, p.seen_at,
           (SELECT count(*) FROM hermes_lease l
            WHERE l.process_id = p.process_id
                AND substr(l.session_id, 1, 16) <> 'hermes:platform:'),
           (SELECT count(*) FROM hermes_inbox i
            WHERE i.state = 'claimed' AND i.state IN ('waiting', 'claimed')
                AND i.process_id = p.process_id)
    FROM hermes_process p ORDER BY p.host, p.pid
"""
SELECT_PLATFORMS: Final = """
    SELECT process_id, session_id FROM hermes_lease
    WHERE process_id IS NOT NULL AND substr(session_id, 1, 16) = 'hermes:platform:'
    ORDER BY session_id
"""


class NodeProcess(NamedTuple):
    """A process that has written to the history."""

    name: str
    pid: int
    is_alive: bool
    platforms: list[str]  # that it is connected to
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
        platforms: dict[str, list[str]] = {}
        for process_id, name in reader.rows(SELECT_PLATFORMS):
            platform = name.removeprefix(PLATFORM_LEASE_PREFIX).partition(":")[0]
            platforms.setdefault(process_id, []).append(platform)
        return [
            NodeProcess(
                host, pid, key not in dead, platforms.get(key, []), turns, claims, now - seen
            )
            for key, host, pid, seen, turns, claims in reader.rows(SELECT_NODES)
        ]
