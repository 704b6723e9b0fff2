"""The routes of the API: who may ask, what is asked, and the answer, whole or as a stream."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from gateway.platforms.api_server import requests, responses
from gateway.platforms.api_server.exchanges import Exchange, LateError, LeavingError
from gateway.platforms.api_server.requests import NAME, RequestError
from gateway.platforms.api_server.responses import Shape
from gateway.platforms.base import MessageEvent
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from gateway.platforms.api_server.answer_cache import Answers
    from gateway.platforms.api_server.exchanges import Exchanges
    from gateway.platforms.api_server.requests import Ask

    Handler = Callable[[Request], Awaitable[Response]]
    Read = Callable[[dict[str, Any], Mapping[str, str]], Ask]
    # Hands a request over to the gateway, in the session of a name.
    Say = Callable[[Ask, str], Awaitable[None]]

log = logging.getLogger(__name__)

SESSION: Final = "X-Hermes-Session"
KEPT: Final = "; it is kept, and a request with the same Idempotency-Key gets it when it is there"


class Bounds(NamedTuple):
    """How much, and how long."""

    body_bytes: int  # without files
    file_bytes: int  # of files in a body
    answer_seconds: float


class Api:
    """Answers requests over the exchanges of the adapter."""

    def __init__(
        self, key: str, bounds: Bounds, exchanges: Exchanges, answers: Answers, say: Say
    ) -> None:
        self._key = key.encode()
        self._bounds = bounds
        self._exchanges = exchanges
        self._answers = answers
        self._say = say
        self._started = int(time.time())

    def routes(self) -> list[Route]:
        """What is served; nothing without the key."""
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
        """Answer one who has the key; what goes wrong has the shape of OpenAI's errors."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        is_key = hmac.compare_digest(shown.strip().encode(), self._key)
        if scheme.lower() != "bearer" or not is_key:
            headers = {"WWW-Authenticate": "Bearer"}
            text = "the key is missing or wrong: `Authorization: Bearer API_SERVER_KEY`"
            return _error(401, text, "invalid_api_key", headers)
        try:
            return await handler(request)
        except (RequestError, LateError, LeavingError, OSError, HermesError) as error:
            return _error(*_told(error))

    # What is asked for

    async def _models(self, _request: Request) -> Response:
        return JSONResponse(responses.models(NAME, self._started))

    async def _completion(self, request: Request) -> Response:
        ask = await self._read(request, requests.completion)
        exchange = await self._asked(ask)
        if ask.is_stream:
            return self._stream(responses.completion_events, ask, exchange)
        return await self._whole(responses.completion, ask, exchange)

    async def _response(self, request: Request) -> Response:
        ask = await self._read(request, requests.response)
        exchange = await self._asked(ask)
        if ask.is_stream:
            return self._stream(responses.response_events, ask, exchange)
        return await self._whole(responses.response, ask, exchange)

    async def _known_response(self, request: Request) -> Response:
        token = request.path_params["response_id"].removeprefix("resp_")
        waiting = self._exchanges.find(token)
        given = await self._answers.find(token)
        if given is None and waiting is None:
            raise RequestError("there is no such response, or no longer", "not_found", 404)
        created = given.created if given else waiting.created if waiting else 0
        content = responses.response(Shape(token, NAME, created), given.text if given else None)
        chat = given.chat_id if given else waiting.chat_id if waiting else ""
        return JSONResponse(content, headers={SESSION: chat})

    # From a request to its answer

    async def _asked(self, ask: Ask) -> Exchange:
        """Hand a request over; one that was made before is not made again."""
        chat = await self._chat(ask)
        said = f"{chat}\n{ask.text}\n{[one.name for one in ask.files]}"
        digest = hashlib.sha256(said.encode(errors="replace")).hexdigest()
        given = await self._answers.find(ask.token)
        known = self._exchanges.find(ask.token)
        if given is not None and known is None:
            known = Exchange(ask.token, given.chat_id, given.digest)
            known.created = given.created
            known.settle(given.text)
        if known is not None:
            return _same(known, digest)
        command = MessageEvent(ask.text).get_command()
        exchange = Exchange(ask.token, chat, digest)
        opened = await self._exchanges.open(exchange, command, self._bounds.answer_seconds)
        if opened is exchange:
            await self._hand_over(ask, exchange)
        return _same(opened, digest)

    async def _hand_over(self, ask: Ask, exchange: Exchange) -> None:
        try:
            await self._say(ask, exchange.chat_id)
        except (OSError, HermesError) as error:
            self._exchanges.drop(exchange)
            log.error("a request to the API could not be kept: %s", error)
            raise

    async def _chat(self, ask: Ask) -> str:
        """The session a request belongs to; a new one if none is named."""
        if ask.session:
            return ask.session
        if not ask.previous:
            return f"api-{ask.token[:16]}"
        given = await self._answers.find(ask.previous.removeprefix("resp_"))
        if given is None:
            text = "the response of `previous_response_id` is not known here, or no longer"
            raise RequestError(text, "previous_response_not_found", 404)
        return given.chat_id

    async def _whole(
        self, shaped: Callable[[Shape, str], dict[str, Any]], ask: Ask, exchange: Exchange
    ) -> Response:
        text = await exchange.answered(self._bounds.answer_seconds)
        return JSONResponse(shaped(_shape(ask, exchange), text), headers=_headers(exchange))

    def _stream(
        self,
        events: Callable[[Shape, AsyncIterator[str]], AsyncIterator[str]],
        ask: Ask,
        exchange: Exchange,
    ) -> Response:
        pieces = exchange.pieces(self._bounds.answer_seconds)
        shown = _ended(events(_shape(ask, exchange), pieces))
        headers = {**_headers(exchange), "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(shown, media_type="text/event-stream", headers=headers)

    async def _read(self, request: Request, read: Read) -> Ask:
        """What was sent; not more than is allowed with files, nor than is without."""
        bounds = self._bounds
        most = bounds.body_bytes + bounds.file_bytes * 4 // 3
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise _too_large(most)
        found = await asyncio.to_thread(requests.parsed, bytes(body))
        ask = read(found, request.headers)
        if len(body) - ask.file_bytes > bounds.body_bytes:
            raise _too_large(bounds.body_bytes)
        return ask


def _too_large(most: int) -> RequestError:
    text = f"the body is larger than {most} bytes"
    return RequestError(text, "request_too_large", 413)


def _same(exchange: Exchange, digest: str) -> Exchange:
    """The exchange, if it is about the same."""
    if exchange.digest and exchange.digest != digest:
        text = "this Idempotency-Key was used for another request"
        raise RequestError(text, "idempotency_key_reused", 422)
    return exchange


def _shape(ask: Ask, exchange: Exchange) -> Shape:
    return Shape(ask.token, ask.model, exchange.created, ask.previous, ask.metadata)


def _headers(exchange: Exchange) -> dict[str, str]:
    return {SESSION: exchange.chat_id}


async def _ended(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """A stream; when the answer does not come, its last event says why."""
    try:
        async for one in events:
            yield one
    except (LateError, LeavingError) as error:
        status, message, code, _ = _told(error)
        yield responses.data(responses.problem(status, message, code), "error")


def _told(error: Exception) -> tuple[int, str, str, dict[str, str]]:
    """What an error is to a client: status, text, code, headers."""
    if isinstance(error, RequestError):
        return error.status, str(error), error.code, {}
    if isinstance(error, LateError):
        return 504, f"the answer takes longer than a request may wait{KEPT}", "timeout", {}
    later = {"Retry-After": "5"}
    if isinstance(error, LeavingError):
        text = "the gateway restarts; please ask again, with the same Idempotency-Key"
        return 503, text, "restarting", later
    return 503, "the request could not be kept; please ask again", "not_kept", later


def _error(status: int, text: str, code: str, headers: dict[str, str]) -> Response:
    found: Response = responses.error(status, text, code, headers)
    return found
