"""The live facts of a gateway: one source for status, health endpoints, metrics and doctor.

A supervised task collects them every few seconds and writes them to the state file with the time.
A reader that finds an old time knows that the gateway is stopped or hangs.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import TYPE_CHECKING, Final, cast

from gateway import status
from hermes_core import human_format, paths
from hermes_core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.turn_runner import RunningTurns
    from gateway.process.connections import Connections
    from gateway.status import RuntimeFacts, TaskFacts, TurnFacts
    from gateway.supervision import Supervisor, TaskRecord
    from hermes_state.store import SessionDB

PROBE_SECONDS: Final = 10.0  # between test writes to the history
PROBE_TIMEOUT_SECONDS: Final = 2.0
WORKING_STATES: Final = frozenset({"connected", "standby"})


class LiveFacts:
    """Collects the facts; `current` holds the latest."""

    def __init__(
        self,
        db: SessionDB,
        connections: Connections,
        supervisor: Supervisor,
        turns: RunningTurns,
    ) -> None:
        self._db = db
        self._turns = turns
        self._connections = connections
        self._supervisor = supervisor
        self._lock = asyncio.Lock()  # the heartbeat and requests collect at the same time
        self._probe: asyncio.Task[str] | None = None
        self._probed_at = self._collected_at = float("-inf")
        self._written_at = time.monotonic()
        self._store_error = ""
        self.current: RuntimeFacts = {}
        self.count_suspects: Callable[[], int] = lambda: 0

    async def collect(self, probe_seconds: float = PROBE_SECONDS) -> RuntimeFacts:
        """Collect the facts; a test write to the history may be *probe_seconds* old."""
        asked_at = time.monotonic()
        async with self._lock:
            if self._collected_at >= asked_at:
                return self.current  # collected while this request waited
            return await self._collect(probe_seconds)

    async def _collect(self, probe_seconds: float) -> RuntimeFacts:
        await self._probe_store(probe_seconds)
        inbox = await self._inbox_facts()
        self.current = {
            "heartbeat_at": time.time(),
            "platforms": self._connections.states,
            "turns": cast("TurnFacts", self._turns.times()._asdict()),
            "tasks": [_task_facts(record) for record in self._records() if record.failures],
            "store_error": self._store_error,
            "suspect_messages": self.count_suspects(),
            "free_bytes": shutil.disk_usage(paths.hermes_home()).free,
            **inbox,
        }
        self.current["problems"] = find_problems(self.current)
        self._collected_at = time.monotonic()
        return self.current

    def _records(self) -> list[TaskRecord]:
        listeners = [
            getattr(adapter, "listener", None) for adapter in self._connections.adapters.values()
        ]
        return [*self._supervisor.records, *(record for record in listeners if record is not None)]

    async def _probe_store(self, probe_seconds: float) -> None:
        """Write a note to the history from time to time; an unfinished write is an error."""
        now = time.monotonic()
        if self._probe is None:
            if now - self._probed_at < probe_seconds and not self._store_error:
                return
            self._probed_at = now
            self._probe = asyncio.create_task(asyncio.to_thread(self._write_probe))
        done, _ = await asyncio.wait([self._probe], timeout=PROBE_TIMEOUT_SECONDS)
        if done:
            self._store_error = self._probe.result()
            self._probe = None
            if not self._store_error:
                self._written_at = time.monotonic()
        else:
            seconds = time.monotonic() - self._written_at
            self._store_error = f"no write has succeeded for {seconds:.0f} s"

    def _write_probe(self) -> str:
        try:
            self._db.nodes.beat()
        except (StoreError, OSError) as error:
            return str(error) or type(error).__name__
        return ""

    async def _inbox_facts(self) -> RuntimeFacts:
        try:
            return await asyncio.wait_for(
                asyncio.to_thread(self._read_inbox), PROBE_TIMEOUT_SECONDS
            )
        except (StoreError, OSError) as error:  # TimeoutError is an OSError
            self._store_error = self._store_error or str(error) or "no response"
            return {}

    def _read_inbox(self) -> RuntimeFacts:
        ages = self._db.inbox.ages()
        return {
            "waiting_chats": self._db.inbox.waiting_places(),
            "oldest_waiting_seconds": ages.waiting,
            "oldest_claimed_seconds": ages.claimed,
            "failed_messages": self._db.inbox.count_failed(),
        }


def _task_facts(record: TaskRecord) -> TaskFacts:
    return {
        "name": record.name,
        "is_running": record.is_running,
        "failures": record.failures,
        "last_error": record.last_error,
        "failed_at": record.failed_at,
        "is_platform": record.is_platform,
    }


def find_problems(facts: RuntimeFacts) -> list[str]:
    """What does not work, as sentences; empty if all is well."""
    platforms = [
        f"{name} is {platform.get('state')}"
        + (f": {platform['error_message']}" if platform.get("error_message") else "")
        for name, platform in facts.get("platforms", {}).items()
        if platform.get("state") not in WORKING_STATES
    ]
    return [*platforms, *process_problems(facts), *crash_problems(facts)]


def crash_problems(facts: RuntimeFacts) -> list[str]:
    """What is left of crashes; another restart would not help."""
    suspects = facts.get("suspect_messages", 0)
    if not suspects:
        return []
    messages = human_format.plural(suspects, "message")
    return [
        f"{messages} that may have caused crashes {'is' if suspects == 1 else 'are'} handled one "
        "at a time; other messages are answered as usual"
    ]


def process_problems(facts: RuntimeFacts) -> list[str]:
    """What does not work in the process, whatever the platforms do."""
    result = []
    if facts.get("store_error"):
        result.append(f"the history cannot be written: {facts['store_error']}")
    free = facts.get("free_bytes")
    if free is not None and free < status.MIN_FREE_BYTES:
        result.append(status.disk_problem(free))
    hung = (facts.get("turns") or {}).get("hung", 0)
    if hung:
        result.append(f"{human_format.plural(int(hung), 'turn')} hung")
    result += [
        f"{task['name']} failed and is being restarted: {task['last_error']}"
        for task in facts.get("tasks", [])
        if not task["is_running"] and not task["is_platform"]
    ]
    return result
