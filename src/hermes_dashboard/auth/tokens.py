"""The words that let one in: links that work once, and the cookies they are exchanged for.

Of a cookie only its hash is kept, so that whoever reads the file gets in nowhere.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final

from hermes_core.json_files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.clock import Clock

log = logging.getLogger(__name__)

LINK_SECONDS: Final = 600.0
COOKIE_SECONDS: Final = 30 * 24 * 3600
MAX_LINKS: Final = 100
MAX_COOKIES: Final = 200
FILE: Final = "dashboard-sessions.json"


def hashed(word: str) -> str:
    """What is kept and compared of a word: looking a hash up tells nothing about the word."""
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()


class Links:
    """Launch tokens: each lets one in, once, for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def make(self) -> str:
        """A new one."""
        word = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._until) >= MAX_LINKS:
                self._until.pop(next(iter(self._until)))
            self._until[hashed(word)] = self._clock.monotonic() + LINK_SECONDS
        return word

    def use(self, word: str) -> bool:
        """Whether it was good; now it is not any more."""
        with self._lock:
            until = self._until.pop(hashed(word), 0.0)
        return self._clock.monotonic() < until


class Cookies:
    """Who is logged in; kept in a file, so that a restart logs nobody out."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._known = self._read()

    def make(self, stamp: str) -> str:
        """A new one, good as long as the password's *stamp* is this."""
        word = secrets.token_urlsafe(32)
        with self._lock:
            self._forget()
            while len(self._known) >= MAX_COOKIES:
                self._known.pop(next(iter(self._known)))
            until = self._clock.now() + COOKIE_SECONDS
            self._known[hashed(word)] = {"until": until, "stamp": stamp}
            write_json(self._path, self._known)
        return word

    def is_good(self, word: str, stamp: str) -> bool:
        """Whether it lets one in."""
        with self._lock:
            found = self._known.get(hashed(word))
        return found is not None and found["stamp"] == stamp and self._clock.now() < found["until"]

    def forget(self, word: str) -> None:
        """Log out."""
        with self._lock:
            if self._known.pop(hashed(word), None) is not None:
                write_json(self._path, self._known)

    def _forget(self) -> None:
        now = self._clock.now()
        self._known = {key: one for key, one in self._known.items() if one["until"] > now}

    def _read(self) -> dict[str, dict[str, Any]]:
        found = read_json(self._path, {}, self._clock).value
        if not isinstance(found, dict):
            return {}
        return {
            key: {"until": float(one["until"]), "stamp": str(one["stamp"])}
            for key, one in found.items()
            if isinstance(one, dict)
            and isinstance(one.get("until"), int | float)
            and "stamp" in one
        }
