"""The HTTP endpoints of the OpenAI-compatible API; described in docs/reference/api.md."""

from __future__ import annotations

import asyncio
import functools
import hmac
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Match, Route

from gateway.platforms.api_server import requests, responses
from gateway.platforms.api_server.exchanges import AnswerTimeoutError, Exchange, StoppingError
from gateway.platforms.api_server.failures import ApiError, RequestError, failure_error
from gateway.platforms.api_server.requests import (
    DIGEST_PREFIX,
    MODEL_NAME,
    OWNER_CALLER,
    ApiCaller,
    for_caller,
)
from gateway.platforms.api_server.responses import AnswerMetadata
from gateway.platforms.base import MessageEvent
from gateway.platforms.names import API_KEY_USER
from gateway.platforms.request_body import BodyTimeoutError, BodyTooLargeError, read_body
from hermes_core.errors import HermesError
from hermes_core.roles import Role
from hermes_state.delivery.api_requests import NewApiRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from gateway.platforms.api_server.exchanges import Answer, AnswerCache, Exchanges
    from gateway.platforms.api_server.requests import ApiRequest
    from gateway.platforms.base import ApiKey
    from hermes_core.json_values import JsonData, JsonObject
    from hermes_state.delivery.api_requests import ApiRequestRepository, RequestPlan

    Handler = Callable[[Request], Awaitable[Response]]
    Read = Callable[[JsonObject, Mapping[str, str]], ApiRequest]
    Events = Callable[[AnswerMetadata, Exchange, float], AsyncIterator[str]]
    # Passes a request to the gateway, in a session.
    Submit = Callable[[ApiRequest, RequestPlan], Awaitable[None]]

log = logging.getLogger(__name__)

SESSION_HEADER: Final = "X-Hermes-Session"
REPEAT_HINT: Final = (
    " Repeat the request with the same Idempotency-Key to get the reply when it is ready."
)


ALL_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
# A stream starts after so many seconds at the latest: a failure before has a status of its own.
STREAM_START_SECONDS: Final = 10.0


# An answered request can be repeated by a client's own retry for so long.
JOIN_SECONDS: Final = 600.0


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
        api_requests: ApiRequestRepository,
    ) -> None:
        self._requests = api_requests
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
            ("/v1/models/{model}", "GET", self._model),
        ]
        known = [
            Route(path, functools.partial(self._guarded, handler), methods=[method])
            for path, method, handler in table
        ]
        unknown = functools.partial(_unknown, known)
        handler = functools.partial(self._guarded, unknown)
        return [*known, Route("/v1/{path:path}", handler, methods=ALL_METHODS)]

    async def _guarded(self, handler: Handler, request: Request) -> Response:
        """Check the key and run a handler; errors have the format of OpenAI."""
        caller = await self._caller(request)
        if caller is None:
            headers = {"WWW-Authenticate": "Bearer"}
            text = "Missing or invalid API key. Send `Authorization: Bearer API_SERVER_KEY`."
            return responses.error(ApiError(401, text, "invalid_api_key", headers))
        request.state.caller = caller
        try:
            return await handler(request)
        except (RequestError, AnswerTimeoutError, StoppingError, OSError, HermesError) as error:
            return responses.error(_api_error(error))

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

    async def _model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name != MODEL_NAME:
            text = f"The model {name!r} does not exist. `{MODEL_NAME}` is the only one."
            raise RequestError(text, "model_not_found", 404, param="model")
        return JSONResponse(responses.model(name, self._started))

    async def _completion(self, request: Request) -> Response:
        request_data = await self._read(request, requests.read_completion)
        request_data, exchange = await self._submit(request_data)
        if request_data.is_stream:
            return await self._stream(responses.completion_events, request_data, exchange)
        return await self._complete(responses.completion, request_data, exchange)

    async def _response(self, request: Request) -> Response:
        request_data = await self._read(request, requests.read_response)
        request_data, exchange = await self._submit(request_data)
        if request_data.is_stream:
            return await self._stream(responses.response_events, request_data, exchange)
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
            AnswerMetadata(token, MODEL_NAME, created), stored.answer if stored else None
        )
        return JSONResponse(content, headers={SESSION_HEADER: chat.removeprefix(prefix)})

    # Requests and answers

    async def _submit(self, request_data: ApiRequest) -> tuple[ApiRequest, Exchange]:
        """Submit a request; a repeated one is not submitted again.

        The result has the message ID of the request that it repeats.
        """
        digest = request_data.digest()
        request_data = await self._joined(request_data, digest)
        stored = await self._answers.find(request_data.token)
        known = self._exchanges.find(request_data.token)
        if stored is not None and known is None:
            known = Exchange(request_data.token, stored.chat_id, stored.digest)
            known.created = stored.created
            known.settle(stored.answer)
        if known is not None:
            return request_data, _checked(known, digest)
        plan = await self._plan(request_data, digest)
        command = MessageEvent(request_data.said_text).get_command()
        exchange = Exchange(request_data.token, plan.chat_id, digest)
        opened = await self._exchanges.open(exchange, command, self._limits.answer_seconds)
        if opened is exchange:
            await self._hand_over(request_data, plan, exchange)
            await self._settle_if_stored(exchange)
        return request_data, _checked(opened, digest)

    async def _joined(self, request_data: ApiRequest, digest: str) -> ApiRequest:
        """A request; the retry of a client without an idempotency key is the same request."""
        if request_data.is_named or not request_data.retry:
            return request_data
        message_id = await asyncio.to_thread(
            self._requests.join,
            _scope(request_data),
            digest,
            request_data.retry,
            self._limits.answer_seconds + JOIN_SECONDS,
            JOIN_SECONDS,
        )
        return request_data._replace(message_id=message_id) if message_id else request_data

    async def _settle_if_stored(self, exchange: Exchange) -> None:
        """Settle a request whose answer was stored while it was being registered."""
        stored = await self._answers.find(exchange.token)
        if stored is not None and exchange.answer is None:
            self._exchanges.settle(exchange, stored.answer)

    async def _hand_over(
        self, request_data: ApiRequest, plan: RequestPlan, exchange: Exchange
    ) -> None:
        try:
            await self._submit_message(request_data, plan)
        except (OSError, HermesError) as error:
            self._exchanges.drop(exchange)
            log.error("API request not stored: %s", error)
            raise

    async def _plan(self, request_data: ApiRequest, digest: str) -> RequestPlan:
        """The session of a request: a named one, that of its transcript, or a new one."""
        token, prefix = request_data.token, request_data.caller.prefix
        chat = request_data.session or await self._previous_chat(request_data)
        hashes: list[str] = []
        if request_data.is_stateless:
            hashes = requests.chain((*request_data.earlier, *request_data.said))
        known = hashes[: len(request_data.earlier)]
        new = NewApiRequest(
            token,
            request_data.message_id,
            _scope(request_data),
            digest,
            f"{prefix}api-{token[:16]}",
            chat,
            known[::-1],
            hashes[-1] if hashes else "",
        )
        return await asyncio.to_thread(self._requests.open, new)

    async def _previous_chat(self, request_data: ApiRequest) -> str:
        if not request_data.previous:
            return ""
        stored = await self._answers.find(request_data.previous.removeprefix("resp_"))
        if stored is None or not stored.chat_id.startswith(request_data.caller.prefix):
            text = "Unknown or expired `previous_response_id`."
            raise RequestError(text, "previous_response_not_found", 404)
        return stored.chat_id

    async def _complete(
        self,
        shaped: Callable[[AnswerMetadata, Answer], dict[str, JsonData]],
        request_data: ApiRequest,
        exchange: Exchange,
    ) -> Response:
        answer = await exchange.answered(self._limits.answer_seconds)
        headers = _headers(request_data, exchange)
        if answer.failure is not None:
            return _failed(answer, headers)
        return JSONResponse(shaped(_shape(request_data, exchange), answer), headers=headers)

    async def _stream(
        self, events: Events, request_data: ApiRequest, exchange: Exchange
    ) -> Response:
        seconds = self._limits.answer_seconds
        await exchange.begun(min(STREAM_START_SECONDS, seconds))
        answer = exchange.answer
        if answer is not None and answer.failure is not None and not exchange.written:
            return _failed(answer, _headers(request_data, exchange))
        shown = _ended(events(_shape(request_data, exchange), exchange, seconds))
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


def _scope(request_data: ApiRequest) -> str:
    """Whose requests are compared with a request."""
    return f"{request_data.caller.prefix}\n{request_data.user}"


def _too_large(max_bytes: int) -> RequestError:
    text = f"The request body exceeds {max_bytes} bytes."
    return RequestError(text, "request_too_large", 413)


def _checked(exchange: Exchange, digest: str) -> Exchange:
    """The exchange, if it belongs to the same request."""
    if exchange.digest.startswith(DIGEST_PREFIX) and exchange.digest != digest:
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
        request_data.includes_usage,
    )


def _headers(request_data: ApiRequest, exchange: Exchange) -> dict[str, str]:
    return {SESSION_HEADER: exchange.chat_id.removeprefix(request_data.caller.prefix)}


def _failed(answer: Answer, headers: dict[str, str]) -> Response:
    """The error response for a turn without an answer."""
    if answer.failure is None:
        raise ValueError("the turn has not failed")
    found = failure_error(answer.failure)
    return responses.error(found._replace(headers={**found.headers, **headers}))


async def _unknown(known: list[Route], request: Request) -> Response:
    """The error for a path that is not served, or not with this method."""
    path = request.url.path
    methods = [
        method
        for route in known
        if route.matches(request.scope)[0] is Match.PARTIAL
        for method in sorted(route.methods or ())
    ]
    if methods:
        text = f"{request.method} is not supported for {path}. Allowed: {', '.join(methods)}."
        allow = {"Allow": ", ".join(methods)}
        raise RequestError(text, "method_not_allowed", 405, headers=allow)
    raise RequestError(f"Unknown path: {request.method} {path}", "unknown_url", 404)


async def _ended(events: AsyncIterator[str]) -> AsyncIterator[str]:
    """A stream; if the answer does not arrive, its last event is the error."""
    try:
        async for event in events:
            yield event
    except (AnswerTimeoutError, StoppingError) as error:
        yield responses.sse_event(responses.error_body(_api_error(error)), "error")


def _api_error(error: Exception) -> ApiError:
    """The response for an error."""
    if isinstance(error, RequestError):
        return ApiError(error.status, str(error), error.code, error.headers, error.param)
    if isinstance(error, AnswerTimeoutError):
        return ApiError(504, f"The reply is not ready yet.{REPEAT_HINT}", "timeout")
    later = {"Retry-After": "5"}
    if isinstance(error, StoppingError):
        text = "The gateway is restarting. Repeat the request with the same Idempotency-Key."
        return ApiError(503, text, "restarting", later)
    text = "The request could not be stored. Please try again."
    return ApiError(503, text, "not_kept", later)
