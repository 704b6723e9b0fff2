"""Listens to a Matrix server with /sync, without gaps.

The token of a batch is stored once all its messages are received; after a failure the same batch
is requested again. A limited timeline is completed from the room history first.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError

from gateway import config_values
from gateway.platforms.matrix import results
from gateway.platforms.problems import UNREACHABLE
from gateway.platforms.reconnect import ReconnectDelay
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nio import AsyncClient  # type: ignore[import-untyped] # it has no types

    from gateway.platforms.base import Memory, Receive
    from gateway.platforms.matrix.messages import MatrixMessageReader
    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.quarantine import UpdateGuard
    from hermes_core.json_values import JsonObject, JsonValue

PRESENT_MEMBERSHIPS: Final = ("join", "invite")
ROOM_GONE_CODES: Final = (
    "M_FORBIDDEN",
    "M_NOT_FOUND",
)  # the bot was removed from the room


class MatrixRoom:
    """The state of a room."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._name = ""
        self._alias = ""
        self.members: dict[str, str] = {}  # joined and invited users, with their display names
        self.is_encrypted = False

    def apply(self, event: JsonObject) -> None:
        """Apply a state event."""
        content = config_values.mapping(event.get("content"))
        if "state_key" not in event:
            return
        match event.get("type"):
            case "m.room.member":
                self._apply_member(str(event["state_key"]), content)
            case "m.room.name":
                self._name = config_values.text(content.get("name"))
            case "m.room.canonical_alias":
                self._alias = config_values.text(content.get("alias"))
            case "m.room.encryption":
                self.is_encrypted = True

    def _apply_member(self, user: str, content: JsonObject) -> None:
        if content.get("membership") in PRESENT_MEMBERSHIPS:
            self.members[user] = config_values.text(content.get("displayname")) or user
        else:
            self.members.pop(user, None)

    @property
    def name(self) -> str | None:
        """The name of the room: its name, its alias, or its members."""
        others = [name for user, name in sorted(self.members.items()) if user != self._me]
        return self._name or self._alias or ", ".join(others[:3]) or None

    def name_of(self, user: str) -> str:
        """The display name of a user in the room."""
        return self.members.get(user) or user

    @property
    def has_two_members(self) -> bool:
        """Whether the room has at most two members, including invited ones."""
        return 0 < len(self.members) <= 2


class MatrixRooms:
    """The rooms of an account."""

    def __init__(self, client: AsyncClient, me: str, direct: Iterable[str] = ()) -> None:
        self._client = client
        self._me = me
        self._direct = frozenset(direct)  # listed as direct by the account
        self._known: dict[str, MatrixRoom] = {}

    async def get(self, room_id: str) -> MatrixRoom:
        """A room; its state is requested if it is unknown."""
        if room_id not in self._known:
            answer = await self._client.room_get_state(room_id)
            room = MatrixRoom(self._me)
            if results.is_error(answer):
                if answer.status_code in ROOM_GONE_CODES:
                    return room
                raise results.platform_error(answer)
            for event in answer.events:
                room.apply(event)
            self._known[room_id] = room
        return self._known[room_id]

    def apply(self, room_id: str, event: JsonObject) -> None:
        """Apply a state event to a known room."""
        if room_id in self._known:
            self._known[room_id].apply(event)

    def forget(self, room_id: str) -> None:
        """Remove a room that the account has left."""
        self._known.pop(room_id, None)

    def kind(self, room_id: str, room: MatrixRoom) -> str:
        """`dm` or `group`; a room with more people is a group, also if it is listed as direct."""
        is_unknown = not room.members and room_id in self._direct
        return "dm" if room.has_two_members or is_unknown else "group"

    def is_direct(self, room_id: str) -> bool:
        """Whether the account lists a room as direct: its messages are for the agent."""
        return room_id in self._direct


log = logging.getLogger(__name__)

TOKEN_VARIABLE: Final = "MATRIX_ACCESS_TOKEN"  # noqa: S105 - the name of a variable
SYNC_SECONDS: Final = 30
TIMELINE_LIMIT: Final = 50
PAGE_EVENTS: Final = 100
MAX_PAGES: Final = 100  # of one room; older messages are skipped
MAX_JOIN_ATTEMPTS: Final = 20
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


class MatrixListener:
    """Receives the messages in the rooms of an account."""

    def __init__(
        self,
        client: AsyncClient,
        rooms: MatrixRooms,
        reader: MatrixMessageReader,
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
        self._memory = memory
        self._problems = problems
        self._limit = config_values.number(extra.get("timeline_limit"), TIMELINE_LIMIT, minimum=1)
        self._seconds = config_values.number(extra.get("sync_seconds"), SYNC_SECONDS, minimum=1)
        self._is_joining = config_values.flag(extra.get("auto_join"), default=True)
        self._invitations: dict[str, int] = {}  # with the number of attempts
        self._since = ""

    async def begin(self) -> None:
        """Load the position of the last run; a first run starts at the newest event."""
        result = await self._memory.recall(f"invitations:{self._me}")
        self._invitations = dict.fromkeys(json.loads(result or "[]"), 0)
        self._since = await self._memory.recall(f"since:{self._me}") or ""
        if self._since:
            return
        first = await self._sync("", 0)
        if await self._accept_invitations(first):
            first = await self._sync(first.next_batch, 0)  # after the history of the joined rooms
        await self._store_position(first.next_batch)

    async def run(self, receive: Receive) -> None:
        """Sync until cancelled; less often if the server rejects the token."""
        delay = ReconnectDelay()
        while True:
            try:
                await self._receive_batch(receive)
                delay.reset()
                self._problems.clear(TOKEN_VARIABLE)
                self._problems.clear(UNREACHABLE)
            except (ClientError, HermesError, OSError, TimeoutError) as error:
                is_refused = isinstance(error, PlatformRefusedError)
                if is_refused:
                    self._problems.note(TOKEN_VARIABLE, str(error))
                pause = delay.next_delay(is_refused=is_refused)
                reason = results.describe_exception(error)
                self._problems.note_failure(delay.failures, reason)
                log.warning("Matrix sync failed: %s; retrying in %g s", reason, pause)
                await asyncio.sleep(pause)

    async def _receive_batch(self, receive: Receive) -> None:
        batch = await self._sync(self._since, self._seconds)
        for room_id, info in batch.rooms.join.items():
            for event in await self._events(room_id, info):
                work = self._receive_event(receive, room_id, event)
                await self._guard.handle(str(event.get("event_id")), event, work)
        for room_id in batch.rooms.leave:
            self._rooms.forget(room_id)
        await self._accept_invitations(batch)
        await self._store_position(batch.next_batch)

    async def _receive_event(self, receive: Receive, room_id: str, event: JsonObject) -> None:
        self._rooms.apply(room_id, event)
        message = await self._reader.message(room_id, event)
        if message is not None:
            await receive(message)

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
        if token != self._since:
            await self._memory.keep(f"since:{self._me}", token)
            self._since = token

    async def _events(self, room_id: str, info: Any) -> list[JsonObject]:
        """The events of a room since the last batch, oldest first."""
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
