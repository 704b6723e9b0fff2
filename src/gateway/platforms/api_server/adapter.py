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
import hashlib
import hmac
import ipaddress
import logging
import time
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from gateway.platforms import incoming_files
from gateway.platforms.api_server import requests, responses
from gateway.platforms.api_server.exchanges import (
    AnswerCache,
    AnswerTimeoutError,
    Exchange,
    Exchanges,
    StoppingError,
    StoredAnswer,
)
from gateway.platforms.api_server.requests import (
    MODEL_NAME,
    OWNER_CALLER,
    ApiCaller,
    RequestError,
    for_caller,
    token_of,
)
from gateway.platforms.api_server.responses import AnswerMetadata
from gateway.platforms.base import Abilities, MessageEvent, OutgoingMessage, SendResult
from gateway.platforms.names import API_KEY_USER, Platform
from gateway.platforms.request_body import BodyTimeoutError, BodyTooLargeError, read_body
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError, PlatformRefusedError
from hermes_core.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from gateway.platforms.api_server.requests import ApiRequest
    from hermes_core.json_values import JsonData, JsonObject

    Handler = Callable[[Request], Awaitable[Response]]
    Read = Callable[[JsonObject, Mapping[str, str]], ApiRequest]
    # Passes a request to the gateway, in a session.
    Submit = Callable[[ApiRequest, str], Awaitable[None]]
    from gateway.platforms.api_server.requests import ApiAttachment, ApiRequest
    from gateway.platforms.base import AdapterContext, ApiKey, Receive

log = logging.getLogger(__name__)

SESSION_HEADER: Final = "X-Hermes-Session"
REPEAT_HINT: Final = (
    " Repeat the request with the same Idempotency-Key to get the reply when it is ready."
)


class RequestLimits(NamedTuple):
    """Size and time limits of requests."""

    body_bytes: int  # without files
    file_bytes: int  # of files in a body
    answer_seconds: float


class ApiEndpoints:
    """The HTTP endpoints."""

    def __init__(
        self,
        key: str,
        find_key: Callable[[str], ApiKey | None],
        limits: RequestLimits,
        exchanges: Exchanges,
        answers: AnswerCache,
        submit: Submit,
    ) -> None:
        self._key = key.encode()  # of the owner
        self._find_key = find_key
        self._limits = limits
        self._exchanges = exchanges
        self._answers = answers
        self._submit_message = submit
        self._started = int(time.time())

    def routes(self) -> list[Route]:
        """The routes; all of them require the key."""
        table: list[tuple[str, str, Handler]] = [
            ("/v1/chat/completions", "POST", self._completion),
            ("/v1/responses", "POST", self._response),
            ("/v1/responses/{response_id}", "GET", self._known_response),
            ("/v1/models", "GET", self._models),
        ]
        return [
            Route(path, functools.partial(self._guarded, handler), methods=[method])
            for path, method, handler in table
        ]

    async def _guarded(self, handler: Handler, request: Request) -> Response:
        """Check the key and run a handler; errors have the format of OpenAI."""
        caller = await self._caller(request)
        if caller is None:
            headers = {"WWW-Authenticate": "Bearer"}
            text = "Missing or invalid API key. Send `Authorization: Bearer API_SERVER_KEY`."
            return _error(401, text, "invalid_api_key", headers)
        request.state.caller = caller
        try:
            return await handler(request)
        except (RequestError, AnswerTimeoutError, StoppingError, OSError, HermesError) as error:
            return _error(*_error_details(error))

    async def _caller(self, request: Request) -> ApiCaller | None:
        """The client that a key belongs to; None if the key is wrong."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        key = shown.strip()
        if scheme.lower() != "bearer":
            return None
        if hmac.compare_digest(key.encode(), self._key):
            return OWNER_CALLER
        found = await asyncio.to_thread(self._find_key, key)
        if found is None:
            return None
        user = API_KEY_USER.format(name=found.name)
        return ApiCaller(user, "" if found.role is Role.OWNER else f"{user}/")

    # Endpoints

    async def _models(self, _request: Request) -> Response:
        return JSONResponse(responses.models(MODEL_NAME, self._started))

    async def _completion(self, request: Request) -> Response:
        request_data = await self._read(request, requests.read_completion)
        exchange = await self._submit(request_data)
        if request_data.is_stream:
            return self._stream(responses.completion_events, request_data, exchange)
        return await self._complete(responses.completion, request_data, exchange)

    async def _response(self, request: Request) -> Response:
        request_data = await self._read(request, requests.read_response)
        exchange = await self._submit(request_data)
        if request_data.is_stream:
            return self._stream(responses.response_events, request_data, exchange)
        return await self._complete(responses.response, request_data, exchange)

    async def _known_response(self, request: Request) -> Response:
        token = request.path_params["response_id"].removeprefix("resp_")
        prefix = request.state.caller.prefix
        waiting = self._exchanges.find(token)
        stored = await self._answers.find(token)
        chat = stored.chat_id if stored else waiting.chat_id if waiting else ""
        if not chat or not chat.startswith(prefix):
            raise RequestError("Unknown or expired response ID.", "not_found", 404)
        created = stored.created if stored else waiting.created if waiting else 0
        content = responses.response(
            AnswerMetadata(token, MODEL_NAME, created), stored.text if stored else None
        )
        return JSONResponse(content, headers={SESSION_HEADER: chat.removeprefix(prefix)})

    # Requests and answers

    async def _submit(self, request_data: ApiRequest) -> Exchange:
        """Submit a request; a repeated one is not submitted again."""
        chat = await self._chat(request_data)
        content = f"{chat}\n{request_data.text}\n{[file.name for file in request_data.files]}"
        digest = hashlib.sha256(content.encode(errors="replace")).hexdigest()
        stored = await self._answers.find(request_data.token)
        known = self._exchanges.find(request_data.token)
        if stored is not None and known is None:
            known = Exchange(request_data.token, stored.chat_id, stored.digest)
            known.created = stored.created
            known.settle(stored.text)
        if known is not None:
            return _checked(known, digest)
        command = MessageEvent(request_data.text).get_command()
        exchange = Exchange(request_data.token, chat, digest)
        opened = await self._exchanges.open(exchange, command, self._limits.answer_seconds)
        if opened is exchange:
            await self._hand_over(request_data, exchange)
            await self._settle_if_stored(exchange)
        return _checked(opened, digest)

    async def _settle_if_stored(self, exchange: Exchange) -> None:
        """Settle a request whose answer was stored while it was being registered."""
        stored = await self._answers.find(exchange.token)
        if stored is not None and exchange.answer is None:
            self._exchanges.settle(exchange, stored.text)

    async def _hand_over(self, request_data: ApiRequest, exchange: Exchange) -> None:
        try:
            await self._submit_message(request_data, exchange.chat_id)
        except (OSError, HermesError) as error:
            self._exchanges.drop(exchange)
            log.error("API request not stored: %s", error)
            raise

    async def _chat(self, request_data: ApiRequest) -> str:
        """The session of a request; a new one by default."""
        if request_data.session:
            return request_data.session
        if not request_data.previous:
            return f"{request_data.caller.prefix}api-{request_data.token[:16]}"
        stored = await self._answers.find(request_data.previous.removeprefix("resp_"))
        if stored is None or not stored.chat_id.startswith(request_data.caller.prefix):
            text = "Unknown or expired `previous_response_id`."
            raise RequestError(text, "previous_response_not_found", 404)
        return stored.chat_id

    async def _complete(
        self,
        shaped: Callable[[AnswerMetadata, str], dict[str, JsonData]],
        request_data: ApiRequest,
        exchange: Exchange,
    ) -> Response:
        text = await exchange.answered(self._limits.answer_seconds)
        return JSONResponse(
            shaped(_shape(request_data, exchange), text), headers=_headers(request_data, exchange)
        )

    def _stream(
        self,
        events: Callable[[AnswerMetadata, AsyncIterator[str]], AsyncIterator[str]],
        request_data: ApiRequest,
        exchange: Exchange,
    ) -> Response:
        pieces = exchange.pieces(self._limits.answer_seconds)
        shown = _ended(events(_shape(request_data, exchange), pieces))
        headers = {
            **_headers(request_data, exchange),
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",
        }
        return StreamingResponse(shown, media_type="text/event-stream", headers=headers)

    async def _read(self, request: Request, read: Read) -> ApiRequest:
        """Read a request body within the size limits."""
        limits = self._limits
        max_bytes = limits.body_bytes + limits.file_bytes * 4 // 3
        try:
            body = await read_body(request, max_bytes)
        except BodyTooLargeError as error:
            raise _too_large(max_bytes) from error
        except BodyTimeoutError as error:
            text = "The request body was not sent in time."
            raise RequestError(text, "request_timeout", 408) from error
        thread = await asyncio.to_thread(requests.parse_body, body)
        request_data = for_caller(read(thread, request.headers), request.state.caller)
        if len(body) - request_data.file_bytes > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        return request_data


def _too_large(max_bytes: int) -> RequestError:
    text = f"The request body exceeds {max_bytes} bytes."
    return RequestError(text, "request_too_large", 413)


def _checked(exchange: Exchange, digest: str) -> Exchange:
    """The exchange, if it belongs to the same request."""
    if exchange.digest and exchange.digest != digest:
        text = "This Idempotency-Key was already used for a different request."
        raise RequestError(text, "idempotency_key_reused", 422)
    return exchange


def _shape(request_data: ApiRequest, exchange: Exchange) -> AnswerMetadata:
    return AnswerMetadata(
        request_data.token,
        request_data.model,
        exchange.created,
        request_data.previous,
        request_data.metadata,
    )


def _headers(request_data: ApiRequest, exchange: Exchange) -> dict[str, str]:
    return {SESSION_HEADER: exchange.chat_id.removeprefix(request_data.caller.prefix)}


async def _ended(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """A stream; if the answer does not arrive, its last event is the error."""
    try:
        async for event in events:
            yield event
    except (AnswerTimeoutError, StoppingError) as error:
        status, message, code, _ = _error_details(error)
        yield responses.sse_event(responses.error_body(status, message, code), "error")


def _error_details(error: Exception) -> tuple[int, str, str, dict[str, str]]:
    """The status, message, code and headers of an error."""
    if isinstance(error, RequestError):
        return error.status, str(error), error.code, {}
    if isinstance(error, AnswerTimeoutError):
        return 504, f"The reply is not ready yet.{REPEAT_HINT}", "timeout", {}
    later = {"Retry-After": "5"}
    if isinstance(error, StoppingError):
        text = "The gateway is restarting. Repeat the request with the same Idempotency-Key."
        return 503, text, "restarting", later
    return 503, "The request could not be stored. Please try again.", "not_kept", later


def _error(status: int, text: str, code: str, headers: dict[str, str]) -> Response:
    error: Response = responses.error(status, text, code, headers)
    return error


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
        )
        await self._front.add(ROUTE_OWNER, api.routes())

    async def disconnect(self) -> None:
        """Stop serving; waiting clients are asked to repeat their requests."""
        self._front.remove(ROUTE_OWNER)
        self._receive = None
        self._exchanges.cancel()

    # Requests

    async def _submit_message(self, request_data: ApiRequest, chat_id: str) -> None:
        """Pass a request to the gateway; when this returns, it is on disk."""
        if self._receive is None:
            raise StoppingError
        user = request_data.user or DEFAULT_USER
        source = SessionSource(Platform.API_SERVER, chat_id, user_id=user, user_name=user)
        event = MessageEvent(request_data.text, source=source, message_id=request_data.message_id)
        for file in request_data.files:
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
        answered = self._exchanges.answered_by(token)
        if not answered:  # the request is from before a restart
            await self._answers.keep(StoredAnswer(token, outgoing.chat_id, outgoing.text))
        for item in answered:
            await self._keep(item, outgoing.text)
            self._exchanges.settle(item, outgoing.text)
        return SendResult(True, message_id=token)

    async def _note(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a message without a request ID: a question of the agent or a command result."""
        reached = self._exchanges.reached_by_note(outgoing.chat_id)
        if reached is None:
            log.info("API reply not delivered: no client is waiting in %s", outgoing.chat_id)
            return SendResult(True, message_id=outgoing.key)
        await self._keep(reached, outgoing.text)
        self._exchanges.settle(reached, outgoing.text, is_note=True)
        return SendResult(True, message_id=reached.token)

    async def _keep(self, one: Exchange, text: str) -> None:
        await self._answers.keep(
            StoredAnswer(one.token, one.chat_id, text, one.digest, one.created)
        )


def make(context: AdapterContext) -> ApiAdapter:
    """Create the adapter."""
    return ApiAdapter(context)


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
