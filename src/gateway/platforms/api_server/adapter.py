"""An OpenAI-compatible HTTP API.

Requires API_SERVER_KEY, which clients send as `Authorization: Bearer …`; it must have 16 or more
characters unless the HTTP server is bound to loopback. Every request is stored as a message of a
session, so its answer survives a disconnected client and a restart. Under `platforms.api_server`
in config.yaml:

    largest_body    maximum bytes of a request without its files (default: 1048576)
    answer_seconds  how long a request waits for its answer (default: 1800)

The endpoints are described in docs/reference/api.md.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from gateway.platforms import incoming_files
from gateway.platforms.api_server import requests
from gateway.platforms.api_server.endpoints import ApiEndpoints, RequestLimits
from gateway.platforms.api_server.exchanges import (
    Answer,
    AnswerCache,
    Exchange,
    Exchanges,
    StoppingError,
    StoredAnswer,
)
from gateway.platforms.api_server.requests import token_of
from gateway.platforms.base import Abilities, MessageEvent, OutgoingMessage, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.api_server.requests import ApiAttachment, ApiRequest
    from gateway.platforms.base import AdapterContext, Receive
    from hermes_state.delivery.api_requests import RequestPlan

log = logging.getLogger(__name__)

ROUTE_OWNER: Final = "api_server"
KEY_VARIABLE: Final = "API_SERVER_KEY"
MIN_KEY_CHARS: Final = 16
MAX_BODY_BYTES: Final = 1024 * 1024
ANSWER_SECONDS: Final = 1800.0
DEFAULT_USER: Final = "api"


class ApiAdapter:
    """Turns requests into messages and replies into answers."""

    abilities: ClassVar = Abilities(idempotent=True, longest_text=1_000_000)

    def __init__(self, context: AdapterContext) -> None:
        self.account = ROUTE_OWNER
        self._front = context.front
        self._media = context.media
        self._key = _key(context)
        self._find_key = context.find_api_key
        self._limits = _limits(context)
        self._answers = AnswerCache(context.memory)
        self._exchanges = Exchanges()
        self._receive: Receive | None = None
        if context.api_requests is None:
            raise PlatformRefusedError("The API needs the store for its requests.")
        self._requests = context.api_requests

    async def connect(self, receive: Receive) -> None:
        """Serve the routes."""
        self._receive = receive
        self._exchanges = Exchanges()
        api = ApiEndpoints(
            self._key,
            self._find_key,
            self._limits,
            self._exchanges,
            self._answers,
            self._submit_message,
            self._requests,
        )
        await self._front.add(ROUTE_OWNER, api.routes())

    async def disconnect(self) -> None:
        """Stop serving; waiting clients are asked to repeat their requests."""
        self._front.remove(ROUTE_OWNER)
        self._receive = None
        self._exchanges.cancel()

    # Requests

    async def _submit_message(self, request_data: ApiRequest, plan: RequestPlan) -> None:
        """Pass a request to the gateway; when this returns, it is on disk."""
        if self._receive is None:
            raise StoppingError
        user = request_data.user or DEFAULT_USER
        source = SessionSource(Platform.API_SERVER, plan.chat_id, user_id=user, user_name=user)
        known = _known_messages(request_data, plan)
        event = MessageEvent(
            request_data.text(known),
            source=source,
            message_id=request_data.message_id,
            instructions=request_data.instructions,
            continues=(plan.point.session_id, plan.point.message_id) if plan.point else None,
        )
        for file in request_data.files(known):
            await self._attach(file, event)
        await self._receive(event)

    async def _attach(self, file: ApiAttachment, event: MessageEvent) -> None:
        try:
            if file.data is None:
                raise HermesError("only data: URLs are supported")
            thread = await asyncio.to_thread(self._media.keep, file.data, file.name, file.mime)
        except (HermesError, OSError) as error:
            log.info("request file ignored: %s", error)
            incoming_files.add_note(event, file.name)
            return
        incoming_files.attach(event, thread, incoming_files.message_type_of(thread.mime))

    # Replies

    async def piece(self, outgoing: OutgoingMessage, earlier: str) -> None:
        """Stream a part of an answer."""
        if outgoing.reply_to:
            self._exchanges.grow(token_of(outgoing.reply_to), earlier, outgoing.text)

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Answer the waiting client; the answer is stored for repeated requests."""
        if outgoing.reply_to is None:
            return await self._note(outgoing)
        token = token_of(outgoing.reply_to)
        answer = Answer(outgoing.text, outgoing.usage, outgoing.failure, outgoing.problem)
        answered = self._exchanges.answered_by(token)
        if not answered:  # the request is from before a restart
            stored = StoredAnswer(token, outgoing.chat_id, answer.text)
            await self._answers.keep(stored.with_facts(answer))
        await self._record(token, outgoing)
        for item in answered:
            await self._keep(item, answer)
            if item.token != token:
                await self._record(item.token, outgoing)
            self._exchanges.settle(item, answer)
        return SendResult(True, message_id=token)

    async def _note(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a message without a request ID: a question of the agent or a command result."""
        reached = self._exchanges.reached_by_note(outgoing.chat_id)
        if reached is None:
            log.info("API reply not delivered: no client is waiting in %s", outgoing.chat_id)
            return SendResult(True, message_id=outgoing.key)
        answer = Answer(outgoing.text)
        await self._record(reached.token, outgoing)
        await self._keep(reached, answer)
        self._exchanges.settle(reached, answer, is_note=True)
        return SendResult(True, message_id=reached.token)

    async def _record(self, token: str, outgoing: OutgoingMessage) -> None:
        """Record the transcript that the client sends with its next request."""
        asked = await asyncio.to_thread(self._requests.asked_hash, token)
        exchange = self._exchanges.find(token)
        texts = [outgoing.text, exchange.text_with(outgoing.text) if exchange else outgoing.text]
        hashes = [requests.with_answer(asked, text) for text in texts] if asked else []
        is_turn = outgoing.usage is not None  # a command may have changed the conversation
        settle = functools.partial(self._requests.settle, is_failed=outgoing.failure is not None)
        await asyncio.to_thread(
            settle,
            token,
            [] if outgoing.failure is not None else hashes,
            outgoing.session_id if is_turn else None,
            outgoing.inbox_id if is_turn else None,
        )

    async def _keep(self, one: Exchange, answer: Answer) -> None:
        stored = StoredAnswer(one.token, one.chat_id, answer.text, one.digest, one.created)
        await self._answers.keep(stored.with_facts(answer))


def make(context: AdapterContext) -> ApiAdapter:
    """Create the adapter."""
    return ApiAdapter(context)


def _known_messages(request_data: ApiRequest, plan: RequestPlan) -> int:
    """How many of the earlier messages are in the conversation that a request continues."""
    hashes = requests.chain(request_data.earlier) if plan.matched else []
    return hashes.index(plan.matched) + 1 if plan.matched in hashes else 0


def _key(context: AdapterContext) -> str:
    if context.config.reply_to_mode == "off":
        raise PlatformRefusedError("platforms.api_server.reply_to_mode must not be `off`.")
    key = context.secret(KEY_VARIABLE)
    if not key:
        raise PlatformRefusedError(f"Set {KEY_VARIABLE} in the environment or in .env.")
    if not _is_loopback(context.front.host) and len(key) < MIN_KEY_CHARS:
        text = (
            f"{KEY_VARIABLE} must have {MIN_KEY_CHARS} or more characters unless bound to loopback."
        )
        raise PlatformRefusedError(text)
    return key


def _is_loopback(host: str) -> bool:
    """Whether a host is a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _limits(context: AdapterContext) -> RequestLimits:
    extra = context.config.extra
    try:
        body = int(str(extra.get("largest_body", MAX_BODY_BYTES)))
        seconds = float(str(extra.get("answer_seconds", ANSWER_SECONDS)))
    except ValueError as error:
        text = "platforms.api_server: `largest_body` and `answer_seconds` must be numbers."
        raise PlatformRefusedError(text) from error
    return RequestLimits(body, context.media.max_bytes, seconds)
