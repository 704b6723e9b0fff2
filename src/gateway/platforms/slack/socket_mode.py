"""Slack's Socket Mode: envelopes come over a WebSocket, and each is acknowledged by its id.

The library's own client is not used for it: it knocks for ever at an address that has
expired, and writes addresses, which hold a ticket, into the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import ClientError, WSMsgType
from slack_sdk.errors import SlackClientError

from gateway.platforms.slack import results
from hermes_core.errors import PlatformDownError, PlatformError, PlatformRefusedError

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientWebSocketResponse
    from slack_sdk.web.async_client import AsyncWebClient

    from gateway.platforms.backoff import Patience
    from gateway.platforms.refusals import Refusals

log = logging.getLogger(__name__)

TROUBLE: Final = (SlackClientError, ClientError, OSError, TimeoutError)
APP_TOKEN: Final = "SLACK_APP_TOKEN"  # noqa: S105 - the name of a variable
HELLO_SECONDS: Final = 30.0
HEARTBEAT_SECONDS: Final = 20.0
LARGEST: Final = 16 * 1024 * 1024


class Hears(Protocol):
    """What is told of what comes from Slack; nothing of it waits."""

    def begun(self) -> None:
        """A connection was opened; what came before it may have to be fetched."""

    def take(self, envelope: dict[str, Any]) -> bool:
        """An envelope; whether it may be acknowledged at once, or is when it is safe."""


class Socket:
    """A WebSocket that is opened anew whenever it ends."""

    def __init__(
        self,
        web: AsyncWebClient,
        session: ClientSession,
        token: str,
        patience: Patience,
        refusals: Refusals,
    ) -> None:
        self._web = web
        self._session = session
        self._token = token
        self._patience = patience
        self._refusals = refusals
        self._line: ClientWebSocketResponse | None = None

    async def open(self) -> None:
        """Open it; returns when Slack has said hello."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                answer = await self._web.apps_connections_open(app_token=self._token)
                line = await self._session.ws_connect(
                    str(answer["url"]), heartbeat=HEARTBEAT_SECONDS, max_msg_size=LARGEST
                )
        except (*TROUBLE, KeyError) as error:
            # Without its cause, in which the address is written, and the ticket in that.
            raise results.trouble(error, APP_TOKEN) from None
        await _greet(line)
        old, self._line = self._line, line
        self._patience.opened()
        self._refusals.clear(APP_TOKEN)
        if old is not None:
            await old.close()

    async def run(self, hears: Hears) -> None:
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
                self._refusals.note(APP_TOKEN, str(error))
                await self._pause(error)
            except (*TROUBLE, PlatformError) as error:
                await self._pause(error)

    async def _pause(self, error: Exception) -> None:
        pause = self._patience.pause(is_refused=isinstance(error, PlatformRefusedError))
        log.warning("%s; again in %g s", results.described(error), pause)
        await asyncio.sleep(pause)

    async def _is_replaced(self, hears: Hears) -> bool:
        """Hand over what comes; whether the connection ended after another was opened."""
        line = self._line
        if line is None:
            return False
        async for frame in line:
            envelope = _read(frame.data) if frame.type is WSMsgType.TEXT else {}
            if envelope.get("type") == "disconnect":
                log.info("Slack wants another connection: %s", envelope.get("reason"))
                if not self._patience.is_steady:
                    await asyncio.sleep(self._patience.pause())
                await self.open()
                return True
            if envelope.get("envelope_id") and hears.take(envelope):
                await self.acknowledge(str(envelope["envelope_id"]))
        raise PlatformDownError("the connection to Slack ended")

    async def acknowledge(self, envelope_id: str) -> None:
        """Tell Slack that an envelope is safe; if that fails, it comes again."""
        try:
            if self._line is not None:
                await self._line.send_str(json.dumps({"envelope_id": envelope_id}))
        except (ClientError, OSError) as error:
            reason = results.described(error)
            log.info("an envelope was not acknowledged and will come again: %s", reason)

    async def close(self) -> None:
        """Let go."""
        line, self._line = self._line, None
        if line is not None:
            await line.close()


async def _greet(line: ClientWebSocketResponse) -> None:
    """Wait for Slack's hello; without one a connection is closed."""
    hello: dict[str, Any] = {}
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = _read((await line.receive()).data)
    except TimeoutError:
        log.info("Slack says nothing")
    finally:
        if hello.get("type") != "hello":
            await line.close()
    if hello.get("type") != "hello":
        raise PlatformDownError("Slack opened a connection and did not say hello")


def _read(data: Any) -> dict[str, Any]:
    try:
        found = json.loads(data) if isinstance(data, str) else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}
