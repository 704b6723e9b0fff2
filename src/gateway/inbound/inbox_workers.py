"""Claims messages from the inbox and handles them in threads: one at a time per chat."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from gateway import supervision
from gateway.inbound.commands import OVERTAKING_COMMANDS
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.delivery.rows import IncomingMessage
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

MAX_CONCURRENT_TURNS: Final = 32
OWNER_TURNS: Final = 4  # more, so that the turns of others cannot keep the owner waiting
COMMAND_TURNS: Final = 4  # more, so that long turns cannot keep commands waiting
SUSPECT_SECONDS: Final = 120.0  # that no other suspect starts beside a running one
SUSPECT_PHASE_SECONDS: Final = 600.0  # that suspects wait for each other in total
POLL_SECONDS: Final = 1.0
# Of messages that arrive here: further ones are left to nodes with fewer turns.
MAX_OWN_TURNS: Final = 4
YIELD_SECONDS: Final = 0.1
OFFER_SECONDS: Final = 0.05


class InboxWorkers:
    """The claim loop and its thread pool.

    A message that was interrupted as often as allowed, together with others, is a suspect: it runs
    beside ordinary messages, but not beside other suspects, so that a crash is its own.
    """

    def __init__(
        self,
        db: SessionDB,
        handle: Callable[[IncomingMessage], None],
        on_handled: Callable[[], object],
        max_turns: int = MAX_CONCURRENT_TURNS,
        offer: Callable[[IncomingMessage], object] = lambda _message: None,
        *,
        has_other_nodes: bool = False,
        max_attempts: int = 3,
    ) -> None:
        self._db = db
        self._max_attempts = max_attempts
        self._suspects: deque[tuple[IncomingMessage, bool]] = deque()  # claimed, not started
        self._running_suspects: dict[int, float] = {}  # their start, by inbox ID
        self._suspects_since = float("-inf")
        self._handle = handle
        self._offer = offer  # gets messages that arrive during a turn of their chat
        self._offered: set[int] = set()
        self._must_offer = False
        self.has_other_nodes = has_other_nodes  # whose gateways may share the inbox
        self._on_handled = on_handled
        self._max_turns = max_turns
        threads = max_turns + OWNER_TURNS + COMMAND_TURNS
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hermes-inbox")
        self._owners_keys: dict[str, None] = {}  # chats in which the owner has written
        self._command_keys: dict[str, None] = {}  # chats with a new command
        self._commands: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reserved = 0  # places for messages that are being stored
        self._reserve_lock = threading.Lock()
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # while the workers run
        self._is_stopping = self._is_closed = False

    def __len__(self) -> int:
        """How many messages are being handled."""
        return len(self._tasks)

    def wake(self, owners_key: str = "", command_key: str = "") -> None:
        """Look at the inbox now; with the session key of a message of the owner, there, too.

        *command_key* is the session key of a new command.
        """
        if owners_key:
            self._owners_keys[owners_key] = None
        if command_key:
            self._command_keys[command_key] = None
        self._wake.set()

    def reserve(self, *, is_owners: bool) -> bool:
        """Reserve a place for a message that is being stored; whether there is one.

        It is handled there, or the place is given back. Called from any thread.
        """
        max_turns = min(self._max_turns, MAX_OWN_TURNS) if self.has_other_nodes else self._max_turns
        room = max_turns + (OWNER_TURNS if is_owners else 0)
        is_running = self._loop is not None and not self._is_stopping
        return is_running and self._take_place(room)

    def _take_place(self, room: int) -> bool:
        with self._reserve_lock:
            if self._turns >= room:
                return False
            self._reserved += 1
            return True

    def give_back(self) -> None:
        """Give a reserved place back."""
        with self._reserve_lock:
            self._reserved -= 1

    @property
    def _turns(self) -> int:
        """How many places are taken, besides those of commands."""
        return len(self._tasks) - len(self._commands) + self._reserved

    def start_from_thread(
        self, row: IncomingMessage, *, is_owners: bool, is_reserved: bool = True
    ) -> None:
        """Handle a claimed message in its reserved place; called from any thread."""

        def start() -> None:
            self.start(row, is_owners=is_owners)
            if is_reserved:
                self.give_back()

        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(start)
                return
        except RuntimeError:  # the event loop is closed
            log.info("message %s waits for the next start", row.inbox_id)
        if is_reserved:
            self.give_back()
        self._db.inbox.requeue(row, is_attempt=False)

    def start(self, row: IncomingMessage, *, is_owners: bool) -> asyncio.Task[None]:
        """Handle a claimed message; release it if the gateway stops."""
        work = self._release(row) if self._is_stopping else self._work(row, is_owners=is_owners)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def run(self) -> None:
        """Handle messages until stopped."""
        self._loop = asyncio.get_running_loop()
        while not self._is_stopping:
            self._wake.clear()
            if self._tasks and (self._must_offer or self.has_other_nodes):
                name = "offer messages to running turns"
                await asyncio.to_thread(attempt, name, self._offer_waiting)
            self._start_suspects()
            claimed = await self._claim()
            if claimed is None:
                await self._wait()
                if self.has_other_nodes and len(self._tasks) >= MAX_OWN_TURNS:
                    await asyncio.sleep(YIELD_SECONDS)  # a node with fewer turns comes first
                continue
            row, is_owners = claimed
            if self._is_suspect(row):
                self._suspects.append((row, is_owners))
            else:
                self.start(row, is_owners=is_owners)

    # Messages that may be the cause of crashes

    @property
    def suspects(self) -> int:
        """Number of messages that may be the cause of crashes and are not answered yet."""
        return len(self._suspects) + len(self._running_suspects)

    def _is_suspect(self, row: IncomingMessage) -> bool:
        """Whether a message was interrupted so often that it may be the cause."""
        return row.crashes >= self._max_attempts

    def _start_suspects(self) -> None:
        """Start the next suspect if none runs; all of them when this has lasted too long.

        One that has run for SUSPECT_SECONDS is not the cause.
        """
        now = time.monotonic()
        if not self.suspects:
            self._suspects_since = now
        is_over = now - self._suspects_since >= SUSPECT_PHASE_SECONDS
        while self._suspects:
            is_one_tested = any(
                now - started < SUSPECT_SECONDS for started in self._running_suspects.values()
            )
            if is_one_tested and not is_over:
                return
            row, is_owners = self._suspects.popleft()
            log.warning("message %s runs as a suspect after %d crashes", row.inbox_id, row.crashes)
            self._running_suspects[row.inbox_id] = now
            task = self.start(row, is_owners=is_owners)
            task.add_done_callback(
                lambda _task, inbox_id=row.inbox_id: self._running_suspects.pop(inbox_id)  # type: ignore[misc]
            )

    # Claims

    def note_offered(self, inbox_id: int) -> None:
        """Note that a waiting message was offered to the running turn of its chat."""
        self._offered.add(inbox_id)

    def offer_later(self) -> None:
        """Offer a waiting message when the turn of its chat has started."""
        self._must_offer = True

    def _offer_waiting(self) -> None:
        """Offer messages that could not be offered when they were stored, or by another node."""
        self._must_offer = False
        waiting = {row.inbox_id: row for row in self._db.inbox.waiting_during_turns()}
        self._offered &= waiting.keys()
        for inbox_id in sorted(waiting.keys() - self._offered):
            self._offer(waiting[inbox_id])

    async def _release(self, row: IncomingMessage) -> None:
        release = functools.partial(self._db.inbox.requeue, row, is_attempt=False)
        await supervision.write_with_retry(release, "inbox release")

    async def _claim(self) -> tuple[IncomingMessage, bool] | None:
        """Claim the next message, those of the owner first; and whether it is one of them."""
        while self._owners_keys and self._turns < self._max_turns + OWNER_TURNS:
            key = next(iter(self._owners_keys))
            del self._owners_keys[key]
            is_last = not self._owners_keys and not self._command_keys
            has_place = is_last and self._take_place(self._max_turns)
            claimed = await self._claim_of(key, has_place=has_place)
            if claimed is not None or has_place:
                return claimed
        await self._claim_commands()  # also in chats whose messages wait for a budget
        has_place = self._take_place(self._max_turns)
        return await self._claim_of("", has_place=True) if has_place else None

    async def _claim_of(
        self, owners_key: str, *, has_place: bool
    ) -> tuple[IncomingMessage, bool] | None:
        """Claim a message of the owner's chat, or any with a place; and which of both it is."""

        def claim() -> tuple[IncomingMessage, bool] | None:
            row = self._db.inbox.claim(owners_key or None, or_any=has_place)
            return None if row is None else (row, row.session_key == owners_key)

        try:
            return await supervision.read_or_none(claim, "inbox claim")
        finally:
            if has_place:
                self.give_back()

    async def _claim_commands(self) -> None:
        """Start commands in slots of their own, while turns take all the others."""
        while self._command_keys and len(self._commands) < COMMAND_TURNS:
            key = next(iter(self._command_keys))
            del self._command_keys[key]
            claim = functools.partial(self._db.inbox.claim_command, key, OVERTAKING_COMMANDS)
            row = await supervision.read_or_none(claim, "inbox claim")
            if row is not None:
                task = self.start(row, is_owners=False)
                self._commands.add(task)
                task.add_done_callback(self._commands.discard)

    async def _wait(self) -> None:
        try:
            pause = OFFER_SECONDS if self._must_offer and self._tasks else POLL_SECONDS
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            return  # another process may have stored or released a message

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()

    async def _work(self, row: IncomingMessage, *, is_owners: bool) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, self._handle_isolated, row)
        self._on_handled()
        if is_owners:  # more may have arrived in this chat; `_finished` wakes the loop
            self._owners_keys[row.session_key] = None

    def _handle_isolated(self, row: IncomingMessage) -> None:
        inbox_id = row.inbox_id
        failure = attempt(f"handle message {inbox_id}", lambda: self._handle_marked(row))
        if not isinstance(failure, Failure):
            return
        # A failure of the store does not count as an attempt.
        is_attempt = not supervision.is_store_failure(failure.error)
        time.sleep(supervision.RETRY_SECONDS)
        # A message is given up with a reply; one that fails even so is quarantined.
        is_hopeless = is_attempt and row.attempts > self._max_attempts
        error = f"{type(failure.error).__name__}: {failure.error}" if is_hopeless else ""
        supervision.write_until_stopped(
            lambda: self._db.inbox.requeue(row, is_attempt=is_attempt, error=error),
            "inbox release",
            lambda: self._is_closed,
        )

    def _handle_marked(self, row: IncomingMessage) -> None:
        """Handle a message; if the process ends meanwhile, a suspect is held responsible."""
        if not self._is_suspect(row):
            self._handle(row)
            return
        self._db.inbox.mark_suspect(row.inbox_id)
        try:
            self._handle(row)
        finally:
            self._db.inbox.unmark_suspect(row.inbox_id)

    async def stop(self, seconds: float) -> bool:
        """Claim nothing more and wait for the messages in progress; whether all are done."""
        self._is_stopping = True
        self._wake.set()
        while self._suspects:
            row, is_owners = self._suspects.popleft()
            self.start(row, is_owners=is_owners)  # which releases it
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        return not self._tasks

    def close(self) -> None:
        """Shut down the thread pool."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
