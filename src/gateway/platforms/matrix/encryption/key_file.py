"""Files of room keys, encrypted with a passphrase, as Element and other apps write them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
from typing import TYPE_CHECKING, Any, Final

import vodozemac
from Crypto.Cipher import AES
from Crypto.Util import Counter
from nio.crypto import InboundGroupSession  # type: ignore[import-untyped] # it has no types

from gateway import config_values
from gateway.platforms.matrix.encryption.machine import MEGOLM
from gateway.platforms.matrix.encryption.record_names import ROOM_KEY_PREFIX
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from gateway.platforms.matrix.encryption.key_store import KeyStore

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
