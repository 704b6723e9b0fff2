"""Limits for the bodies of requests: their size, and for requests without credentials the time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

MEGABYTE: Final = 1024 * 1024
MAX_BODY_BYTES: Final = 8 * MEGABYTE
# Routes with a stream of bytes; the first matching prefix applies.
MAX_BYTES_BY_PREFIX: Final = (
    ("/api/import", 4096 * MEGABYTE),
    ("/api/uploads", 26 * MEGABYTE),  # the route itself explains its limit of 25 MB
    ("/api/plugins/", 64 * MEGABYTE),
)
ANONYMOUS_SECONDS: Final = 20.0  # for the whole body of a sign-in
TOO_LARGE: Final = "The request body is too large."
TOO_SLOW: Final = "The request body did not arrive in time."


def max_bytes_of(path: str) -> int:
    """The largest allowed body of a request to *path*."""
    limits = (limit for prefix, limit in MAX_BYTES_BY_PREFIX if path.startswith(prefix))
    return next(limits, MAX_BODY_BYTES)


def is_declared_too_large(scope: Scope) -> bool:
    """Whether a request declares a body above the limit."""
    lengths = (value for name, value in scope["headers"] if name.lower() == b"content-length")
    limit = max_bytes_of(scope["path"])
    return any(length.isdigit() and int(length) > limit for length in lengths)


def limited_receive(scope: Scope, receive: Receive, *, is_anonymous: bool) -> Receive:
    """*receive* with the limits of the request; reading past them raises HTTPException."""
    limit = max_bytes_of(scope["path"])
    deadline = asyncio.get_running_loop().time() + ANONYMOUS_SECONDS
    size = 0
    is_complete = False

    async def receive_limited() -> Message:
        nonlocal size, is_complete
        if not is_anonymous or is_complete:  # what follows the body is a disconnect
            message = await receive()
        else:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, TOO_SLOW) from error
        size += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        if size > limit:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receive_limited
