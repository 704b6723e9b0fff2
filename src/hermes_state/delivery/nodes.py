"""The processes that use a history, on this and other machines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.delivery.inbox import INBOX_TOPIC
from hermes_state.delivery.rows import read_object
from hermes_state.engine import process_identity
from hermes_state.repository import GET_META, UPSERT_META, Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_state.delivery.rows import MessagePayload
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


BOUND_NODE: Final = "SELECT node FROM hermes_bound_place WHERE session_key = ?"
BIND: Final = """
    INSERT INTO hermes_bound_place (session_key, node) VALUES (?, ?) ON CONFLICT DO NOTHING
"""
RELEASE: Final = "DELETE FROM hermes_bound_place WHERE node = ?"
BOUND_WAITING: Final = """
    SELECT w.inbox_id, w.platform, w.session_key, w.payload, b.node, NOT EXISTS (
        SELECT 1 FROM hermes_inbox c WHERE c.session_key = w.session_key
            AND c.inbox_id < w.inbox_id AND c.state IN ('waiting', 'claimed'))
    FROM hermes_inbox w JOIN hermes_bound_place b ON b.session_key = w.session_key
    WHERE w.state = 'waiting' AND w.state IN ('waiting', 'claimed') ORDER BY w.inbox_id
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


class BoundMessage(NamedTuple):
    """A message that waits for a node."""

    inbox_id: int
    platform: str
    session_key: str
    payload: MessagePayload
    node: str
    is_oldest: bool  # of its place


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

    def beat(self) -> None:
        """Note that this process is alive."""
        identity = self.identity
        self.engine.write(lambda tx: process_identity.refresh(tx, identity), is_conditional=True)

    def leave(self) -> None:
        """Remove this gateway from the running ones."""

        def leave(tx: Tx) -> None:
            members = self._running_gateways(tx)
            if members.pop(self.identity.process_id, None) is not None:
                tx.execute(UPSERT_META, (GATEWAYS_KEY, json.dumps(members)))

        self.engine.write(leave)

    def with_gateway(self) -> list[str]:
        """The nodes on which a gateway is running."""
        gateways = self.engine.read(self._running_gateways)
        return sorted({node for node, _ in gateways.values()})

    def bind(self, session_key: str) -> None:
        """Let only this node handle the messages of a place: its folder is here.

        A place that is bound to another node stays there: only its commands are handled here.
        """
        node = self.identity.host
        if self.engine.read(lambda r: r.value(BOUND_NODE, (session_key,))) is None:
            self.engine.write(lambda tx: tx.run(BIND, (session_key, node)))

    def release(self, node: str) -> int:
        """Let any node handle what is bound to a node that will not return; how many places."""

        def release(tx: Tx) -> int:
            count = tx.execute(RELEASE, (node,)).rowcount
            if count:
                tx.wake(INBOX_TOPIC)
            return count

        return self.engine.write(release)

    def waiting_for_nodes(self) -> list[BoundMessage]:
        """The waiting messages of places that are bound to a node without a gateway."""

        def read(reader: Reader) -> list[BoundMessage]:
            nodes = {node for node, _ in self._running_gateways(reader).values()}
            rows = reader.rows(BOUND_WAITING)
            return [
                BoundMessage(inbox_id, platform, key, read_object(payload), node, bool(is_oldest))
                for inbox_id, platform, key, payload, node, is_oldest in rows
                if node not in nodes
            ]

        return self.engine.read(read)

    def _running_gateways(self, reader: Reader) -> dict[str, tuple[str, dict[str, str]]]:
        """Node and settings of each running gateway, by process."""
        if not reader.columns.has_own_tables:
            return {}
        stored = read_object(reader.value(GET_META, (GATEWAYS_KEY,)))
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
