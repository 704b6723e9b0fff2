"""Messages taken from the inbox and handled: many places at once, one message each."""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from gateway import store_retry
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB

MOST_AT_ONCE: Final = 32
LOOK_SECONDS: Final = 1.0


class InboxWorkers:
    """Claims what waits, and has it handled in threads."""

    def __init__(
        self,
        db: SessionDB,
        handle: Callable[[dict[str, Any]], None],
        on_handled: Callable[[], object],
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._db = db
        self._handle = handle
        self._on_handled = on_handled
        self._most = most
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="hermes-place")
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._is_stopping = self._is_closed = False

    def __len__(self) -> int:
        """How many messages are being handled."""
        return len(self._tasks)

    def wake(self) -> None:
        """There is something to handle."""
        self._wake.set()

    async def run(self) -> None:
        """Handle messages until told to stop."""
        while not self._is_stopping:
            self._wake.clear()
            row = None
            if len(self._tasks) < self._most:
                row = await store_retry.asked(self._db.claim_incoming, "look for messages")
            if row is None:
                await self._wait()
                continue
            if self._is_stopping:
                back = functools.partial(self._db.give_back_incoming, row, is_attempt=False)
                await store_retry.written(back, "give a message back")
                return
            task = asyncio.create_task(self._work(row))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
        except TimeoutError:
            return  # a message of another process, or one that was given back

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()

    async def _work(self, row: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, self._isolated, row)
        self._on_handled()

    def _isolated(self, row: dict[str, Any]) -> None:
        number = row["inbox_id"]
        failure = attempt(Step(f"handle message {number}", lambda: self._handle(row)))
        if failure is None:
            return
        is_trouble = store_retry.is_trouble(failure.error)  # then it was no attempt
        time.sleep(store_retry.PAUSE_SECONDS)
        store_retry.write_at_last(
            lambda: self._db.give_back_incoming(row, is_attempt=not is_trouble),
            "give a message back",
            lambda: self._is_closed,
        )

    async def stop(self, seconds: float) -> bool:
        """Take nothing more, and wait for what is being handled; whether it has ended."""
        self._is_stopping = True
        self._wake.set()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        return not self._tasks

    def close(self) -> None:
        """Let go of the threads."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
