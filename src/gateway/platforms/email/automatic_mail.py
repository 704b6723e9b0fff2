"""Recognizes automatic messages, which are never answered: two programs could reply forever."""

from __future__ import annotations

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
