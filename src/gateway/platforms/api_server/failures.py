"""Failed turns and refused requests as HTTP errors of OpenAI's API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_state.delivery.rows import StoredFailure


class RequestError(Exception):
    """An invalid request."""

    def __init__(
        self,
        message: str,
        code: str = "invalid_request",
        status: int = 400,
        *,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.param = param
        self.headers = headers or {}


# Hermes has repeated the request already; OpenAI's clients obey this header.
NO_RETRY: Final = {"x-should-retry": "false"}


class ApiError(NamedTuple):
    """An error response."""

    status: int
    message: str
    code: str
    headers: Mapping[str, str] = {}
    param: str | None = None


# The status and code for each kind of failure of a turn.
STATUSES: Final = {
    "key": (401, "provider_key_rejected"),
    "forbidden": (502, "provider_denied_access"),
    "credit": (402, "insufficient_quota"),
    "budget": (429, "insufficient_quota"),
    "limit": (429, "rate_limit_exceeded"),
    "context": (400, "context_length_exceeded"),
    "model": (502, "provider_model_not_found"),
    "refused": (502, "provider_rejected_request"),
    "server": (502, "provider_error"),
    "unreachable": (502, "provider_unreachable"),
    "cut": (502, "provider_connection_lost"),
    "broken": (502, "provider_invalid_response"),
    "timeout": (504, "provider_timeout"),
    "no_model": (503, "no_model"),
    "gone": (409, "conversation_changed"),
}
INTERNAL_ERROR: Final = (500, "internal_error")


def failure_error(failure: StoredFailure) -> ApiError:
    """The error response for a failed turn."""
    status, code = STATUSES.get(failure["kind"], INTERNAL_ERROR)
    headers = {} if failure["kind"] == "gone" else dict(NO_RETRY)
    if "retry_after" in failure:
        headers["Retry-After"] = str(math.ceil(failure["retry_after"]))
    return ApiError(status, failure["message"], code, headers)
