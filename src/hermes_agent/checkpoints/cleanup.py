"""Keeps the space of checkpoints within its limits: by age, then by total size."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from hermes_agent.checkpoints.archive import CheckpointArchive
    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.checkpoints.store import CheckpointStore

INTERVAL_SECONDS: Final = 600.0


class CleanupResult(NamedTuple):
    """What was removed, and what is left."""

    removed: int
    kept: int
    freed_bytes: int
    bytes: int


class CheckpointCleanup:
    """Removes old checkpoints and the contents that only they used."""

    def __init__(self, archive: CheckpointArchive) -> None:
        self._archive = archive
        self._last_run = 0.0
        self._lock = threading.Lock()

    def start_if_due(self) -> None:
        """Clean up in the background, at most every ten minutes."""
        with self._lock:
            now = time.monotonic()
            if self._last_run and now - self._last_run < INTERVAL_SECONDS:
                return
            self._last_run = now
        threading.Thread(
            target=lambda: attempt("clean up checkpoints", lambda: self.run(time.time())),
            name="hermes-checkpoints",
            daemon=True,
        ).start()

    def run(self, now: float, *, keep_seconds: float | None = None) -> CleanupResult:
        """Remove what is too old or too much."""
        limits = self._archive.limits
        oldest = now - (limits.keep_seconds if keep_seconds is None else keep_seconds)
        before = after = removed = kept = 0
        stores = list(self._archive.stores())
        for store in stores:
            before += store.repository.size()
            removed += self._remove(store, [r for r in _closed(store) if r.started_at < oldest])
            after += store.repository.size() if store.exists else 0
        while after > limits.max_store_bytes:
            victims = self._oldest_half(stores)
            if not victims:
                break
            for store, records in victims:
                removed += self._remove(store, records)
            after = sum(store.repository.size() for store in stores if store.exists)
        kept = sum(len(store.repository.records()) for store in stores if store.exists)
        return CleanupResult(removed, kept, max(0, before - after), after)

    def _oldest_half(
        self, stores: list[CheckpointStore]
    ) -> list[tuple[CheckpointStore, list[Checkpoint]]]:
        """The older half of all checkpoints; of one, that one."""
        found = sorted(
            ((record.started_at, place, record) for place, store in enumerate(stores)
             if store.exists for record in _closed(store)),
            key=lambda item: item[:2],
        )  # fmt: skip
        chosen = found[: (len(found) + 1) // 2]
        return [
            (store, [record for _, at, record in chosen if at == place])
            for place, store in enumerate(stores)
            if any(at == place for _, at, _ in chosen)
        ]

    def _remove(self, store: CheckpointStore, records: list[Checkpoint]) -> int:
        with store.locked() as repository:
            repository.remove([record.number for record in records])
            if repository.records():
                repository.reclaim()
                return len(records)
            # Without a checkpoint the repository holds nothing that the folder does not; the lock
            # and the numbers stay.
            shutil.rmtree(store.root / "git", ignore_errors=True)
        return len(records)


def _closed(store: CheckpointStore) -> list[Checkpoint]:
    return [
        record
        for record in store.repository.records()
        if not (record.is_open and store.is_running(record))
    ]
