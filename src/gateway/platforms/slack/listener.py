"""What happens on Slack, channel by channel: received first, acknowledged after that.

Slack sends again what was not acknowledged, for some minutes. What was written during a
longer absence is read from the history of each channel that was ever heard, before anything
newer of that channel is handed over.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import ClientError, WSMsgType
from slack_sdk.errors import SlackApiError, SlackClientError

from gateway import config_values
from gateway.platforms.base import ErrorKind
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.ordered_queues import MAX_QUEUED_JOBS, OrderedQueues
from gateway.platforms.reconnect import RECONNECT_BACKOFF
from gateway.platforms.slack import messages, results
from gateway.platforms.slack.messages import SlackMessage
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse
    from slack_sdk.web.async_client import AsyncWebClient

    from gateway.platforms.base import Receive
    from gateway.platforms.cursors import Cursors
    from gateway.platforms.ordered_queues import Job
    from gateway.platforms.problems import ConnectionProblems
    from gateway.platforms.reconnect import ReconnectDelay
    from gateway.platforms.slack.messages import SlackMessageReader
    from hermes_core.backoff import Backoff

log = logging.getLogger(__name__)

REQUEST_ERRORS: Final = (SlackClientError, ClientError, OSError, TimeoutError)
APP_TOKEN_VARIABLE: Final = "SLACK_APP_TOKEN"  # noqa: S105 - the name of a variable
HELLO_SECONDS: Final = 30.0
HEARTBEAT_SECONDS: Final = 20.0
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024


class SlackEventHandler(Protocol):
    """What is told of what comes from Slack; nothing of it waits."""

    def begun(self) -> None:
        """A connection was opened; what came before it may have to be fetched."""

    def take(self, envelope: dict[str, Any]) -> bool:
        """An envelope; whether it may be acknowledged at once, or is when it is safe."""


class SlackSocket:
    """A WebSocket that is opened anew whenever it ends."""

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
        self._line: ClientWebSocketResponse | None = None

    async def open(self) -> None:
        """Open it; returns when Slack has said hello."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                answer = await self._web.apps_connections_open(app_token=self._token)
                line = await self._session.ws_connect(
                    str(answer["url"]), heartbeat=HEARTBEAT_SECONDS, max_msg_size=MAX_FRAME_BYTES
                )
        except (*REQUEST_ERRORS, KeyError) as error:
            # Without its cause, in which the address is written, and the ticket in that.
            raise results.platform_error(error, APP_TOKEN_VARIABLE) from None
        await _wait_for_hello(line)
        old, self._line = self._line, line
        self._delay.connected()
        self._problems.clear(APP_TOKEN_VARIABLE)
        if old is not None:
            await old.close()

    async def run(self, hears: SlackEventHandler) -> None:
        """Hand over envelopes until cancelled; try seldom where Slack does not want us."""
        has_gap = True
        while True:
            try:
                if self._line is None or self._line.closed:
                    has_gap = True
                    await self.open()
                if has_gap:
                    hears.begun()
                has_gap = not await self._is_replaced(hears)
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
        await asyncio.sleep(pause)

    async def _is_replaced(self, hears: SlackEventHandler) -> bool:
        """Hand over what comes; whether the connection ended after another was opened."""
        line = self._line
        if line is None:
            return False
        async for frame in line:
            envelope = _read(frame.data) if frame.type is WSMsgType.TEXT else {}
            if envelope.get("type") == "disconnect":
                log.info("Slack requested a reconnect: %s", envelope.get("reason"))
                if not self._delay.is_stable:
                    await asyncio.sleep(self._delay.next_delay())
                await self.open()
                return True
            if envelope.get("envelope_id") and hears.take(envelope):
                await self.acknowledge(str(envelope["envelope_id"]))
        raise PlatformDownError("connection to Slack lost")

    async def acknowledge(self, envelope_id: str) -> None:
        """Tell Slack that an envelope is safe; if that fails, it comes again."""
        try:
            if self._line is not None:
                await self._line.send_str(json.dumps({"envelope_id": envelope_id}))
        except (ClientError, OSError) as error:
            reason = results.describe_error(error)
            log.info("Slack envelope not acknowledged, expecting redelivery: %s", reason)

    async def close(self) -> None:
        """Let go."""
        line, self._line = self._line, None
        if line is not None:
            await line.close()


async def _wait_for_hello(line: ClientWebSocketResponse) -> None:
    """Wait for Slack's hello; without one a connection is closed."""
    hello: dict[str, Any] = {}
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = _read((await line.receive()).data)
    except TimeoutError:
        log.info("no response from Slack")
    finally:
        if hello.get("type") != "hello":
            await line.close()
    if hello.get("type") != "hello":
        raise PlatformDownError("Slack opened a connection without a hello message")


def _read(data: Any) -> dict[str, Any]:
    try:
        found = json.loads(data) if isinstance(data, str) else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


BOT_TOKEN_VARIABLE: Final = "SLACK_BOT_TOKEN"  # noqa: S105 - the name of a variable
MAX_CONCURRENT_READS: Final = 2  # channels that are read at the same time
PAGE_MESSAGES: Final = 200
MAX_PAGES: Final = 25  # of one channel; what is older is left
NUMBERS_PER_HOUR: Final = 3_600_000_000  # in numbers of messages
TEMPORARY_KINDS: Final = (ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT, ErrorKind.UNKNOWN)


def number_of(ts: str) -> int:
    """The id of a message as a number: millionths of a second."""
    seconds, _, fraction = ts.partition(".")
    return config_values.number(f"{seconds}{fraction:0<6.6}", 0)


def ts_of(number: int) -> str:
    """The id of the message that has a number."""
    return f"{number // 10**6}.{number % 10**6:06d}"


def number_of_now() -> int:
    """The number that a message would have now."""
    return time.time_ns() // 1000


class SlackListener:
    """Hands messages over, in the order of their channel."""

    def __init__(
        self,
        web: AsyncWebClient,
        reader: SlackMessageReader,
        socket: SlackSocket,
        cursors: Cursors,
        receive: Receive,
        problems: ConnectionProblems,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_queued: int = MAX_QUEUED_JOBS,
    ) -> None:
        self._web = web
        self._reader = reader
        self._socket = socket
        self._cursors = cursors
        self._receive = receive
        self._problems = problems
        self._queues = OrderedQueues("Slack", backoff, max_queued)
        self._filled: set[str] = set()  # channels that were read over this connection
        self._handed = RecentItems()
        self._few = asyncio.Semaphore(MAX_CONCURRENT_READS)

    async def drop(self) -> None:
        """Stop; what was not handed over comes again."""
        await self._queues.close()

    # What the socket tells

    def begun(self) -> None:
        """Everything that is known has to be looked at."""
        self._filled = set()
        for channel in self._cursors.channels:
            self._later(channel, functools.partial(self._fill, channel))

    def _later(self, channel: str, job: Job) -> None:
        """What there is no room for is not acknowledged, and comes again or is fetched."""
        self._queues.add(channel, job, functools.partial(self._fill_anew, channel))

    def take(self, envelope: dict[str, Any]) -> bool:
        """An envelope; whether what is in it is not for us, or was received before."""
        name = str(envelope["envelope_id"])
        payload = config_values.mapping(envelope.get("payload"))
        is_event = envelope.get("type") == "events_api"
        said = messages.message_in(payload) if is_event else None
        if said is None or said.key in self._handed:
            return True
        self._later(said.channel, functools.partial(self._hand_over, name, said))
        return False

    # One line

    async def _hand_over(self, envelope_id: str, said: SlackMessage) -> None:
        await self._fill(said.channel)
        await self._received(said)
        await self._socket.acknowledge(envelope_id)
        if not self._queues.is_waiting(said.channel):
            await self._cursors.save(said.channel)

    async def _received(self, said: SlackMessage) -> None:
        if said.key in self._handed:
            return
        event = await self._reader.read(said)
        if event is not None:
            await self._receive(event)
        if not said.is_edit:
            await self._cursors.reached(said.channel, number_of(said.ts))
        self._handed.add(said.key)

    async def _fill_anew(self, channel: str) -> None:
        """Hand over what there was no room for while messages could not be kept."""
        self._filled.discard(channel)
        await self._fill(channel)

    async def _fill(self, channel: str) -> None:
        """Hand over what was missed in a channel, once for a connection."""
        if channel in self._filled:
            return
        filled = self._filled
        last = await self._cursors.open(channel, self._cursors.start)
        try:
            async with self._few:
                missed = await self._missed(channel, last)
            self._problems.clear(BOT_TOKEN_VARIABLE)
        except SlackApiError as error:
            missed = []
            await self._give_up(channel, error)
        except SlackClientError as error:
            raise PlatformDownError(results.describe_error(error)) from error
        for message in missed:
            said = SlackMessage(message, channel, "", self._reader.team, is_edit=False)
            if messages.is_user_message(said):
                await self._received(said)
        await self._cursors.save(channel)
        filled.add(channel)

    async def _give_up(self, channel: str, error: SlackApiError) -> None:
        """A channel that cannot be read; one that cannot be read now is tried again."""
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

    async def _missed(self, channel: str, last: int) -> list[dict[str, Any]]:
        """What was written after a message, the oldest first; Slack tells the newest first."""
        found: list[dict[str, Any]] = []
        latest: str | None = None
        for _ in range(MAX_PAGES):
            answer = await self._web.conversations_history(
                channel=channel, oldest=ts_of(last), latest=latest, limit=PAGE_MESSAGES
            )
            facts = config_values.mapping(answer.data)
            page = [config_values.mapping(one) for one in facts.get("messages") or []]
            found += page
            if not facts.get("has_more") or not page:
                break
            latest = config_values.text(page[-1].get("ts"))
        return found[::-1]
