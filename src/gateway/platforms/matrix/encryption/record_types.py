"""The content of the records of a key store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

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


class DeviceRecord(TypedDict):
    """The keys of the own device."""

    device_id: str
    shared: bool
    pickle: str
    fallback_key_time: float
    ed25519: str
    curve25519: str


class OlmRecord(TypedDict):
    """A session with another device."""

    pickle: str
    created: float
    used: float


class RoomKeyRecord(TypedDict):
    """A room key."""

    pickle: str
    ed25519: str
    sender_key: str
    room_id: str
    chain: list[str]


class OtherDeviceRecord(TypedDict):
    """A device of a user."""

    keys: dict[str, str]
    name: str
    deleted: bool
    verified: bool


class RequestRecord(TypedDict):
    """A request for a room key."""

    session_id: str
    room_id: str
    algorithm: str


class WaitingRecord(TypedDict):
    """An event without its key."""

    room_id: str
    event: JsonObject
    since: float


class VerificationRecord(TypedDict, total=False):
    """The verification that is under way; empty if there is none."""

    transaction_id: str
    user: str
    device: str
    emoji: list[tuple[str, str]]
