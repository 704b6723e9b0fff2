"""An HTTP API as OpenAI's, for programs that know how to speak to that one.

Needs API_SERVER_KEY, which clients show as `Authorization: Bearer …`; where the web server
listens on more than this machine, it has to have 16 characters or more. Every request is a
message in a session, and kept like one: a client that goes away, or a restart, loses no
answer. Under `platforms.api_server` in config.yaml:

    largest_body    bytes of a request without its files (default: 1048576)
    answer_seconds  how long a request waits for its answer (default: 1800)

The endpoints are described in docs/reference/api.md.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from gateway.platforms import incoming_files
from gateway.platforms.api_server.answer_cache import Answers, Given
from gateway.platforms.api_server.exchanges import Exchange, Exchanges, LeavingError
from gateway.platforms.api_server.requests import token_of
from gateway.platforms.api_server.routes import Api, Bounds
from gateway.platforms.base import Abilities, MessageEvent, Outgoing, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.api_server.requests import Ask, Attached
    from gateway.platforms.base import Receive, Surroundings

log = logging.getLogger(__name__)

NAME: Final = "api_server"
KEY: Final = "API_SERVER_KEY"
SHORTEST_KEY: Final = 16
LARGEST_BODY: Final = 1024 * 1024
ANSWER_SECONDS: Final = 1800.0
USER: Final = "api"


class ApiAdapter:
    """Requests become messages; what is sent to a session answers the one who waits there."""

    abilities: ClassVar = Abilities(idempotent=True, longest_text=1_000_000)

    def __init__(self, surroundings: Surroundings) -> None:
        self.account = NAME
        self._front = surroundings.front
        self._media = surroundings.media
        self._key = _key(surroundings)
        self._bounds = _bounds(surroundings)
        self._answers = Answers(surroundings.memory)
        self._exchanges = Exchanges()
        self._receive: Receive | None = None

    async def connect(self, receive: Receive) -> None:
        """Serve the routes."""
        self._receive = receive
        self._exchanges = Exchanges()
        api = Api(self._key, self._bounds, self._exchanges, self._answers, self._say)
        await self._front.add(NAME, api.routes())

    async def disconnect(self) -> None:
        """Serve them no more; whoever waits is told to ask again."""
        self._front.remove(NAME)
        self._receive = None
        self._exchanges.leave()

    # In

    async def _say(self, ask: Ask, chat_id: str) -> None:
        """Hand a request to the gateway; when this returns, it is on the disk."""
        if self._receive is None:
            raise LeavingError
        user = ask.user or USER
        source = SessionSource(Platform.API_SERVER, chat_id, user_id=user, user_name=user)
        event = MessageEvent(ask.text, source=source, message_id=ask.message_id)
        for file in ask.files:
            await self._attach(file, event)
        await self._receive(event)

    async def _attach(self, file: Attached, event: MessageEvent) -> None:
        try:
            if file.data is None:
                raise HermesError("only data: addresses are taken")
            kept = await asyncio.to_thread(self._media.keep, file.data, file.name, file.mime)
        except (HermesError, OSError) as error:
            log.info("a file of a request was left out: %s", error)
            incoming_files.leave_note(event, file.name)
            return
        incoming_files.attach(event, kept, incoming_files.kind_of(kept.mime))

    # Out

    async def piece(self, outgoing: Outgoing, earlier: str) -> None:
        """More of an answer is written."""
        if outgoing.reply_to:
            self._exchanges.grow(token_of(outgoing.reply_to), earlier, outgoing.text)

    async def send(self, outgoing: Outgoing) -> SendResult:
        """Answer whoever waits; the answer is kept for those who ask again."""
        if outgoing.reply_to is None:
            return await self._note(outgoing)
        token = token_of(outgoing.reply_to)
        answered = self._exchanges.answered_by(token)
        if not answered:  # the client asked before a restart
            await self._answers.keep(Given(token, outgoing.chat_id, outgoing.text))
        for one in answered:
            await self._keep(one, outgoing.text)
            self._exchanges.settle(one, outgoing.text)
        return SendResult(True, message_id=token)

    async def _note(self, outgoing: Outgoing) -> SendResult:
        """What names no request: a question of the agent's, or the outcome of a command."""
        reached = self._exchanges.reached_by_note(outgoing.chat_id)
        if reached is None:
            log.info("nobody waits in %s; it stays in the history", outgoing.chat_id)
            return SendResult(True, message_id=outgoing.key)
        await self._keep(reached, outgoing.text)
        self._exchanges.settle(reached, outgoing.text, is_note=True)
        return SendResult(True, message_id=reached.token)

    async def _keep(self, one: Exchange, text: str) -> None:
        await self._answers.keep(Given(one.token, one.chat_id, text, one.digest, one.created))


def make(surroundings: Surroundings) -> ApiAdapter:
    """The adapter of this gateway."""
    return ApiAdapter(surroundings)


def _key(surroundings: Surroundings) -> str:
    if surroundings.config.reply_to_mode == "off":
        raise PlatformRefusedError("`reply_to_mode` of api_server cannot be `off`")
    key = surroundings.secret(KEY)
    if not key:
        raise PlatformRefusedError(f"the API needs {KEY}, in the environment or in .env")
    if not _is_here(surroundings.front.host) and len(key) < SHORTEST_KEY:
        text = f"{KEY} needs {SHORTEST_KEY} characters or more where others can reach the API"
        raise PlatformRefusedError(text)
    return key


def _is_here(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bounds(surroundings: Surroundings) -> Bounds:
    extra = surroundings.config.extra
    try:
        body = int(extra.get("largest_body", LARGEST_BODY))
        seconds = float(extra.get("answer_seconds", ANSWER_SECONDS))
    except (TypeError, ValueError) as error:
        text = "`largest_body` and `answer_seconds` of api_server have to be numbers"
        raise PlatformRefusedError(text) from error
    return Bounds(body, surroundings.media.largest, seconds)
