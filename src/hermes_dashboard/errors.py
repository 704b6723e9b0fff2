"""Error responses: a JSON body with the message, and the matching HTTP status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, get_args

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic_core.core_schema import ErrorType
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_core.json_values import JsonObject

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
REQUIRED_TEXT: Final = "A value is required."
INTEGER_TEXT: Final = "Must be a whole number."
NUMBER_TEXT: Final = "Must be a number."
BOOLEAN_TEXT: Final = "Must be true or false."
OTHER_TEXT: Final = "This value is not valid."
# The kinds of problems whose messages are pydantic's; those of Hermes have plain ones.
FOREIGN_KINDS: Final = frozenset(get_args(ErrorType))
# By the kind of the problem; braces are what it is limited to.
TEXT_BY_KIND: Final[Mapping[str, str]] = {
    "missing": REQUIRED_TEXT,
    "string_too_short": "At least {min_length:,} characters.",
    "string_too_long": "At most {max_length:,} characters.",
    "string_type": "Must be text.",
    "string_pattern_mismatch": "This value does not have the right format.",
    "string_unicode": "Contains characters that cannot be stored.",
    "too_short": "At least {min_length:,} entries.",
    "too_long": "At most {max_length:,} entries.",
    "list_type": "Must be a list.",
    "greater_than": "Must be more than {gt:,}.",
    "greater_than_equal": "Must be at least {ge:,}.",
    "less_than": "Must be less than {lt:,}.",
    "less_than_equal": "Must be at most {le:,}.",
    "int_type": INTEGER_TEXT,
    "int_parsing": INTEGER_TEXT,
    "int_parsing_size": INTEGER_TEXT,
    "int_from_float": INTEGER_TEXT,
    "float_type": NUMBER_TEXT,
    "float_parsing": NUMBER_TEXT,
    "finite_number": NUMBER_TEXT,
    "bool_type": BOOLEAN_TEXT,
    "bool_parsing": BOOLEAN_TEXT,
    "literal_error": "Must be {expected}.",
    "enum": "Must be {expected}.",
    "extra_forbidden": "This field does not exist.",
    "json_invalid": "The request is not valid JSON.",
}


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


class InvalidValue(TypedDict):
    """A problem as pydantic reports it."""

    type: str
    loc: tuple[int | str, ...]
    msg: str
    ctx: NotRequired[JsonObject]  # what the value is limited to


def message_of(problem: InvalidValue) -> str:
    """What is wrong with a value."""
    kind, limits = problem["type"], problem.get("ctx") or {}
    if kind == "string_too_short" and limits.get("min_length") == 1:
        return REQUIRED_TEXT
    if kind not in FOREIGN_KINDS:
        return problem["msg"]
    return TEXT_BY_KIND.get(kind, OTHER_TEXT).format(**limits)
