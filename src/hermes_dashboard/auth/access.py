"""Authentication: allowed origins, sign-in links, cookies, the password and the bearer token."""

from __future__ import annotations

import hmac
import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.clock import SystemClock
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.client_address import TrustedProxies
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.tokens import Cookies, Links
from hermes_dashboard.caches import CachedFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_dashboard.auth.allowed_origins import AllowedOrigins

WINDOW_SECONDS: Final = 60.0
MAX_FAILURES: Final = 5  # of one address in the window
MAX_TOTAL_FAILURES: Final = 50  # of the account: of all addresses together
ALL_ADDRESSES: Final = ""


class LoginRateLimit:
    """Failed attempts in the last minute, by address; an attempt counts until it succeeds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def begin(self, address: str) -> float:
        """Count an attempt; 0, or the seconds to wait before the next one is allowed."""
        with self._lock:
            now = self._clock.monotonic()
            self._expire(now)
            for name, limit in ((address, MAX_FAILURES), (ALL_ADDRESSES, MAX_TOTAL_FAILURES)):
                attempts = self._attempts.get(name, deque())
                if len(attempts) >= limit:
                    return max(attempts[0] + WINDOW_SECONDS - now, 1.0)
            for name in (address, ALL_ADDRESSES):
                self._attempts.setdefault(name, deque()).append(now)
            return 0.0

    def succeed(self, address: str) -> None:
        """Record a success, which clears the failures of the address."""
        with self._lock:
            cleared = len(self._attempts.pop(address, ()))
            total = self._attempts.get(ALL_ADDRESSES, deque())
            for _ in range(min(cleared, len(total))):
                total.pop()

    def _expire(self, now: float) -> None:
        for name in list(self._attempts):
            attempts = self._attempts[name]
            while attempts and attempts[0] <= now - WINDOW_SECONDS:
                attempts.popleft()
            if not attempts:
                del self._attempts[name]


Caller = Literal["cookie", "bearer"]

MAX_COOKIES_TRIED: Final = 4  # cookies of one name in one request


class Access:
    """Checks credentials; files are read again whenever they change."""

    def __init__(
        self,
        home: Path,
        origins: AllowedOrigins,
        clock: Clock | None = None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        clock = clock or SystemClock()
        run_folder = home / "run"
        self.origins = origins
        self.proxies = proxies or TrustedProxies()
        self.links = Links(clock)
        self.cookies = Cookies(run_folder, clock)
        self.password = PasswordFile(home)
        self.rate_limit = LoginRateLimit(clock)
        self._bearer: CachedFile[str] = CachedFile(run_folder / DASHBOARD.file_name, _token, "")

    def is_valid_cookie(self, cookies: list[str]) -> bool:
        """Whether one of the cookies of a request is valid."""
        stamp = self.password.stamp
        return any(self.cookies.is_valid(cookie, stamp) for cookie in cookies[:MAX_COOKIES_TRIED])

    def is_valid_bearer(self, token: str) -> bool:
        """Whether the token is the current one in `run/dashboard.json`."""
        expected = self._bearer.value()
        return bool(expected) and hmac.compare_digest(_bytes(token), _bytes(expected))

    def link(self) -> str:
        """A single-use sign-in URL; with a password, the plain URL."""
        if self.origins.login == "password":
            return f"{self.origins.url}/"
        return f"{self.origins.url}/#token={self.links.create()}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _token(data: bytes) -> str:
    try:
        record = json.loads(data)
    except ValueError:
        return ""
    token = record.get("token") if isinstance(record, dict) else None
    return token if isinstance(token, str) else ""
