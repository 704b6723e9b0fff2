"""Listens to a Matrix server with /sync, without gaps.

Each room has a queue: a file that takes long to download, or a message that cannot be stored,
holds up no other room. The token of a batch is stored once its messages and those of all earlier
batches are received, and the keys in it are stored before the next batch is requested, because
the server deletes them then. A limited timeline is completed from the room history first.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError

from gateway import config_values
from gateway.platforms.matrix import results
from gateway.platforms.matrix.encryption.key_store import KeyStoreTakenError
from gateway.platforms.ordered_queues import OrderedQueues
from gateway.platforms.problems import UNREACHABLE
from gateway.platforms.reconnect import ReconnectDelay
from hermes_core.errors import HermesError, PlatformRefusedError
from hermes_core.isolate import attempt_async

if TYPE_CHECKING:
    from gateway.platforms.base import Memory, Receive
    from gateway.platforms.matrix.client import MatrixClient
    from gateway.platforms.matrix.encryption.inbound import EncryptedInbox, WaitingEvent
    from gateway.platforms.matrix.messages import MatrixMessageReader
    from gateway.platforms.matrix.rooms import MatrixRooms
    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.quarantine import UpdateGuard
    from hermes_core.json_values import JsonObject, JsonValue

log = logging.getLogger(__name__)

TOKEN_VARIABLE: Final = "MATRIX_ACCESS_TOKEN"  # noqa: S105 - the name of a variable
SYNC_SECONDS: Final = 30
TIMELINE_LIMIT: Final = 50
PAGE_EVENTS: Final = 100
MAX_PAGES: Final = 100  # of one room; older messages are skipped
MAX_JOIN_ATTEMPTS: Final = 20
MAX_OPEN_BATCHES: Final = 20  # batches whose messages are not all received
PERMANENT_JOIN_CODES: Final = ("M_FORBIDDEN", "M_NOT_FOUND", "M_UNSUPPORTED_ROOM_VERSION")
STATE_TYPES: Final[list[JsonValue]] = [
    "m.room.member",
    "m.room.name",
    "m.room.canonical_alias",
    "m.room.encryption",
]
EVENT_TYPES: Final[list[JsonValue]] = [
    "m.room.message",
    "m.room.encrypted",
    "m.room.redaction",
    "m.key.verification.*",
    *STATE_TYPES,
]
EMPTY_FILTER: Final[JsonObject] = {"types": []}


def sync_filter(limit: int) -> JsonObject:
    """The sync filter: messages and room state only."""
    return {
        "presence": EMPTY_FILTER,
        "account_data": EMPTY_FILTER,
        "room": {
            "ephemeral": EMPTY_FILTER,
            "account_data": EMPTY_FILTER,
            "timeline": {"limit": limit, "types": EVENT_TYPES},
            "state": {"types": STATE_TYPES, "lazy_load_members": True},
        },
    }


class OpenBatch:
    """A batch of events that are not all received."""

    def __init__(self, token: str, rooms: set[str]) -> None:
        self.token = token
        self.rooms = rooms  # whose events are not received


class MatrixListener:
    """Receives the messages in the rooms of an account."""

    def __init__(
        self,
        client: MatrixClient,
        rooms: MatrixRooms,
        reader: MatrixMessageReader,
        encrypted: EncryptedInbox,
        memory: Memory,
        problems: ConnectionProblems,
        extra: JsonObject,
        guard: UpdateGuard,
    ) -> None:
        self._guard = guard
        self._client = client
        self._me = str(client.user_id)
        self._rooms = rooms
        self._reader = reader
        self._encrypted = encrypted
        self._memory = memory
        self._problems = problems
        self._limit = config_values.number(extra.get("timeline_limit"), TIMELINE_LIMIT, minimum=1)
        self._seconds = config_values.number(extra.get("sync_seconds"), SYNC_SECONDS, minimum=1)
        self._is_joining = config_values.flag(extra.get("auto_join"), default=True)
        self._invitations: dict[str, int] = {}  # with the number of attempts
        self._since = ""  # the position of the next request
        self._stored = ""  # the position after a restart
        self._queues = OrderedQueues("Matrix", request_errors=(ClientError,))
        self._open: deque[OpenBatch] = deque()
        self._progress = asyncio.Event()
        self._storing = asyncio.Lock()

    async def begin(self) -> None:
        """Load the position of the last run; a first run starts at the newest event."""
        result = await self._memory.recall(f"invitations:{self._me}")
        self._invitations = dict.fromkeys(json.loads(result or "[]"), 0)
        self._since = self._stored = await self._memory.recall(f"since:{self._me}") or ""
        if self._since:
            return
        first = await self._sync("", 0)
        await self._encrypted.receive(first)
        if await self._accept_invitations(first):
            first = await self._sync(first.next_batch, 0)  # after the history of the joined rooms
            await self._encrypted.receive(first)
        self._since = first.next_batch
        await self._store_position(first.next_batch)

    async def run(self, receive: Receive) -> None:
        """Sync until cancelled; less often if the server rejects the token."""
        delay = ReconnectDelay()
        self._open.clear()
        self._since = self._stored  # what an earlier run has not received is requested again
        self._encrypted.start(functools.partial(self._receive_waiting, receive))
        try:
            while True:
                try:
                    await self._receive_batch(receive)
                    delay.reset()
                    self._problems.clear(TOKEN_VARIABLE)
                    self._problems.clear(UNREACHABLE)
                except KeyStoreTakenError:
                    raise  # what is in memory is outdated
                except (ClientError, HermesError, OSError, TimeoutError) as error:
                    self._rooms.forget_all()
                    await self._pause(delay, error)
        finally:
            await self._encrypted.stop()
            await self._queues.close()
            await attempt_async("store Matrix keys", self._encrypted.flush())

    async def _pause(self, delay: ReconnectDelay, error: Exception) -> None:
        is_refused = isinstance(error, PlatformRefusedError)
        if is_refused:
            self._problems.note(TOKEN_VARIABLE, str(error))
        pause = delay.next_delay(is_refused=is_refused)
        reason = results.describe_exception(error)
        self._problems.note_failure(delay.failures, reason)
        log.warning("Matrix sync failed: %s; retrying in %g s", reason, pause)
        await asyncio.sleep(pause)

    async def _receive_batch(self, receive: Receive) -> None:
        while len(self._open) >= MAX_OPEN_BATCHES:
            self._progress.clear()
            await self._progress.wait()
        batch = await self._sync(self._since, self._seconds)
        rooms = {
            room_id: await self._events(room_id, info) for room_id, info in batch.rooms.join.items()
        }
        for room_id in batch.rooms.leave:
            self._rooms.forget(room_id)
        await self._accept_invitations(batch)
        await self._encrypted.receive(batch)
        self._open.append(opened := OpenBatch(batch.next_batch, set(rooms)))
        self._since = batch.next_batch
        for room_id, events in rooms.items():
            for event in events:  # at once: an encrypted room gets no plain text from now on
                self._rooms.apply(room_id, event)
            job = functools.partial(self._receive_room, receive, room_id, deque(events), opened)
            self._queues.add(room_id, job, job)
        await self._store_finished()
        for waiting in self._encrypted.take_readable():
            self._receive_waiting(receive, waiting)

    async def _receive_room(
        self, receive: Receive, room_id: str, events: deque[JsonObject], batch: OpenBatch
    ) -> None:
        """Receive the events of a room in order; what is received is not repeated."""
        while events:
            event = events[0]
            work = self._receive_event(receive, room_id, event)
            await self._guard.handle(str(event.get("event_id")), event, work)
            events.popleft()
        batch.rooms.discard(room_id)
        await self._store_finished()

    async def _receive_event(self, receive: Receive, room_id: str, event: JsonObject) -> None:
        clear = await self._encrypted.read(room_id, event)
        if clear is None:
            return
        message = await self._reader.message(room_id, clear)
        if message is not None and not await self._encrypted.answer(message):
            await receive(message)
        self._encrypted.waiting.remove(str(event.get("event_id")))

    def _receive_waiting(self, receive: Receive, waiting: WaitingEvent) -> None:
        """Receive an event whose key has arrived."""

        async def job() -> None:
            if waiting.event_id not in self._encrypted.waiting:
                return  # it was in a batch that was requested again
            work = self._receive_event(receive, waiting.room_id, waiting.event)
            await self._guard.handle(waiting.event_id, waiting.event, work)
            await self._encrypted.flush()

        self._queues.add(waiting.room_id, job, job)

    async def _store_finished(self) -> None:
        """Store the position of the last batch before the first open one."""
        async with self._storing:
            finished = list(itertools.takewhile(lambda batch: not batch.rooms, self._open))
            if finished:
                await self._store_position(finished[-1].token)
            for _batch in finished:
                self._open.popleft()
        self._progress.set()

    async def _sync(self, since: str, seconds: int) -> Any:
        self._client.next_batch = ""  # the position of the library is not what was received
        answer = await self._client.sync(
            seconds * 1000,
            sync_filter(self._limit if since else 1),
            since or None,
        )
        if results.is_error(answer):
            wait = results.retry_after_seconds(answer)
            if wait:
                await asyncio.sleep(wait)
            raise results.platform_error(answer)
        return answer

    async def _store_position(self, token: str) -> None:
        if token != self._stored:
            await self._encrypted.flush()
            await self._memory.keep(f"since:{self._me}", token)
            self._stored = token

    async def _events(self, room_id: str, info: Any) -> list[JsonObject]:
        """The events of a room since the last batch, oldest first."""
        if info.timeline.limited:
            self._rooms.forget(room_id)  # the state of the batch lacks members
        for event in info.state:
            self._rooms.apply(room_id, event.source)
        events = [item.source for item in info.timeline.events]
        start = info.timeline.prev_batch if info.timeline.limited else None
        if start:
            events = [*await self._earlier(room_id, start, self._since), *events]
        joined = next((item for item in events if self._is_arrival(item)), None)
        return (
            events
            if joined is None
            else await self._events_since_invitation(room_id, start, events, joined)
        )

    def _is_arrival(self, event: JsonObject) -> bool:
        """Whether the bot joined the room, as opposed to a profile change."""
        if event.get("type") != "m.room.member" or event.get("state_key") != self._me:
            return False
        unsigned = config_values.mapping(event.get("unsigned"))
        before = config_values.mapping(unsigned.get("prev_content")).get("membership")
        was_elsewhere = before != "join" if before else "replaces_state" not in unsigned
        return was_elsewhere and _membership(event) == "join"

    async def _events_since_invitation(
        self, room_id: str, start: str | None, events: list[JsonObject], joined: JsonObject
    ) -> list[JsonObject]:
        """The events of a new room after the invitation; older history is ignored."""
        unsigned = config_values.mapping(joined.get("unsigned"))
        was_invited = (
            config_values.mapping(unsigned.get("prev_content")).get("membership") == "invite"
        )
        border = unsigned.get("replaces_state") if was_invited else joined.get("event_id")
        if start and border not in _ids(events):
            known = set(_ids(events))
            earlier = await self._earlier(room_id, start, None, border)
            events = [*(item for item in earlier if item.get("event_id") not in known), *events]
        ids = _ids(events)
        border = border if border in ids else joined.get("event_id")
        return events[ids.index(border) + 1 :]

    async def _earlier(
        self, room_id: str, start: str, end: str | None, border: Any = None
    ) -> list[JsonObject]:
        """The history before *start* down to a token or an event, oldest first."""
        result: list[JsonObject] = []
        token: str | None = start
        pages = 0
        while token and pages < MAX_PAGES:
            pages += 1
            answer = await self._client.room_messages(
                room_id, token, end, limit=PAGE_EVENTS, message_filter={"types": EVENT_TYPES}
            )
            if results.is_error(answer):
                raise results.platform_error(answer)
            page = [item.source for item in answer.chunk]
            result += page
            is_reached = border is not None and border in _ids(page)
            token = answer.end if not is_reached and answer.end != token else None
        if token:
            log.warning("room %s history truncated: oldest messages skipped", room_id)
        return result[::-1]

    async def _accept_invitations(self, batch: Any) -> bool:
        """Join the rooms with an invitation; whether there were any."""
        before = dict(self._invitations)
        if self._is_joining:
            self._invitations |= dict.fromkeys(batch.rooms.invite, 0)
        for room_id in batch.rooms.leave:
            self._invitations.pop(room_id, None)
        waiting = list(self._invitations)
        for room_id in waiting:
            if await self._join(room_id):
                del self._invitations[room_id]
        if self._invitations.keys() != before.keys():
            result = json.dumps(list(self._invitations))
            await self._memory.keep(f"invitations:{self._me}", result)
        return bool(waiting)

    async def _join(self, room_id: str) -> bool:
        """Join a room; whether no further attempt is needed."""
        self._invitations[room_id] += 1
        is_last = self._invitations[room_id] >= MAX_JOIN_ATTEMPTS
        try:
            answer = await self._client.join(room_id)
        except (ClientError, TimeoutError) as error:
            log.warning("room %s not joined: %s", room_id, results.describe_exception(error))
            return is_last
        if not results.is_error(answer):
            log.info("room %s joined", room_id)
            return True
        log.warning("room %s not joined: %s", room_id, results.describe_response(answer))
        return is_last or answer.status_code in PERMANENT_JOIN_CODES


def _ids(events: list[JsonObject]) -> list[Any]:
    return [event.get("event_id") for event in events]


def _membership(event: JsonObject) -> Any:
    return config_values.mapping(event.get("content")).get("membership")
