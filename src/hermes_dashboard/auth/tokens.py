"""Sign-in tokens: single-use links, and the cookies they are exchanged for.

Only hashes of cookies are stored, so the file alone gives no access.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.json_files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import Clock

log = logging.getLogger(__name__)

LINK_SECONDS: Final = 600.0
COOKIE_SECONDS: Final = 30 * 24 * 3600
MAX_LINKS: Final = 100
MAX_COOKIES: Final = 200
FILE_NAME: Final = "dashboard-sessions.json"


def hash_token(token: str) -> str:
    """The hash of a token; comparing hashes leaks nothing about the token by timing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Links:
    """Launch tokens: single-use and short-lived."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expires_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def create(self) -> str:
        """Create a token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._expires_at) >= MAX_LINKS:
                self._expires_at.pop(next(iter(self._expires_at)))
            self._expires_at[hash_token(token)] = self._clock.monotonic() + LINK_SECONDS
        return token

    def use(self, token: str) -> bool:
        """Use up a token; whether it was valid."""
        with self._lock:
            expires_at = self._expires_at.pop(hash_token(token), 0.0)
        return self._clock.monotonic() < expires_at


class Cookie(NamedTuple):
    """When a cookie expires, and the stamp of the password it was created with."""

    until: float
    stamp: str


class Cookies:
    """The valid cookies, stored in a file so that sign-ins survive a restart."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / FILE_NAME
        self._clock = clock
        self._lock = threading.Lock()
        self._cookies = self._read()

    def create(self, stamp: str) -> str:
        """Create a cookie that is valid while the password has this *stamp*."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._expire()
            while len(self._cookies) >= MAX_COOKIES:
                self._cookies.pop(next(iter(self._cookies)))
            expires_at = self._clock.now() + COOKIE_SECONDS
            self._cookies[hash_token(token)] = Cookie(expires_at, stamp)
            self._write()
        return token

    def is_valid(self, token: str, stamp: str) -> bool:
        """Whether the cookie is valid."""
        with self._lock:
            cookie = self._cookies.get(hash_token(token))
        return cookie is not None and cookie.stamp == stamp and self._clock.now() < cookie.until

    def forget(self, token: str) -> None:
        """Invalidate a cookie."""
        with self._lock:
            if self._cookies.pop(hash_token(token), None) is not None:
                self._write()

    def _expire(self) -> None:
        now = self._clock.now()
        self._cookies = {key: cookie for key, cookie in self._cookies.items() if cookie.until > now}

    def _write(self) -> None:
        write_json(self._path, {key: cookie._asdict() for key, cookie in self._cookies.items()})

    def _read(self) -> dict[str, Cookie]:
        stored = read_json(self._path, {}, self._clock).value
        if not isinstance(stored, dict):
            return {}
        found = {key: _parse_cookie(fields) for key, fields in stored.items()}
        return {key: cookie for key, cookie in found.items() if cookie is not None}


def _parse_cookie(fields: Any) -> Cookie | None:
    match fields:
        case {"until": int() | float() as until, "stamp": stamp}:
            return Cookie(float(until), str(stamp))
    return None
