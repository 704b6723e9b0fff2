"""In front of everything: who asks, under which name, from which page.

Nothing behind it is reached without passing, be it a plugin's route, a file or a WebSocket;
and no answer leaves without the headers that keep a browser strict.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.auth.access import Access, Caller

GUARDED: Final = ("/api", "/metrics", "/dashboard-plugins", "/openapi.json")
OPEN_POSTS: Final = frozenset({"/api/auth/launch", "/api/auth/login"})
MAX_OPEN_POST: Final = 8192
OWN_SITES: Final = frozenset({"same-origin", "none"})  # a page on another port is neither
READING: Final = frozenset({"GET", "HEAD"})
AGAIN_SECONDS: Final = 2.0  # between two looks whether an open connection is still somebody's
LOGGED_OUT: Final = 4401  # the code with which sockets are closed then
NOT_ANY_MORE: Final = "you are signed out"
NONCE: Final = "hermes.nonce"
CALLER: Final = "hermes.caller"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
NO_HOST: Final = (
    "The dashboard is not served under this name. Open it with `hermes dashboard`; further "
    "names are given in the setting dashboard.hosts."
)
NO_ORIGIN: Final = "Another page asks; only the dashboard's own page may."
ORIGIN_MISSING: Final = "A change needs an Origin header of the dashboard's own page."
NOBODY: Final = {
    "link": "You are not logged in. Run `hermes dashboard` and open the link it prints.",
    "password": "You are not logged in. Log in with the password.",
}


class Refusal(NamedTuple):
    """Why somebody does not come in."""

    status: int
    detail: str
    login: str = ""

    @property
    def body(self) -> bytes:
        """As JSON."""
        facts = {"detail": self.detail, **({"login": self.login} if self.login else {})}
        return json.dumps(facts).encode()


class Gate:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        scope[NONCE] = nonce = secrets.token_urlsafe(16)
        strict = _strict(send, nonce, is_private=is_guarded(scope))
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, strict)
        elif scope["type"] == "websocket":
            await _turn_away(scope, strict, refusal)
        else:
            await _answer("http", strict, refusal)

    def _refusal(self, scope: Scope) -> Refusal | None:
        foreign = self._foreign(scope)
        if foreign is not None:
            return foreign
        caller = scope[CALLER] = caller_of(scope, self._access)
        if caller == "cookie" and is_guarded(scope):
            return _from_elsewhere(scope)
        if caller is None and is_guarded(scope):
            return Refusal(401, NOBODY[self._access.doors.login], self._access.doors.login)
        if caller is None and not _reads(scope) and not _is_small(scope):
            return Refusal(413, "This is too large for a login.")
        return None

    def _foreign(self, scope: Scope) -> Refusal | None:
        """Another name than ours, or another page."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.doors.hosts:
            return Refusal(403, NO_HOST)
        if any(one not in self._access.doors.origins for one in _values(scope, b"origin")):
            return Refusal(403, NO_ORIGIN)
        return None


def caller_of(scope: Scope, access: Access) -> Caller | None:
    """Who asks, as far as it lets them in at this moment."""
    for one in _values(scope, b"authorization"):
        kind, _, word = one.partition(" ")
        if kind.lower() == "bearer" and access.bearer_fits(word.strip()):
            return "bearer"
    given = cookies(scope, access.doors.cookie)
    return "cookie" if given and access.cookie_fits(given) else None


async def let_out(scope: Scope, access: Access) -> None:
    """Until whoever opened a connection would not be let in any more: logged out, or expired."""
    while caller_of(scope, access) is not None:  # noqa: ASYNC110 - files and clocks tell nobody
        await asyncio.sleep(AGAIN_SECONDS)


def _from_elsewhere(scope: Scope) -> Refusal | None:
    """Browsers send cookies by themselves: what another page made them ask for is refused."""
    sites = set(_values(scope, b"sec-fetch-site"))
    if sites - OWN_SITES:
        return Refusal(403, NO_ORIGIN)
    if _reads(scope) or _values(scope, b"origin") or "same-origin" in sites:
        return None
    return Refusal(403, ORIGIN_MISSING)


def is_guarded(scope: Scope) -> bool:
    """Whether one has to be let in; in doubt, yes."""
    if scope["type"] == "websocket":
        return True
    path = scope["path"]
    if scope["method"] not in READING:
        return path not in OPEN_POSTS or scope["method"] != "POST"
    plain = re.sub(r"/+", "/", path).lower()
    return any(plain == one or plain.startswith(f"{one}/") for one in GUARDED)


def cookies(scope: Scope, name: str) -> list[str]:
    """Every value of a cookie; there may be several of one name."""
    pairs = (one.partition("=") for line in _values(scope, b"cookie") for one in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _reads(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in READING


def _is_small(scope: Scope) -> bool:
    """Whether a request of nobody in particular says that it is small."""
    lengths = _values(scope, b"content-length")
    is_counted = not _values(scope, b"transfer-encoding")
    return is_counted and all(one.isdecimal() and int(one) <= MAX_OPEN_POST for one in lengths)


# What leaves


def _strict(send: Send, nonce: str, *, is_private: bool) -> Send:
    """Every answer with the headers; an answer's own are kept only where we have none."""
    ours = {**HEADERS, "content-security-policy": POLICY.format(nonce=nonce)}
    added = [(name.encode(), value.encode()) for name, value in ours.items()]
    names = {name for name, _ in added}

    async def sending(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            own: Iterable[tuple[bytes, bytes]] = message.get("headers", [])
            kept = [(key, value) for key, value in own if key.lower() not in names]
            if is_private and not any(key.lower() == b"cache-control" for key, _ in kept):
                kept.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return sending


async def _turn_away(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Before the connection is accepted; with the reason where the server can say it."""
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _answer("websocket.http", send, refusal)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.detail})


async def _answer(kind: str, send: Send, refusal: Refusal) -> None:
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(refusal.body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    start = {"type": f"{kind}.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": f"{kind}.response.body", "body": refusal.body})
