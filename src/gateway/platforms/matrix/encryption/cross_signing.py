"""Cross-signing: the keys of an account that sign its devices, and those of other users.

Three Ed25519 keys belong to an account: the master key signs the other two; the self-signing key
signs the account's devices, the user-signing key the master keys of other users.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NamedTuple

import vodozemac
from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa
from nio import Api  # type: ignore[import-untyped] # it has no types

from gateway import config_values

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject, JsonValue

USAGES: Final = ("master", "self_signing", "user_signing")


class SigningKey:
    """An Ed25519 key pair."""

    def __init__(self, seed: str = "") -> None:
        raw = base64.b64decode(seed) if seed else None
        self._key = eddsa.import_private_key(raw) if raw else ECC.generate(curve="Ed25519")

    @property
    def seed(self) -> str:
        """The private key."""
        return base64.b64encode(self._key.seed).decode()

    @property
    def public(self) -> str:
        """The public key, as Matrix writes it."""
        return _unpadded(self._key.public_key().export_key(format="raw"))

    def sign(self, text: str) -> str:
        """The signature of a text."""
        return _unpadded(eddsa.new(self._key, "rfc8032").sign(text.encode()))


class CrossSigningKeys(NamedTuple):
    """The keys of an account."""

    master: SigningKey
    self_signing: SigningKey
    user_signing: SigningKey

    @classmethod
    def create(cls) -> CrossSigningKeys:
        """New keys."""
        return cls(SigningKey(), SigningKey(), SigningKey())

    @classmethod
    def load(cls, record: JsonObject) -> CrossSigningKeys:
        """The keys of a record."""
        return cls(*(SigningKey(config_values.text(record[name])) for name in USAGES))

    def record(self) -> dict[str, str]:
        """The record that stores the keys."""
        return {name: key.seed for name, key in zip(USAGES, self, strict=True)}

    def upload_body(self, user_id: str) -> JsonObject:
        """The public keys, signed by the master key."""
        body: JsonObject = {}
        for usage, key in zip(USAGES, self, strict=True):
            public: JsonObject = {
                "user_id": user_id,
                "usage": [usage],
                "keys": {f"ed25519:{key.public}": key.public},
            }
            is_master = usage == USAGES[0]
            body[f"{usage}_key"] = public if is_master else signed(public, user_id, self.master)
        return body


def signed(value: JsonObject, user_id: str, key: SigningKey) -> JsonObject:
    """A JSON object with the signature of a cross-signing key, in place of any others."""
    signature: JsonObject = {f"ed25519:{key.public}": key.sign(canonical(value))}
    return {**value, "signatures": {user_id: signature}}


def canonical(value: JsonObject) -> str:
    """The text of a JSON object that is signed."""
    text = {name: item for name, item in value.items() if name not in {"signatures", "unsigned"}}
    return str(Api.to_canonical_json(text))


def is_signed_by(value: JsonObject, user_id: str, key: str) -> bool:
    """Whether a JSON object has a valid signature of a user's key."""
    signatures = config_values.mapping(value.get("signatures"))
    found = config_values.mapping(signatures.get(user_id)).get(f"ed25519:{key}")
    if not key or not isinstance(found, str):
        return False
    try:
        signature = vodozemac.Ed25519Signature.from_base64(found)
        public = vodozemac.Ed25519PublicKey.from_base64(key)
        public.verify_signature(canonical(value).encode(), signature)
    except (vodozemac.SignatureException, vodozemac.KeyException):
        return False
    return True


def public_key(value: JsonValue) -> str:
    """The key of a cross-signing key object; empty if it has none."""
    keys = config_values.mapping(config_values.mapping(value).get("keys"))
    return next((str(key) for key in keys.values()), "")


class KeyQuery(NamedTuple):
    """The keys of users, as the homeserver returned them."""

    response: JsonObject

    def key_object(self, usage: str, user_id: str) -> JsonObject:
        """A cross-signing key of a user."""
        found = config_values.mapping(self.response.get(f"{usage}_keys"))
        return config_values.mapping(found.get(user_id))

    def master_key(self, user_id: str) -> str:
        """The master key of a user; empty if there is none."""
        return public_key(self.key_object("master", user_id))

    def device(self, user_id: str, device_id: str) -> JsonObject:
        """The keys of a device; empty if there are none."""
        found = config_values.mapping(self.response.get("device_keys"))
        return config_values.mapping(config_values.mapping(found.get(user_id)).get(device_id))

    def is_cross_signed(self, user_id: str, device_id: str, master_key: str) -> bool:
        """Whether a device is signed by its user, whose master key is *master_key*."""
        signing = self.key_object("self_signing", user_id)
        return (
            self.master_key(user_id) == master_key
            and is_signed_by(signing, user_id, master_key)
            and is_signed_by(self.device(user_id, device_id), user_id, public_key(signing))
        )


def _unpadded(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
