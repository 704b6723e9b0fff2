"""The configured routes of the webhook platform, and their signatures."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.config.webhook_routes import check_name, parse_options
from hermes_core.errors import FieldError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.platforms.base import AdapterContext

GITHUB_HEADER: Final = "X-Hub-Signature-256"
HERMES_HEADER: Final = "X-Hermes-Signature"
DELIVERY_HEADER: Final = "X-Hermes-Delivery"
DELIVERY_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_:-]{1,200}")  # without the separator
TOLERANCE_SECONDS: Final = 300
UNSTAMPED_REPLAY_SECONDS: Final = 86400.0  # a signature without a timestamp never expires


def github_signature(secret: str, body: bytes) -> str:
    """A signature in the format of GitHub."""
    return f"sha256={_digest(secret, body)}"


def hermes_signature(secret: str, body: bytes, at: int) -> str:
    """A signature with a timestamp, of the body only."""
    return f"t={at},v1={_digest(secret, f'{at}.'.encode() + body)}"


def delivery_signature(secret: str, route: str, delivery_id: str, body: bytes, at: int) -> str:
    """A signature of a delivery: its time, route, ID and body."""
    return f"t={at},v2={_digest(secret, f'{at}.{route}.{delivery_id}.'.encode() + body)}"


class VerifiedSignature(NamedTuple):
    """A valid signature."""

    digest: str  # the same for a replay
    delivery_id: str = ""  # empty: neither route nor ID are signed
    replay_seconds: float = TOLERANCE_SECONDS


def verify(
    headers: Mapping[str, str], body: bytes, route: WebhookRoute, now: float
) -> VerifiedSignature | None:
    """The signature of a delivery; None if it is missing, invalid or expired."""
    header = headers.get(HERMES_HEADER)
    parts = _parts(header or "")
    if parts.v2 is not None:
        delivery_id, moment = headers.get(DELIVERY_HEADER, ""), parts.t
        if not _is_current(moment, now) or not DELIVERY_ID_PATTERN.fullmatch(delivery_id):
            return None
        signed = f"{moment}.{route.name}.{delivery_id}.".encode() + body
        expected = _digest(route.secret, signed)
        is_right = _is_same(parts.v2, expected)
        return VerifiedSignature(expected, delivery_id) if is_right else None
    if not is_signed(headers, body, route.secret, now, needs_timestamp=route.needs_timestamp):
        return None
    if header is not None:
        return VerifiedSignature(_digest(route.secret, f"{parts.t}.".encode() + body))
    digest = _digest(route.secret, body)
    return VerifiedSignature(digest, replay_seconds=UNSTAMPED_REPLAY_SECONDS)


def body_signatures(
    headers: Mapping[str, str], body: bytes, secret: str
) -> list[VerifiedSignature]:
    """The valid signatures of the body only that a delivery carries besides a better one.

    An attacker who has captured the delivery could send it again with nothing but one of them.
    """
    found = []
    parts = _parts(headers.get(HERMES_HEADER, ""))
    stamped = _digest(secret, f"{parts.t}.".encode() + body)
    if _is_same(parts.v1, stamped):
        found.append(VerifiedSignature(stamped))
    if _is_same(headers.get(GITHUB_HEADER, ""), github_signature(secret, body)):
        seconds = UNSTAMPED_REPLAY_SECONDS
        found.append(VerifiedSignature(_digest(secret, body), replay_seconds=seconds))
    return found


def is_signed(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    now: float,
    *,
    needs_timestamp: bool = False,
) -> bool:
    """Whether a body is signed; a signature with a timestamp takes precedence.

    Such a signature is good for every route with the same secret, and under any ID.
    """
    header = headers.get(HERMES_HEADER)
    if header is not None:
        return _has_valid_timestamp(header, body, secret, now)
    signature = headers.get(GITHUB_HEADER, "")
    return not needs_timestamp and _is_same(signature, github_signature(secret, body))


def _has_valid_timestamp(found: str, body: bytes, secret: str, now: float) -> bool:
    parts = _parts(found)
    expected = _digest(secret, f"{parts.t}.".encode() + body)
    return _is_same(parts.v1, expected) and _is_current(parts.t, now)


class SignatureParts(NamedTuple):
    """The parts of a header with a signature: the time, and a digest for each version."""

    t: str = ""
    v1: str = ""
    v2: str | None = None


def _parts(header: str) -> SignatureParts:
    pairs = (part.strip().partition("=")[::2] for part in header.split(","))
    return SignatureParts(**{name: text for name, text in pairs if name in SignatureParts._fields})


def _is_current(moment: str, now: float) -> bool:
    is_number = moment.isascii() and moment.isdigit() and len(moment) <= 12
    return is_number and abs(now - int(moment)) <= TOLERANCE_SECONDS


def _is_same(signature: str, expected: str) -> bool:
    return hmac.compare_digest(signature.encode(), expected.encode())


def _digest(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


class WebhookRoute(NamedTuple):
    """A route for deliveries."""

    name: str
    secret: str
    prompt: str
    url: str  # where replies are posted; empty: nowhere
    is_fixed: bool  # one conversation for all deliveries
    needs_timestamp: bool
    per_minute: int
    is_secret_shared: bool = False  # another route has the same secret

    def __repr__(self) -> str:
        return f"WebhookRoute({self.name!r})"


def read_routes(context: AdapterContext) -> dict[str, WebhookRoute]:
    """The configured routes; PlatformRefusedError if one is invalid."""
    routes = context.config.extra.get("routes")
    if not isinstance(routes, dict) or not routes:
        text = "platforms.webhook.routes is required in config.yaml."
        raise PlatformRefusedError(text)
    found = [_route(str(name), item, context.secret) for name, item in routes.items()]
    uses = Counter(route.secret for route in found)
    return {route.name: route._replace(is_secret_shared=uses[route.secret] > 1) for route in found}


def _route(name: str, entry: Any, secret: Callable[[str], str]) -> WebhookRoute:
    label = f"platforms.webhook.routes.{name}"
    try:
        check_name(name)
        options = parse_options(entry)
    except FieldError as error:
        raise PlatformRefusedError(f"{label}: {error}") from error
    if not secret(options.secret_env):
        text = f"{label}: set {options.secret_env} in the environment or in .env."
        raise PlatformRefusedError(text)
    return WebhookRoute(
        name,
        secret(options.secret_env),
        options.prompt,
        options.deliver_url,
        options.chat == "fixed",
        options.needs_timestamp,
        options.per_minute,
    )
