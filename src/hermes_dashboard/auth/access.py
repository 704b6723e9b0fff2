"""Authentication: allowed origins, sign-in links, cookies, the password and the bearer token."""

from __future__ import annotations

import hmac
import ipaddress
import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.clock import SystemClock
from hermes_core.errors import ConfigError
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.tokens import Cookies, Links
from hermes_dashboard.caches import CachedFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from starlette.types import Scope

    from hermes_core.clock import Clock
    from hermes_dashboard.auth.allowed_origins import AllowedOrigins

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN_ADDRESS: Final = "?"


class TrustedProxies:
    """The proxies of the setting `dashboard.trusted_proxies`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._networks = [_network(name) for name in names]

    def client_address(self, scope: Scope) -> str:
        """The client of a request: the last address that is not a trusted proxy.

        A client can write anything before what the proxies add, so entries are read from the end.
        """
        peer = scope["client"][0] if scope.get("client") else UNKNOWN_ADDRESS
        headers = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        chain = ",".join(value.decode("latin-1") for value in headers).split(",")
        hops = [hop.strip() for hop in chain if hop.strip()]
        address = str(peer)
        while hops and self._is_trusted(address):
            address = hops.pop()
        return address[:100]

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name.strip(), strict=False)
    except ValueError as error:
        raise ConfigError(
            f"dashboard.trusted_proxies: {name!r} is not an address or network."
        ) from error


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
