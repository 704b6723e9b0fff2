"""Reads the body of an HTTP request within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request

IDLE_SECONDS: Final = 10.0  # without a byte
MAX_SECONDS: Final = 300.0


class BodyTooLargeError(Exception):
    """The body exceeds the maximum size."""


class BodyTimeoutError(Exception):
    """The client has stopped sending, or sends too slowly."""


async def read_body(request: Request, max_bytes: int, idle_seconds: float = IDLE_SECONDS) -> bytes:
    """The body of a request."""
    body = bytearray()
    stream = request.stream()
    try:
        async with asyncio.timeout(MAX_SECONDS):
            while True:
                async with asyncio.timeout(idle_seconds):
                    chunk = await anext(stream, None)
                if chunk is None:
                    return bytes(body)
                body += chunk
                if len(body) > max_bytes:
                    raise BodyTooLargeError
    except TimeoutError as error:
        raise BodyTimeoutError from error
