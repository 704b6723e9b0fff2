"""Listens to Slack, channel by channel; an event is acknowledged once it is stored.

Slack redelivers unacknowledged events for some minutes. After a longer absence, missed messages
are read from the history of every known channel before newer ones are received.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypedDict, cast

from aiohttp import ClientError, WSMsgType
from slack_sdk.errors import SlackApiError, SlackClientError

from gateway import config_values
from gateway.platforms.base import COMMAND_PREFIX, ErrorKind, MessageEvent, MessageType, pressed
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS, OrderedQueues
from gateway.platforms.problems import UNREACHABLE
from gateway.platforms.reconnect import RECONNECT_BACKOFF
from gateway.platforms.slack import messages, results
from gateway.platforms.slack.messages import SlackMessage
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError
from hermes_core.isolate import Failure, attempt
from hermes_core.json_values import list_in, without_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import ClientSession, ClientWebSocketResponse
    from slack_sdk.web.async_client import AsyncWebClient

    from gateway.platforms.base import Button, Receive
    from gateway.platforms.cursors import Cursors
    from gateway.platforms.ordered_queues import Job
    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.quarantine import UpdateGuard
    from gateway.platforms.reconnect import ReconnectDelay
    from gateway.platforms.slack.messages import SlackMessageReader
    from hermes_core.backoff import Backoff
    from hermes_core.json_values import JsonObject

APP_COMMAND: Final = "/hermes"
MAX_SECTION_CHARS: Final = 2900  # Slack takes 3000


class Interaction(NamedTuple):
    """A command or a pressed button, and where it comes from."""

    place: SlackMessage
    text: str  # the command, or the data of the button
    interaction_id: str
    is_press: bool = False
    message_text: str = ""  # of the message with the button


def interaction_in(kind: str, payload: JsonObject, envelope_id: str) -> Interaction | None:
    """The command or the pressed button of an envelope; None if there is none."""
    if kind == "slash_commands":
        return _command_in(payload, envelope_id)
    if kind == "interactive" and payload.get("type") == "block_actions":
        return _press_in(payload)
    return None


def _command_in(payload: JsonObject, envelope_id: str) -> Interaction | None:
    name, arguments = (config_values.text(payload.get(field)) for field in ("command", "text"))
    if name == APP_COMMAND:
        name, _, arguments = (arguments.strip() or "help").partition(" ")
        name = f"/{name.lstrip('/')}"
    place = _place(payload, payload.get("user_id"), payload.get("channel_id"))
    if not place.channel or not place.user or not name.startswith("/"):
        return None
    unique = config_values.text(payload.get("trigger_id")) or envelope_id
    return Interaction(place, f"{name} {arguments}".strip(), f"{COMMAND_PREFIX}{unique}")


def _press_in(payload: JsonObject) -> Interaction | None:
    user, channel, message = (
        config_values.mapping(payload.get(name)) for name in ("user", "channel", "message")
    )
    actions = list_in(payload, "actions")
    action = config_values.mapping(actions[0]) if actions else {}
    thread = message.get("thread_ts")
    place = _place(payload, user.get("id"), channel.get("id"), ts=message.get("ts"), thread=thread)
    data = config_values.text(action.get("value"))
    if not place.channel or not place.user or not data:
        return None
    unique = f"{place.ts}:{config_values.text(action.get('action_ts'))}"
    text = config_values.text(message.get("text"))
    return Interaction(place, data, unique, is_press=True, message_text=text)


def _place(
    payload: JsonObject, user: object, channel: object, *, ts: object = "", thread: object = ""
) -> SlackMessage:
    """Where something happened, as a message without text."""
    team = config_values.mapping(payload.get("team")).get("id") or payload.get("team_id")
    message: JsonObject = {
        "user": config_values.text(user),
        "ts": config_values.text(ts),
        "thread_ts": config_values.text(thread),
    }
    return SlackMessage(
        message, config_values.text(channel), "", config_values.text(team), is_edit=False
    )


async def read_interaction(
    interaction: Interaction, reader: SlackMessageReader
) -> MessageEvent | None:
    """The message that a command or a pressed button sends."""
    source = await reader.source_of(interaction.place)
    if interaction.is_press:
        return pressed(interaction.text, source, interaction.interaction_id)
    return MessageEvent(
        interaction.text, MessageType.COMMAND, source, message_id=interaction.interaction_id
    )


def blocks(text: str, buttons: Sequence[Button]) -> list[JsonObject]:
    """A text with buttons below it."""
    sections: list[JsonObject] = [
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": text[first : first + MAX_SECTION_CHARS]},
        }
        for first in range(0, len(text), MAX_SECTION_CHARS)
    ]
    elements: list[JsonObject] = [
        {
            "type": "button",
            "action_id": f"hermes-{number}",
            "text": {"type": "plain_text", "text": button.label},
            "value": button.data,
        }
        for number, button in enumerate(buttons)
    ]
    return [*sections, {"type": "actions", "elements": list(elements)}]


log = logging.getLogger(__name__)

REQUEST_ERRORS: Final = (SlackClientError, ClientError, OSError, TimeoutError)
APP_TOKEN_VARIABLE: Final = "SLACK_APP_TOKEN"  # noqa: S105 - the name of a variable
HELLO_SECONDS: Final = 30.0
HEARTBEAT_SECONDS: Final = 20.0
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024


class Envelope(TypedDict, total=False):
    """A frame that Slack sends: a greeting, an event, or the request to reconnect."""

    type: str
    envelope_id: str
    reason: str
    payload: JsonObject


class SlackEventHandler(Protocol):
    """Receives the envelopes of a socket; its methods do not block."""

    def connection_opened(self) -> None:
        """A connection was opened; earlier messages may have to be fetched."""

    def take(self, envelope: Envelope) -> bool:
        """Take an envelope; whether to acknowledge it at once instead of once it is stored."""


class SlackSocket:
    """A WebSocket that reconnects whenever it ends."""

    def __init__(
        self,
        web: AsyncWebClient,
        session: ClientSession,
        token: str,
        delay: ReconnectDelay,
        problems: ConnectionProblems,
    ) -> None:
        self._web = web
        self._session = session
        self._token = token
        self._delay = delay
        self._problems = problems
        self._websocket: ClientWebSocketResponse | None = None

    async def open(self) -> None:
        """Open the connection; returns after the hello message."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                answer = await self._web.apps_connections_open(app_token=self._token)
                websocket = await self._session.ws_connect(
                    str(answer["url"]), heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME_BYTES
                )
        except (*REQUEST_ERRORS, KeyError) as error:
            # Without the cause, whose URL contains a ticket.
            raise results.platform_error(error, APP_TOKEN_VARIABLE) from None
        await _wait_for_hello(websocket)
        old, self._websocket = self._websocket, websocket
        self._delay.connected()
        self._problems.clear(APP_TOKEN_VARIABLE)
        self._problems.clear(UNREACHABLE)
        if old is not None:
            await old.close()

    async def run(self, handler: SlackEventHandler) -> None:
        """Receive envelopes until cancelled; reconnect less often if Slack rejects the app."""
        has_gap = True
        while True:
            try:
                if self._websocket is None or self._websocket.closed:
                    has_gap = True
                    await self.open()
                if has_gap:
                    handler.connection_opened()
                has_gap = not await self._is_replaced(handler)
            except PlatformRefusedError as error:
                self._problems.note(APP_TOKEN_VARIABLE, str(error))
                await self._pause(error)
            except (*REQUEST_ERRORS, PlatformError) as error:
                await self._pause(error)

    async def _pause(self, error: Exception) -> None:
        pause = self._delay.next_delay(is_refused=isinstance(error, PlatformRefusedError))
        log.warning(
            "Slack connection failed: %s; retrying in %g s", results.describe_error(error), pause
        )
        self._problems.note_failure(self._delay.failures, results.describe_error(error))
        await asyncio.sleep(pause)

    async def _is_replaced(self, handler: SlackEventHandler) -> bool:
        """Receive envelopes; whether the connection was replaced by another."""
        websocket = self._websocket
        if websocket is None:
            return False
        async for frame in websocket:
            envelope: Envelope = _read(frame.data) if frame.type is WSMsgType.TEXT else {}
            if envelope.get("type") == "disconnect":
                log.info("Slack requested a reconnect: %s", envelope.get("reason"))
                if not self._delay.is_stable:
                    await asyncio.sleep(self._delay.next_delay())
                await self.open()
                return True
            if envelope.get("envelope_id") and handler.take(envelope):
                await self.acknowledge(str(envelope["envelope_id"]))
        raise PlatformDownError("connection to Slack lost")

    async def acknowledge(self, envelope_id: str) -> None:
        """Acknowledge an envelope; if that fails, Slack redelivers it."""
        try:
            if self._websocket is not None:
                await self._websocket.send_str(json.dumps({"envelope_id": envelope_id}))
        except (ClientError, OSError) as error:
            reason = results.describe_error(error)
            log.info("Slack envelope not acknowledged, expecting redelivery: %s", reason)

    async def close(self) -> None:
        """Close the connection."""
        websocket, self._websocket = self._websocket, None
        if websocket is not None:
            await websocket.close()


async def _wait_for_hello(websocket: ClientWebSocketResponse) -> None:
    """Wait for the hello message; close the connection if it does not arrive."""
    hello: Envelope = {}
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = _read((await websocket.receive()).data)
    except TimeoutError:
        log.info("no response from Slack")
    finally:
        if hello.get("type") != "hello":
            await websocket.close()
    if hello.get("type") != "hello":
        raise PlatformDownError("Slack opened a connection without a hello message")


def _read(data: Any) -> Envelope:
    try:
        result = json.loads(data) if isinstance(data, str) else None
    except ValueError:
        result = None
    if isinstance(result, dict) and "\\ud" in data.lower():
        result = without_lone_surrogates(result)  # they cannot be stored
    return cast("Envelope", result) if isinstance(result, dict) else {}


BOT_TOKEN_VARIABLE: Final = "SLACK_BOT_TOKEN"  # noqa: S105 - the name of a variable
MAX_CONCURRENT_READS: Final = 2  # of channel histories
PAGE_MESSAGES: Final = 200
MAX_PAGES: Final = 25  # of one channel; older messages are skipped
NUMBERS_PER_HOUR: Final = 3_600_000_000  # message numbers are microseconds
TEMPORARY_KINDS: Final = (ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT, ErrorKind.UNKNOWN)


def number_of(ts: str) -> int:
    """The `ts` of a message as a number of microseconds."""
    seconds, _, fraction = ts.partition(".")
    return config_values.number(f"{seconds}{fraction:0<6.6}", 0)


def ts_of(number: int) -> str:
    """The `ts` of a message number."""
    return f"{number // 10**6}.{number % 10**6:06d}"


def number_of_now() -> int:
    """The number of a message sent now."""
    return time.time_ns() // 1000


class SlackListener:
    """Receives messages in order per channel."""

    def __init__(
        self,
        web: AsyncWebClient,
        reader: SlackMessageReader,
        socket: SlackSocket,
        cursors: Cursors,
        receive: Receive,
        problems: ConnectionProblems,
        guard: UpdateGuard,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self._guard = guard
        self._web = web
        self._reader = reader
        self._socket = socket
        self._cursors = cursors
        self._receive = receive
        self._problems = problems
        self._queues = OrderedQueues("Slack", backoff, max_queued, (ClientError,))
        self._caught_up: set[str] = set()  # channels that were read over this connection
        self._received_keys = RecentItems()
        self._read_slots = asyncio.Semaphore(MAX_CONCURRENT_READS)

    async def drop(self) -> None:
        """Stop; queued messages are redelivered or fetched."""
        await self._queues.close()

    # Events

    def connection_opened(self) -> None:
        """Catch up in every known channel."""
        self._caught_up = set()
        for channel in self._cursors.channels:
            self._enqueue(channel, functools.partial(self._catch_up, channel))

    def _enqueue(self, channel: str, job: Job) -> None:
        """Queue a job; dropped messages are not acknowledged and are fetched later."""
        self._queues.add(channel, job, functools.partial(self._catch_up_again, channel))

    def take(self, envelope: Envelope) -> bool:
        """Queue the message of an envelope; True if there is none or it was received before.

        An envelope that cannot be read is set aside: Slack would send it again.
        """
        is_queued = attempt("read a Slack envelope", lambda: self._take(envelope))
        if isinstance(is_queued, Failure):
            self._enqueue("", functools.partial(self._set_aside, envelope, is_queued.error))
            return False
        return is_queued

    async def _set_aside(self, envelope: Envelope, error: Exception) -> None:
        name = str(envelope["envelope_id"])
        await self._guard.set_aside(name, envelope, f"{type(error).__name__}: {error}")
        await self._socket.acknowledge(name)

    def _take(self, envelope: Envelope) -> bool:
        name = str(envelope["envelope_id"])
        payload = config_values.mapping(envelope.get("payload"))
        is_event = envelope.get("type") == "events_api"
        deletion = messages.deletion_in(payload) if is_event else None
        if deletion is not None and deletion.source is not None:
            job = functools.partial(self._receive_deletion, name, deletion)
            self._enqueue(deletion.source.chat_id, job)
            return False
        interaction = interaction_in(str(envelope.get("type")), payload, name)
        if interaction is not None:
            job = functools.partial(self._receive_interaction, name, interaction)
            self._enqueue(interaction.place.channel, job)
            return False
        sent = messages.message_in(payload) if is_event else None
        if sent is None or sent.key in self._received_keys:
            return True
        self._enqueue(sent.channel, functools.partial(self._receive_envelope, name, sent))
        return False

    # One channel

    async def _receive_envelope(self, envelope_id: str, sent: SlackMessage) -> None:
        await self._catch_up(sent.channel)
        await self._receive_once(sent)
        await self._socket.acknowledge(envelope_id)
        if not self._queues.is_waiting(sent.channel):
            await self._cursors.save(sent.channel)

    async def _receive_deletion(self, envelope_id: str, deletion: MessageEvent) -> None:
        await self._receive(deletion)
        await self._socket.acknowledge(envelope_id)

    async def _receive_interaction(self, envelope_id: str, interaction: Interaction) -> None:
        """Receive a command or a pressed button; then the buttons of the message go."""
        work = self._read_interaction(interaction)
        await self._guard.handle(interaction.interaction_id, interaction._asdict(), work)
        await self._socket.acknowledge(envelope_id)
        if interaction.is_press:
            try:
                await self._web.chat_update(
                    channel=interaction.place.channel,
                    ts=interaction.place.ts,
                    text=interaction.message_text or "…",
                    blocks=[],
                )
            except REQUEST_ERRORS as error:
                log.info("Slack buttons not removed: %s", results.describe_error(error))

    async def _read_interaction(self, interaction: Interaction) -> None:
        event = await read_interaction(interaction, self._reader)
        if event is not None:
            await self._receive(event)

    async def _receive_once(self, sent: SlackMessage) -> None:
        if sent.key in self._received_keys:
            return
        await self._guard.handle(str(sent.key), sent.message, self._read_and_receive(sent))
        if not sent.is_edit:
            await self._cursors.reached(sent.channel, number_of(sent.ts))
        self._received_keys.add(sent.key)

    async def _read_and_receive(self, sent: SlackMessage) -> None:
        event = await self._reader.read(sent)
        if event is not None:
            await self._receive(event)

    async def _catch_up_again(self, channel: str) -> None:
        """Receive the messages that did not fit into the queue."""
        self._caught_up.discard(channel)
        await self._catch_up(channel)

    async def _catch_up(self, channel: str) -> None:
        """Receive the missed messages of a channel, once per connection."""
        if channel in self._caught_up:
            return
        caught_up = self._caught_up
        last = await self._cursors.open(channel, self._cursors.start)
        try:
            async with self._read_slots:
                missed = await self._missed(channel, last)
            self._problems.clear(BOT_TOKEN_VARIABLE)
        except SlackApiError as error:
            missed = []
            await self._handle_history_error(channel, error)
        except SlackClientError as error:
            raise PlatformDownError(results.describe_error(error)) from error
        for message in missed:
            sent = SlackMessage(message, channel, "", self._reader.team, is_edit=False)
            if messages.is_user_message(sent):
                await self._receive_once(sent)
        await self._cursors.save(channel)
        caught_up.add(channel)

    async def _handle_history_error(self, channel: str, error: SlackApiError) -> None:
        """Handle an unreadable history; PlatformDownError to retry a temporary error."""
        if results.is_token_error(error):
            trouble = results.platform_error(error, BOT_TOKEN_VARIABLE)
            self._problems.note(BOT_TOKEN_VARIABLE, str(trouble))
            raise trouble from error
        result = results.failure(error)
        if result.error_kind in TEMPORARY_KINDS:
            await asyncio.sleep(result.retry_after or 0)
            raise PlatformDownError(results.describe_error(error)) from error
        log.warning("channel %s history is unreadable: %s", channel, result.error)
        if result.error_kind is ErrorKind.NOT_FOUND:
            await self._cursors.forget(channel)

    async def _missed(self, channel: str, last: int) -> list[JsonObject]:
        """The messages after a cursor, oldest first; Slack lists the newest first."""
        result: list[JsonObject] = []
        latest: str | None = None
        for _ in range(MAX_PAGES):
            answer = await self._web.conversations_history(
                channel=channel, oldest=ts_of(last), latest=latest, limit=PAGE_MESSAGES
            )
            facts = config_values.mapping(answer.data)
            page = [config_values.mapping(message) for message in list_in(facts, "messages")]
            result += page
            if not facts.get("has_more") or not page:
                break
            latest = config_values.text(page[-1].get("ts"))
        return result[::-1]
