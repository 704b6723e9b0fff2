"""The names of the records of a key store."""

from __future__ import annotations

from typing import Final

OWNER: Final = "owner"
DEVICE: Final = "device"
CROSS_SIGNING: Final = "cross_signing"
SUMMARY: Final = "summary"
UNREADABLE: Final = "unreadable"
OLM_PREFIX: Final = "olm/"
ROOM_KEY_PREFIX: Final = "room_key/"
DEVICES_PREFIX: Final = "devices/"
MASTER_KEY_PREFIX: Final = "master_key/"
REQUEST_PREFIX: Final = "request/"
ROOM_PREFIX: Final = "room/"
WAITING_PREFIX: Final = "waiting/"
DEVICE_PREFIXES: Final = (OLM_PREFIX, REQUEST_PREFIX)  # of no use to another device

# Texts that an adapter keeps; the account follows the colon.
ACCOUNT_NAME: Final = "account"
VERIFICATION_NAME: Final = "verification:"
ANSWER_NAME: Final = "verification-answer:"


def account_prefix(account: str) -> str:
    """The prefix of the records of an account."""
    return f"keys/{account}/"
