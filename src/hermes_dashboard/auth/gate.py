"""The access gate: checks Host, Origin, credentials and sizes before everything else.

Every route of the application and of plugins, every file and every WebSocket is behind it,
and every response gets the security headers.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.exceptions import HTTPException

from hermes_core.command_name import with_command_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from hermes_dashboard.auth.access import Access, Caller

GUARDED: Final = ("/api", "/metrics", "/dashboard-plugins", "/openapi.json")
OPEN_POSTS: Final = frozenset({"/api/auth/launch", "/api/auth/login"})
MAX_OPEN_POST_BYTES: Final = 8192
TRUSTED_FETCH_SITES: Final = frozenset(
    {"same-origin", "none"}
)  # a page on another port sends another value
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
RECHECK_SECONDS: Final = 2.0  # between checks of the sign-in of an open connection
SIGNED_OUT_CODE: Final = 4401  # WebSocket close code
SIGNED_OUT_REASON: Final = "you are signed out"
NONCE: Final = "hermes.nonce"
CALLER_KEY: Final = "hermes.caller"
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "frame-src 'self'; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
# Draws diagrams: no origin, nothing from the network, and only inside of the dashboard's own page.
# The page itself names the one script by its hash.
DIAGRAM_PATH: Final = "/diagram.html"
DIAGRAM_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"
)
HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
UNKNOWN_HOST: Final = (
    "The dashboard is not served under this host name. Open it with `hermes dashboard`, or add "
    "the name to the setting dashboard.hosts."
)
FOREIGN_ORIGIN: Final = (
    "Cross-origin request refused; only the dashboard's own page may send requests."
)
ORIGIN_MISSING: Final = "A change requires the Origin header of the dashboard's own page."
NOT_SIGNED_IN: Final = {
    "link": "You are not signed in. Run `hermes dashboard` and open the link it prints.",
    "password": "You are not signed in. Sign in with the password.",
}
MEGABYTE: Final = 1024 * 1024
MAX_BODY_BYTES: Final = 8 * MEGABYTE
# Routes with a stream of bytes; the first matching prefix applies.
MAX_BYTES_BY_PREFIX: Final = (
    ("/api/import", 4096 * MEGABYTE),
    ("/api/uploads", 26 * MEGABYTE),  # the route itself explains its limit of 25 MB
    ("/api/plugins/", 64 * MEGABYTE),
)
ANONYMOUS_BODY_SECONDS: Final = 20.0  # for the whole body of a sign-in
TOO_LARGE: Final = "The request body is too large."
TOO_SLOW: Final = "The request body did not arrive in time."


class Refusal(NamedTuple):
    """The response to a refused request."""

    status: int
    detail: str
    login: str = ""

    @property
    def body(self) -> bytes:
        """The JSON body."""
        fields = {
            "detail": with_command_name(self.detail),
            **({"login": self.login} if self.login else {}),
        }
        return json.dumps(fields).encode()


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
        security = _security_headers(scope, nonce)
        strict = _with_security_headers(send, security, is_private=is_guarded(scope))
        refusal = self._refusal(scope)
        if refusal is None:
            if scope["type"] == "http":
                is_anonymous = scope[CALLER_KEY] is None
                receive = limited_receive(scope, receive, is_anonymous=is_anonymous)
            await self._app(scope, receive, strict)
        elif scope["type"] == "websocket":
            await _reject_websocket(scope, strict, refusal)
        else:
            await _send_refusal("http", strict, refusal)

    def _refusal(self, scope: Scope) -> Refusal | None:
        foreign = self._foreign(scope)
        if foreign is not None:
            return foreign
        caller = scope[CALLER_KEY] = caller_of(scope, self._access)
        cross_site = caller == "cookie" and is_guarded(scope) and _cross_site_refusal(scope)
        if cross_site:
            return cross_site
        if caller is None and is_guarded(scope):
            return Refusal(
                401, NOT_SIGNED_IN[self._access.origins.login], self._access.origins.login
            )
        if caller is None and not _is_read(scope) and not _is_small(scope):
            return Refusal(413, "The request body is too large for a sign-in.")
        if is_declared_too_large(scope):
            return Refusal(413, TOO_LARGE)
        return None

    def _foreign(self, scope: Scope) -> Refusal | None:
        """The refusal of a foreign Host or Origin."""
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.origins.hosts:
            return Refusal(403, UNKNOWN_HOST)
        if any(value not in self._access.origins.origins for value in _values(scope, b"origin")):
            return Refusal(403, FOREIGN_ORIGIN)
        return None


def caller_of(scope: Scope, access: Access) -> Caller | None:
    """The valid credential of a request, or None."""
    for header in _values(scope, b"authorization"):
        scheme, _, token = header.partition(" ")
        if scheme.lower() == "bearer" and access.is_valid_bearer(token.strip()):
            return "bearer"
    values = cookies(scope, access.origins.cookie)
    return "cookie" if values and access.is_valid_cookie(values) else None


async def wait_for_sign_out(scope: Scope, access: Access) -> None:
    """Return when the credentials of a connection are no longer valid (signed out or expired)."""
    while caller_of(scope, access) is not None:  # noqa: ASYNC110 - files and clocks have no event
        await asyncio.sleep(RECHECK_SECONDS)


def _cross_site_refusal(scope: Scope) -> Refusal | None:
    """The refusal of a cross-site request: browsers send cookies automatically (CSRF)."""
    sites = set(_values(scope, b"sec-fetch-site"))
    if sites - TRUSTED_FETCH_SITES:
        return Refusal(403, FOREIGN_ORIGIN)
    if _is_read(scope) or _values(scope, b"origin") or "same-origin" in sites:
        return None
    return Refusal(403, ORIGIN_MISSING)


def is_guarded(scope: Scope) -> bool:
    """Whether a request needs credentials; true in case of doubt."""
    if scope["type"] == "websocket":
        return True
    path, method = scope["path"], scope["method"]
    if method not in SAFE_METHODS:
        return path not in OPEN_POSTS or method != "POST"
    normalized = re.sub(r"/+", "/", path).lower()
    return any(normalized == prefix or normalized.startswith(f"{prefix}/") for prefix in GUARDED)


def cookies(scope: Scope, name: str) -> list[str]:
    """Every value of a cookie; a request may have several with the same name."""
    pairs = (
        pair.partition("=") for header in _values(scope, b"cookie") for pair in header.split(";")
    )
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _is_read(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in SAFE_METHODS


def _is_small(scope: Scope) -> bool:
    """Whether an unauthenticated request declares a small body."""
    lengths = _values(scope, b"content-length")
    is_counted = not _values(scope, b"transfer-encoding")
    return is_counted and all(
        length.isdecimal() and int(length) <= MAX_OPEN_POST_BYTES for length in lengths
    )


# Responses


def _security_headers(scope: Scope, nonce: str) -> dict[str, str]:
    policy = {"content-security-policy": CONTENT_SECURITY_POLICY.format(nonce=nonce)}
    if scope["type"] == "http" and scope["path"] == DIAGRAM_PATH:
        policy = {"content-security-policy": DIAGRAM_POLICY, "x-frame-options": "SAMEORIGIN"}
    return {**HEADERS, **policy}


def _with_security_headers(send: Send, security: dict[str, str], *, is_private: bool) -> Send:
    """Wrap *send* to add the security headers, which replace those of the response."""
    added = [(name.encode(), value.encode()) for name, value in security.items()]
    names = {name for name, _ in added}

    async def send_with_headers(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers: Iterable[tuple[bytes, bytes]] = message.get("headers", [])
            matches = [(key, value) for key, value in headers if key.lower() not in names]
            if is_private and not any(key.lower() == b"cache-control" for key, _ in matches):
                matches.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*matches, *added]}
        await send(message)

    return send_with_headers


async def _reject_websocket(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Reject a connection before it is accepted, with the reason if the server supports it."""
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _send_refusal("websocket.http", send, refusal)
    else:
        await send(
            {"type": "websocket.close", "code": 1008, "reason": with_command_name(refusal.detail)}
        )


async def _send_refusal(kind: str, send: Send, refusal: Refusal) -> None:
    headers: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(refusal.body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    start = {"type": f"{kind}.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": f"{kind}.response.body", "body": refusal.body})


def max_bytes_of(path: str) -> int:
    """The largest allowed body of a request to *path*."""
    limits = (limit for prefix, limit in MAX_BYTES_BY_PREFIX if path.startswith(prefix))
    return next(limits, MAX_BODY_BYTES)


def is_declared_too_large(scope: Scope) -> bool:
    """Whether a request declares a body above the limit."""
    lengths = (value for name, value in scope["headers"] if name.lower() == b"content-length")
    limit = max_bytes_of(scope["path"])
    return any(length.isdigit() and int(length) > limit for length in lengths)


def limited_receive(scope: Scope, receive: Receive, *, is_anonymous: bool) -> Receive:
    """*receive* with the limits of the request; reading past them raises HTTPException."""
    limit = max_bytes_of(scope["path"])
    deadline = asyncio.get_running_loop().time() + ANONYMOUS_BODY_SECONDS
    size = 0
    is_complete = False

    async def receive_limited() -> Message:
        nonlocal size, is_complete
        if not is_anonymous or is_complete:  # what follows the body is a disconnect
            message = await receive()
        else:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, TOO_SLOW) from error
        size += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        if size > limit:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receive_limited
