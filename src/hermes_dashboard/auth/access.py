"""Who may come in: doors, links, cookies, the password and the word for programs, together."""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.clock import SystemClock
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.rate_limit import Rates
from hermes_dashboard.auth.tokens import Cookies, Links
from hermes_dashboard.small_file import SmallFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_dashboard.auth.allowed_origins import Doors

Caller = Literal["cookie", "bearer"]

PLACE: Final = "dashboard.json"
MOST_TRIED: Final = 4  # cookies of one name in one request


class Access:
    """Answers whether a request may pass; every answer is about this moment."""

    def __init__(self, home: Path, doors: Doors, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        run = home / "run"
        self.doors = doors
        self.links = Links(clock)
        self.cookies = Cookies(run, clock)
        self.password = PasswordFile(home)
        self.rates = Rates(clock)
        self._bearer: SmallFile[str] = SmallFile(run / PLACE, _token, "")

    def cookie_fits(self, given: list[str]) -> bool:
        """Whether one of the cookies of a request lets it in."""
        stamp = self.password.stamp
        return any(self.cookies.is_good(one, stamp) for one in given[:MOST_TRIED])

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
