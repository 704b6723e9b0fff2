"""Addresses and message IDs, read strictly: whatever is unclear is not accepted.

Two programs may read an unusual From header differently, and the one that verifies the sender is
the mail server. So only the plain forms `a@b` and `Name <a@b>` are accepted here.
"""

from __future__ import annotations

import re
from typing import Final

MAX_ADDRESS_CHARS: Final = 254
MAX_ID_CHARS: Final = 400
_LOCAL_PART = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_DOMAIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
ADDRESS: Final = re.compile(rf"{_LOCAL_PART}@{_DOMAIN}")
_NAME = r'(?:"(?:[^"\\]|\\.)*"|[^<>@,;:"\\]*)'
MAILBOX: Final = re.compile(
    rf"\s*(?:{_NAME}\s*<({_LOCAL_PART}@{_DOMAIN})>|({_LOCAL_PART}@{_DOMAIN}))\s*"
)
MESSAGE_ID: Final = re.compile(r"<[!-;=?-~]+>")


def parse_address(text: str) -> str | None:
    """A bare address in lower case; None if it is not one."""
    text = text.strip()
    is_address = len(text) <= MAX_ADDRESS_CHARS and ADDRESS.fullmatch(text)
    return text.lower() if is_address else None


def parse_sender(headers: list[str]) -> str | None:
    """The address of the From headers; None unless there is exactly one."""
    if len(headers) != 1 or len(headers[0]) > 10 * MAX_ADDRESS_CHARS:
        return None
    match = MAILBOX.fullmatch(re.sub(r"\r?\n[ \t]", " ", headers[0]))
    return parse_address(match[1] or match[2]) if match else None


def domain_of(address: str) -> str:
    """The domain of an address."""
    return address.rpartition("@")[2].lower()


def message_ids(text: str) -> list[str]:
    """The message IDs of a header, in order."""
    found = [item for item in MESSAGE_ID.findall(text) if len(item) <= MAX_ID_CHARS]
    return [item for item in found if "@" in item[2:-2]]
