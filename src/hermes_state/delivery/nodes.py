"""The processes that use a history, on this and other machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine import process_identity
from hermes_state.repository import Repository
from hermes_state.upkeep.meta import GET_META, UPSERT_META

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_state.engine.transaction import Reader, Tx

GATEWAYS_KEY: Final = "gateways"
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


class SettingDifference(NamedTuple):
    """A setting that has another value on another node."""

    name: str
    here: str
    there: str
    node: str


class NodeRepository(Repository):
    """Registered processes, and the settings of gateways."""

    def join(self, node: str, settings: Mapping[str, str]) -> SettingDifference | None:
        """Add this gateway to the running ones; not if one of them has other settings."""
        own_id = self.identity.process_id

        def join(tx: Tx) -> SettingDifference | None:
            self._register_process(tx)
            members = self._running_gateways(tx)
            members.pop(own_id, None)
            for other, there in members.values():
                for name, here in settings.items():
                    if there.get(name, here) != here:
                        return SettingDifference(name, here, there[name], other)
            members[own_id] = (node, dict(settings))
            tx.execute(UPSERT_META, (GATEWAYS_KEY, json.dumps(members)))
            return None

        return self.engine.write(join)

    def leave(self) -> None:
        """Remove this gateway from the running ones."""

        def leave(tx: Tx) -> None:
            members = self._running_gateways(tx)
            if members.pop(self.identity.process_id, None) is not None:
                tx.execute(UPSERT_META, (GATEWAYS_KEY, json.dumps(members)))

        self.engine.write(leave)

    def _running_gateways(self, reader: Reader) -> dict[str, tuple[str, dict[str, str]]]:
        """Node and settings of each running gateway, by process."""
        stored = json.loads(reader.value(GET_META, (GATEWAYS_KEY,)) or "{}")
        dead = set(process_identity.dead_processes(reader, self.identity, self.engine.clock))
        alive = {row[0] for row in reader.rows(process_identity.SELECT_PROCESSES)} - dead
        return {key: (node, values) for key, (node, values) in stored.items() if key in alive}

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
