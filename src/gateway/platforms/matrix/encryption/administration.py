"""What `hermes gateway matrix` does with the keys of an account.

It opens the key store as its owner; a running gateway notices that and reads it again.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import vodozemac
from aiohttp import ClientError
from Crypto.Cipher import AES
from Crypto.Util import Counter
from nio.crypto import InboundGroupSession  # type: ignore[import-untyped] # it has no types

from gateway import config_values
from gateway.platforms.matrix import results
from gateway.platforms.matrix.client import MatrixClient
from gateway.platforms.matrix.encryption.key_store import KeyStore
from gateway.platforms.matrix.encryption.machine import MEGOLM
from gateway.platforms.matrix.encryption.own_device import open_device
from gateway.platforms.matrix.encryption.record_types import (
    DEVICE,
    DEVICES_PREFIX,
    ROOM_KEY_PREFIX,
    ROOM_PREFIX,
    SUMMARY,
    UNREADABLE,
    WAITING_PREFIX,
    account_prefix,
)
from hermes_core.errors import PlatformDownError, PlatformRefusedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.base import Records
    from hermes_core.json_values import JsonData, JsonObject

HEADER: Final = "-----BEGIN MEGOLM SESSION DATA-----"
FOOTER: Final = "-----END MEGOLM SESSION DATA-----"
VERSION: Final = b"\x01"
KEY_ROUNDS: Final = 500_000
MAX_ROUNDS: Final = 10_000_000
LINE_CHARS: Final = 96
HEAD_BYTES: Final = 37  # version, salt, counter, rounds
MAC_BYTES: Final = 32
NOT_A_KEY_FILE: Final = (
    "This is not a file with room keys: export it in a Matrix app or with Hermes."
)
WRONG_PASSPHRASE: Final = "The passphrase is wrong, or the file is damaged."  # noqa: S105 - a text


def export_keys(store: KeyStore, passphrase: str) -> tuple[bytes, int]:
    """The content of a file with all room keys, and how many these are."""
    exported = [_exported(session) for session in store.load_inbound_group_sessions()]
    encoded = base64.b64encode(_encrypt(json.dumps(exported).encode(), passphrase)).decode()
    lines = [encoded[start : start + LINE_CHARS] for start in range(0, len(encoded), LINE_CHARS)]
    return "\n".join([HEADER, *lines, FOOTER, ""]).encode(), len(exported)


def import_keys(store: KeyStore, content: bytes, passphrase: str) -> tuple[int, int]:
    """Store the room keys of a file that are missing; how many, and how many it contains.

    The store is opened after the passphrase was tried, which takes long: a running gateway opens
    it again as soon as it has noticed.
    """
    sessions = [_imported(item) for item in _read(content, passphrase)]
    store.open()
    present = {name for name, _record in store.items(ROOM_KEY_PREFIX)}
    new = [item for item in sessions if f"{item.sender_key} {item.id}" not in present]
    for session in new:
        store.save_inbound_group_session(session)
    store.write()
    return len(new), len(sessions)


def _exported(session: Any) -> dict[str, Any]:
    return {
        "algorithm": MEGOLM,
        "sender_key": session.sender_key,
        "sender_claimed_keys": {"ed25519": session.ed25519},
        "forwarding_curve25519_key_chain": session.forwarding_chain,
        "room_id": session.room_id,
        "session_id": session.id,
        "session_key": session.export_session(session.first_known_index),
    }


def _imported(item: Any) -> Any:
    fields = config_values.mapping(item)
    claimed = config_values.mapping(fields.get("sender_claimed_keys"))
    chain = fields.get("forwarding_curve25519_key_chain")
    try:
        return InboundGroupSession.import_session(
            config_values.text(fields.get("session_key")),
            config_values.text(claimed.get("ed25519")),
            config_values.text(fields.get("sender_key")),
            config_values.text(fields.get("room_id")),
            list(map(str, chain)) if isinstance(chain, list) else [],
        )
    except vodozemac.SessionKeyDecodeException as error:
        raise UsageError(f"The file contains an invalid room key: {error}") from error


def _read(content: bytes, passphrase: str) -> list[Any]:
    text = content.decode("utf-8", "replace").strip()
    if not text.startswith(HEADER) or not text.endswith(FOOTER):
        raise UsageError(NOT_A_KEY_FILE)
    body = text.removeprefix(HEADER).removesuffix(FOOTER)
    try:
        data = base64.b64decode("".join(body.split()) + "==")
    except binascii.Error as error:
        raise UsageError(NOT_A_KEY_FILE) from error
    try:
        keys = json.loads(_decrypt(data, passphrase))
    except ValueError as error:
        raise UsageError(WRONG_PASSPHRASE) from error
    return keys if isinstance(keys, list) else []


def _derive(passphrase: str, salt: bytes, rounds: int) -> tuple[bytes, bytes]:
    derived = hashlib.pbkdf2_hmac("sha512", passphrase.encode(), salt, rounds, 64)
    return derived[:32], derived[32:]


def _cipher(key: bytes, start: bytes) -> Any:
    return AES.new(key, AES.MODE_CTR, counter=Counter.new(128, initial_value=int.from_bytes(start)))


def _encrypt(data: bytes, passphrase: str) -> bytes:
    salt, start = os.urandom(16), bytearray(os.urandom(16))
    start[8] &= 0x7F  # as the format wants it
    key, mac_key = _derive(passphrase, salt, KEY_ROUNDS)
    encrypted = _cipher(key, bytes(start)).encrypt(data)
    payload = VERSION + salt + start + KEY_ROUNDS.to_bytes(4) + encrypted
    return bytes(payload + hmac.digest(mac_key, payload, "sha256"))


def _decrypt(data: bytes, passphrase: str) -> bytes:
    rounds = int.from_bytes(data[33:HEAD_BYTES])
    is_complete = len(data) > HEAD_BYTES + MAC_BYTES and data[:1] == VERSION
    if not is_complete or not 0 < rounds <= MAX_ROUNDS:
        raise UsageError(NOT_A_KEY_FILE)
    key, mac_key = _derive(passphrase, data[1:17], rounds)
    payload, mac = data[:-MAC_BYTES], data[-MAC_BYTES:]
    if not hmac.compare_digest(hmac.digest(mac_key, payload, "sha256"), mac):
        raise UsageError(WRONG_PASSPHRASE)
    return bytes(_cipher(key, data[17:33]).decrypt(payload[HEAD_BYTES:]))


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


DEVICE_NAME: Final = "Hermes"


class ResetResult(NamedTuple):
    """The new device of an account."""

    account: str
    device_id: str
    problem: str  # why it is not cross-signed, or empty


async def cross_sign(records: Records, homeserver: str, token: str, password: str) -> ResetResult:
    """Sign the device with cross-signing keys; those of another program are replaced."""
    client = MatrixClient(homeserver, token)
    try:
        return await _open(client, records, password, is_new=False)
    except (ClientError, OSError, TimeoutError) as error:
        raise _no_response(error) from error
    finally:
        await client.close()


async def reset(
    records: Records,
    homeserver: str,
    token: str,
    password: str,
    account: str,
    keep_token: Callable[[str], object],
) -> ResetResult:
    """Start with a new device: log in with the password, or use the token of a new login.

    *keep_token* stores the new token.
    """
    client = MatrixClient(homeserver, token)
    try:
        if password:
            new_token = await _log_in(client, account, password)
            keep_token(new_token)
            await _log_out(client)
            client.access_token = new_token
        return await _open(client, records, password, is_new=True)
    except (ClientError, OSError, TimeoutError) as error:
        raise _no_response(error) from error
    finally:
        await client.close()


def _no_response(error: Exception) -> PlatformDownError:
    reason = results.describe_exception(error)
    return PlatformDownError(f"No response from the homeserver: {reason}")


async def _log_in(client: MatrixClient, account: str, password: str) -> str:
    body: dict[str, JsonData] = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": account},
        "password": password,
        "initial_device_display_name": DEVICE_NAME,
    }
    answer = await client.call("POST", "login", body)
    return str(answer["access_token"])


async def _log_out(client: MatrixClient) -> None:
    """Delete the device of the old token, if that is still valid."""
    try:
        await client.call("POST", "logout", {})
    except PlatformRefusedError:
        return


async def _open(
    client: MatrixClient, records: Records, password: str, *, is_new: bool
) -> ResetResult:
    answer = await client.whoami()
    if results.is_error(answer):
        raise results.platform_error(answer)
    account = str(answer.user_id)
    store = KeyStore(records, account)
    if is_new:
        await asyncio.to_thread(store.open)
        if store.device_id != answer.device_id:
            store.forget_device()
            await store.flush()
    machine = await open_device(client, store, account, answer.device_id, password)
    problem = str(store.load_json(SUMMARY).get("problem") or "")
    return ResetResult(account, machine.store.device_id, problem)
