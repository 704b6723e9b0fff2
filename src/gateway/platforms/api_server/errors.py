"""Invalid API requests."""

from __future__ import annotations


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
