"""The HTTP client of a Matrix account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlparse

from nio import AsyncClient, AsyncClientConfig  # type: ignore[import-untyped] # it has no types

from gateway import config_values
from gateway.platforms.matrix import results
from hermes_core.errors import PlatformDownError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.json_values import JsonData, JsonObject

REQUEST_SECONDS: Final = 60
API_PREFIX: Final = "/_matrix/client/v3/"


class MatrixRequestError(PlatformDownError):
    """An error response of the homeserver."""

    def __init__(self, status: int, body: JsonObject) -> None:
        self.status = status
        self.body = body
        self.code = config_values.text(body.get("errcode"))
        error = f"{self.code or f'HTTP {status}'} {config_values.text(body.get('error'))}"
        super().__init__(f"The homeserver returned an error: {error.strip()}")


class MatrixClient(AsyncClient):  # type: ignore[misc] # it has no types
    """A client without retries: the gateway decides when to retry.

    The encryption of the library is not used, because it stores keys after it has sent them.
    `before_request` is awaited before every request: it stores the keys that have changed.
    """

    def __init__(self, homeserver: str, access_token: str) -> None:
        config = AsyncClientConfig(
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=REQUEST_SECONDS,
            encryption_enabled=False,
        )
        super().__init__(server_url(homeserver), config=config)
        self.access_token = access_token
        self.before_request: Callable[[], Awaitable[None]] | None = None

    async def send(self, *arguments: Any, **options: Any) -> Any:
        """Send a request."""
        if self.before_request is not None:
            await self.before_request()
        return await super().send(*arguments, **options)

    async def call(self, method: str, path: str, body: JsonData = None) -> JsonObject:
        """Call an endpoint that the library lacks; MatrixRequestError for an error response."""
        headers = {
            "Authorization": f"Bearer {self.access_token}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body)
        response = await self.send(method, API_PREFIX + path, data, headers)
        async with response:
            text = await response.text()
        parsed = _parse(text)
        if response.status >= 400:
            error = MatrixRequestError(response.status, parsed)
            if error.code in results.TOKEN_CODES:
                text = results.UNAUTHORIZED_TEXT.format(code=error.code)
                raise PlatformRefusedError(text) from error
            raise error
        return parsed


def _parse(text: str) -> JsonObject:
    try:
        return config_values.mapping(json.loads(text))
    except ValueError:
        return {}


def server_url(configured: str) -> str:
    """The base URL of a configured homeserver; PlatformRefusedError if it is not one."""
    address = (configured if "://" in configured else f"https://{configured}").rstrip("/")
    result = urlparse(address)
    if result.scheme not in {"http", "https"} or not result.hostname:
        raise PlatformRefusedError(
            "Invalid MATRIX_HOMESERVER. Use a URL such as https://matrix.example.org."
        )
    return address
