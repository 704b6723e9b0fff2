"""The state of the keys of an account, read without the encryption library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from gateway import config_values
from gateway.platforms.matrix.encryption.record_names import (
    DEVICE,
    DEVICES_PREFIX,
    ROOM_KEY_PREFIX,
    ROOM_PREFIX,
    SUMMARY,
    UNREADABLE,
    WAITING_PREFIX,
    account_prefix,
)

if TYPE_CHECKING:
    from gateway.platforms.base import Records
    from hermes_core.json_values import JsonObject

FINGERPRINT_GROUP_CHARS = 4


class KeyStatus(NamedTuple):
    """What `hermes gateway matrix status` shows."""

    account: str
    device_id: str
    fingerprint: str
    cross_signed: bool
    problem: str
    encrypted_rooms: int
    room_keys: int
    verified_devices: list[str]  # user and device
    waiting: int  # messages whose keys have not arrived
    unreadable: int  # messages whose keys never arrived

    @property
    def readable_fingerprint(self) -> str:
        """The fingerprint in groups, as apps show it."""
        size = FINGERPRINT_GROUP_CHARS
        key = self.fingerprint
        return " ".join(key[start : start + size] for start in range(0, len(key), size))


def read_status(records: Records, account: str) -> KeyStatus:
    """The state of the keys of an account."""
    stored = records.load(account_prefix(account))

    def content(name: str) -> JsonObject:
        return config_values.mapping(json.loads(stored.get(name) or b"{}"))

    def count(prefix: str) -> int:
        return sum(name.startswith(prefix) for name in stored)

    verified = [
        f"{name.removeprefix(DEVICES_PREFIX)} {device_id}"
        for name in sorted(stored)
        if name.startswith(DEVICES_PREFIX)
        for device_id, fields in content(name).items()
        if _is_verified(config_values.mapping(fields))
    ]
    device, summary = content(DEVICE), content(SUMMARY)
    return KeyStatus(
        account,
        config_values.text(device.get("device_id")),
        config_values.text(device.get("ed25519")),
        bool(device) and bool(summary.get("cross_signed")),
        config_values.text(summary.get("problem")),
        count(ROOM_PREFIX),
        count(ROOM_KEY_PREFIX),
        verified,
        count(WAITING_PREFIX),
        config_values.number(content(UNREADABLE).get("count"), 0),
    )


def _is_verified(fields: JsonObject) -> bool:
    return bool(fields.get("verified")) and not fields.get("deleted")
