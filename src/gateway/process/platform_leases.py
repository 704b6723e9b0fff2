"""One connection per platform account: gateways that share a database take turns.

The gateway that is connected to an account holds a lease and renews it; the others wait, and one
of them takes over when it is gone. A gateway that was frozen for longer than the lease finds it
taken and starts again; what it writes meanwhile is refused by the claims and turn leases that
others have taken over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import (
    LeaseLostError,
    LeaseTakenError,
    StoreError,
    StoreUnreachableError,
)
from hermes_state.delivery.nodes import PLATFORM_LEASE_PREFIX
from hermes_state.engine.process_identity import node_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.supervision import Supervisor
    from hermes_state.delivery.leases import Lease
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

RENEWALS_PER_LEASE: Final = 4
POLL_SECONDS: Final = 1.0


class PlatformLeases:
    """The leases of the accounts that this gateway is connected to."""

    def __init__(
        self, db: SessionDB, on_lost: Callable[[], object], supervisor: Supervisor
    ) -> None:
        self._supervisor = supervisor
        self._db = db
        self._on_lost = on_lost
        self._seconds = db.engine.columns.process_timeout_seconds
        self._leases: dict[str, Lease] = {}  # by name
        self._task: asyncio.Task[None] | None = None

    async def acquire(
        self, platform: str, account_key: str, on_wait: Callable[[str], object]
    ) -> None:
        """Wait until this gateway may connect to an account; *on_wait* gets the node that has it.

        *account_key* distinguishes the accounts of a platform: each has a lease of its own.
        """
        name = f"{PLATFORM_LEASE_PREFIX}{platform}:{account_key}"
        holder = ""
        while name not in self._leases:
            try:
                lease = await asyncio.to_thread(
                    self._db.leases.acquire, name, node_name(), self._seconds
                )
            except LeaseTakenError as error:
                if error.holder != holder:
                    holder = error.holder
                    log.info("%s is connected on %s; waiting", platform, holder)
                    on_wait(holder)
            except StoreError as error:
                log.log(_level(error), "%s waits for the database: %s", platform, error)
            else:
                self._leases[name] = lease
                self._task = self._task or self._supervisor.start("lease renewal", self._renew)
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _renew(self) -> None:
        renewed_at = time.monotonic()
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                for lease in list(self._leases.values()):
                    await asyncio.to_thread(self._db.leases.renew, lease, self._seconds)
                renewed_at = time.monotonic()
            except LeaseLostError as error:
                log.error("gateway restarting: another node has taken over (%s)", error)
                break
            except StoreError as error:
                log.log(_level(error), "platform leases not renewed: %s", error)
                if time.monotonic() - renewed_at > self._seconds:
                    log.error("gateway restarting: the database was unreachable for too long")
                    break
        self._on_lost()

    async def release(self) -> None:
        """Let another gateway connect at once."""
        if self._task is not None:
            self._task.cancel()
        leases, self._leases = self._leases, {}
        for lease in leases.values():
            try:
                await asyncio.to_thread(self._db.leases.release, lease)
            except StoreError as error:  # the lease expires
                log.log(_level(error), "platform lease not released: %s", error)


def _level(error: StoreError) -> int:
    """The log level of an error; the store itself reports a server that is lost."""
    return logging.DEBUG if isinstance(error, StoreUnreachableError) else logging.WARNING
