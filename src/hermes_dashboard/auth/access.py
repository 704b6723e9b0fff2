"""Who may come in: doors, links, cookies, the password and the word for programs, together."""

from __future__ import annotations

import hmac
import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.clock import SystemClock
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.tokens import Cookies, Links
from hermes_dashboard.small_file import SmallFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_dashboard.auth.allowed_origins import AllowedOrigins

WINDOW_SECONDS: Final = 60.0
MAX_FAILURES: Final = 5  # failures of one address in the window
MAX_TOGETHER: Final = 50  # of all addresses
EVERYBODY: Final = ""


class Rates:
    """Failures in the last minute, by address. A try counts as one until it has succeeded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def begin(self, address: str) -> float:
        """Note a try; 0, or how many seconds to wait before one is allowed."""
        with self._lock:
            now = self._clock.monotonic()
            self._forget(now)
            for name, most in ((address, MAX_FAILURES), (EVERYBODY, MAX_TOGETHER)):
                tries = self._tries.get(name, deque())
                if len(tries) >= most:
                    return max(tries[0] + WINDOW_SECONDS - now, 1.0)
            for name in (address, EVERYBODY):
                self._tries.setdefault(name, deque()).append(now)
            return 0.0

    def succeed(self, address: str) -> None:
        """The try was right: nothing is held against the address any more."""
        with self._lock:
            forgiven = len(self._tries.pop(address, ()))
            together = self._tries.get(EVERYBODY, deque())
            for _ in range(min(forgiven, len(together))):
                together.pop()

    def _forget(self, now: float) -> None:
        for name in list(self._tries):
            tries = self._tries[name]
            while tries and tries[0] <= now - WINDOW_SECONDS:
                tries.popleft()
            if not tries:
                del self._tries[name]


Caller = Literal["cookie", "bearer"]

MAX_TRIED: Final = 4  # cookies of one name in one request


class Access:
    """Answers whether a request may pass; every answer is about this moment."""

    def __init__(self, home: Path, doors: AllowedOrigins, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        run = home / "run"
        self.doors = doors
        self.links = Links(clock)
        self.cookies = Cookies(run, clock)
        self.password = PasswordFile(home)
        self.rates = Rates(clock)
        self._bearer: SmallFile[str] = SmallFile(run / DASHBOARD.file_name, _token, "")

    def cookie_fits(self, given: list[str]) -> bool:
        """Whether one of the cookies of a request lets it in."""
        stamp = self.password.stamp
        return any(self.cookies.is_good(one, stamp) for one in given[:MAX_TRIED])

    def bearer_fits(self, given: str) -> bool:
        """Whether a program knows the word in `run/dashboard.json`, as it stands there now."""
        expected = self._bearer.value()
        return bool(expected) and hmac.compare_digest(_bytes(given), _bytes(expected))

    def link(self) -> str:
        """An address that logs a browser in, once; with a password, just the address."""
        if self.doors.login == "password":
            return f"{self.doors.url}/"
        return f"{self.doors.url}/#token={self.links.make()}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _token(data: bytes) -> str:
    try:
        found = json.loads(data)
    except ValueError:
        return ""
    token = found.get("token") if isinstance(found, dict) else None
    return token if isinstance(token, str) else ""
