"""Addresses and message IDs, read strictly: whatever is unclear is not accepted.

Two programs may read an unusual From header differently, and the one that verifies the sender is
the mail server. So only the plain forms `a@b` and `Name <a@b>` are accepted here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from email.message import Message

LOOP_HEADER: Final = "X-Loop"
BULK_PRECEDENCES: Final = frozenset({"bulk", "list", "junk", "auto_reply"})
LIST_HEADERS: Final = ("List-Id", "List-Unsubscribe", "List-Post", "X-Auto-Response-Suppress")
SYSTEM_SENDERS: Final = frozenset({"mailer-daemon", "postmaster"})


def automatic_reason(message: Message, sender: str, account: str) -> str:
    """Why a message is not answered; empty if a person seems to have written it."""

    def value(name: str) -> str:
        return str(message.get(name) or "").strip().lower()

    header = next((name for name in LIST_HEADERS if name in message), "a list")
    reasons = {
        "the own address as sender": sender == account,
        f"the own address in {LOOP_HEADER}": account in value(LOOP_HEADER),
        "Auto-Submitted": value("Auto-Submitted").partition(";")[0].strip() not in {"", "no"},
        "Precedence": value("Precedence") in BULK_PRECEDENCES,
        header: header in message,
        "an empty Return-Path": "Return-Path" in message and value("Return-Path") in {"", "<>"},
        "a delivery report": message.get_content_type() == "multipart/report",
        "a mail system": sender.partition("@")[0] in SYSTEM_SENDERS,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


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
