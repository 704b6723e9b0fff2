"""One active gateway per database: others wait and take over when it is gone.

The active gateway holds a lease and renews it. One that was frozen for longer than the lease
finds it taken, and stops; what it writes afterwards is refused by the claims and turn leases
that others have taken over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import LeaseLostError, LeaseTakenError, StoreError
from hermes_state.delivery.nodes import GATEWAY_LEASE
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB
    from hermes_state.delivery.leases import Lease

log = logging.getLogger(__name__)

RENEWALS_PER_LEASE: Final = 4
MAX_POLL_SECONDS: Final = 1.0


class ActiveNode:
    """The lease of the active gateway."""

    def __init__(self, db: SessionDB, on_lost: Callable[[], object]) -> None:
        self._db = db
        self._on_lost = on_lost
        self._seconds = db.engine.columns.process_timeout_seconds
        self._lease: Lease | None = None
        self._task: asyncio.Task[None] | None = None

    async def acquire(self, is_stopping: asyncio.Event, on_wait: Callable[[str], object]) -> bool:
        """Wait until this gateway is the active one; False if it is stopped meanwhile."""
        is_waiting = False
        while not is_stopping.is_set():
            try:
                self._lease = await asyncio.to_thread(
                    self._db.leases.acquire, GATEWAY_LEASE, node_name(), self._seconds
                )
            except LeaseTakenError as error:
                if not is_waiting:
                    log.info("gateway is on standby: %s", error)
                    on_wait(f"Standby: another machine runs the gateway ({error}).")
                    is_waiting = True
            except StoreError as error:
                log.warning("gateway cannot become active: %s; retrying", error)
            else:
                self._task = asyncio.create_task(self._renew(self._lease))
                return True
            await _wait(is_stopping, MAX_POLL_SECONDS)
        return False

    async def _renew(self, lease: Lease) -> None:
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                await asyncio.to_thread(self._db.leases.renew, lease, self._seconds)
                renewed_at = time.monotonic()
            except LeaseLostError as error:
                log.error("gateway stops: another machine has taken over (%s)", error)
                break
            except StoreError as error:
                log.warning("gateway lease not renewed: %s", error)
                if time.monotonic() - renewed_at > self._seconds:
                    log.error("gateway stops: the database was unreachable for too long")
                    break
        self._on_lost()

    async def release(self) -> None:
        """Let another gateway take over at once."""
        if self._task is not None:
            self._task.cancel()
        if self._lease is not None:
            await asyncio.to_thread(self._db.leases.release, self._lease)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
