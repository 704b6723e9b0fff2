"""Error responses: a JSON body with the message, and the matching HTTP status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.responses import JSONResponse

from hermes_core.command_name import with_command_name
from hermes_core.errors import (
    AmbiguousSessionError,
    FieldError,
    HermesError,
    SessionNotFoundError,
    StoreError,
    TitleError,
    UsageError,
)
from hermes_core.isolate import Failure, attempt_async
from hermes_dashboard.validation_messages import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.validation_messages import InvalidValue

# The first matching class applies.
STATUS_BY_ERROR: Final = (
    (SessionNotFoundError, 404),
    (AmbiguousSessionError, 409),
    (TitleError, 409),
    (UsageError, 400),
    (StoreError, 503),
    (HermesError, 500),
)
INTERNAL_ERROR: Final = "Internal error. See logs/hermes.log in the Hermes folder for details."


class PlainJson(JSONResponse):
    """JSON for any stored text: lone surrogates are escaped, NaN becomes null."""

    def render(self, content: Any) -> bytes:
        """Serialize *content*."""
        try:
            return orjson.dumps(content)
        except TypeError:  # lone surrogates, or an integer beyond 64 bits
            finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
            return json.dumps(finite).encode()


class ErrorLogMiddleware:
    """Logs each unhandled error once; a connection with a complete response stays open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_complete = False

        async def send_tracked(message: Message) -> None:
            nonlocal is_complete
            is_body = message["type"] == "http.response.body"
            is_complete = is_body and not message.get("more_body", False)
            await send(message)

        name = f"{scope['type']} {scope.get('path', '')}"
        result = await attempt_async(name, self._app(scope, receive, send_tracked))
        if isinstance(result, Failure) and not is_complete:
            raise result.error


def status_of(error: HermesError) -> int:
    """The HTTP status of *error*."""
    statuses = [
        status for error_class, status in STATUS_BY_ERROR if issubclass(type(error), error_class)
    ]
    return statuses[0]


def install(app: FastAPI, describe: Callable[[Exception], str] = lambda _: INTERNAL_ERROR) -> None:
    """Install the error handlers; *describe* returns the message of an unexpected error."""

    async def internal_error(_request: Request, error: Exception) -> PlainJson:
        return PlainJson({"detail": describe(error)}, 500)

    app.add_exception_handler(HermesError, _problem)
    app.add_exception_handler(RequestValidationError, _validation_problem)
    app.add_exception_handler(Exception, internal_error)


async def _problem(_request: Request, error: Exception) -> PlainJson:
    status = status_of(error) if isinstance(error, HermesError) else 500
    body = {"detail": with_command_name(str(error))}
    if isinstance(error, FieldError):
        body["field"] = error.field
    return PlainJson(body, status)


async def _validation_problem(_request: Request, error: Exception) -> PlainJson:
    """As FastAPI's handler, but in plain words and without the input, which may be a secret."""
    details: Sequence[InvalidValue] = (
        error.errors() if isinstance(error, RequestValidationError) else ()
    )
    found = [
        {"type": each["type"], "loc": each["loc"], "msg": message_of(each)} for each in details
    ]
    return PlainJson({"detail": found}, 422)
