"""What becomes of errors: an answer in words, with a status that fits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse

from hermes_core.errors import (
    AmbiguousSessionError,
    HermesError,
    SessionNotFoundError,
    StoreError,
    TitleError,
    UsageError,
)
from hermes_core.isolate import Failure, attempt_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The first that fits counts.
STATUSES: Final = (
    (SessionNotFoundError, 404),
    (AmbiguousSessionError, 409),
    (TitleError, 409),
    (UsageError, 400),
    (StoreError, 503),
    (HermesError, 500),
)
CRASHED: Final = "Something went wrong here; logs/hermes.log in the Hermes folder says what."


class PlainJson(JSONResponse):
    """JSON whatever a history holds: half characters are escaped, and NaN is null."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        try:
            return orjson.dumps(content)
        except TypeError:  # text that is no Unicode, or a number that is too large
            return json.dumps(content).encode()


class Caught:
    """Notes crashes in the log, each once; a connection whose answer was whole stays open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_whole = False

        async def sending(message: Message) -> None:
            nonlocal is_whole
            is_body = message["type"] == "http.response.body"
            is_whole = is_body and not message.get("more_body", False)
            await send(message)

        name = f"{scope['type']} {scope.get('path', '')}"
        ended = await attempt_async(name, self._app(scope, receive, sending))
        if isinstance(ended, Failure) and not is_whole:
            raise ended.error


def status_of(error: HermesError) -> int:
    """The status that says what kind of error it is."""
    fitting = [status for kind, status in STATUSES if issubclass(type(error), kind)]
    return fitting[0]


def install(app: FastAPI, crashed: Callable[[Exception], str] = lambda _: CRASHED) -> None:
    """Let *app* answer errors so; *crashed* has the words for those that nobody foresaw."""

    async def crash(_request: Request, error: Exception) -> PlainJson:
        return PlainJson({"detail": crashed(error)}, 500)

    app.add_exception_handler(HermesError, _answer)
    app.add_exception_handler(RequestValidationError, _complain)
    app.add_exception_handler(Exception, crash)


async def _answer(_request: Request, error: Exception) -> PlainJson:
    status = status_of(error) if isinstance(error, HermesError) else 500
    return PlainJson({"detail": str(error)}, status)


async def _complain(_request: Request, error: Exception) -> PlainJson:
    """As FastAPI does, with any text that may have been given."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return PlainJson({"detail": jsonable_encoder(found)}, 422)
