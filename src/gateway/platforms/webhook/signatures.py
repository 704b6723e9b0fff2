"""Signatures of what comes in and goes out, in two forms.

`X-Hub-Signature-256: sha256=HMAC(body)` is GitHub's.
`X-Hermes-Signature: t=SECONDS,v1=HMAC(SECONDS.body)` says when it was made, too: what is older
than five minutes is refused, so that it cannot be sent again by somebody who has seen it. The
HMAC is SHA-256, in hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB: Final = "X-Hub-Signature-256"
HERMES: Final = "X-Hermes-Signature"
TOLERANCE_SECONDS: Final = 300


def plain(secret: str, body: bytes) -> str:
    """A signature in GitHub's form."""
    return f"sha256={_digest(secret, body)}"


def stamped(secret: str, body: bytes, at: int) -> str:
    """A signature that says when it was made."""
    return f"t={at},v1={_digest(secret, f'{at}.'.encode() + body)}"


def is_signed(
    headers: Mapping[str, str], body: bytes, secret: str, now: float, *, needs_stamp: bool = False
) -> bool:
    """Whether a body was signed with a secret; where both forms are given, the stamped counts."""
    found = headers.get(HERMES)
    if found is not None:
        return _is_stamped(found, body, secret, now)
    shown = headers.get(GITHUB, "")
    return not needs_stamp and _is_same(shown, plain(secret, body))


def _is_stamped(found: str, body: bytes, secret: str, now: float) -> bool:
    parts = dict(one.strip().partition("=")[::2] for one in found.split(","))
    moment = parts.get("t", "")
    if not (moment.isascii() and moment.isdigit() and len(moment) <= 12):
        return False
    expected = _digest(secret, f"{moment}.".encode() + body)
    is_right = _is_same(parts.get("v1", ""), expected)
    return is_right and abs(now - int(moment)) <= TOLERANCE_SECONDS


def _is_same(shown: str, expected: str) -> bool:
    return hmac.compare_digest(shown.encode(), expected.encode())


def _digest(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
