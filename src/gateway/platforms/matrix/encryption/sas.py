"""Emoji verification (SAS): the calculations of the side that accepts."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

import vodozemac
from nio import Api  # type: ignore[import-untyped] # it has no types

from gateway import config_values

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject

METHOD: Final = "m.sas.v1"
KEY_AGREEMENT: Final = "curve25519-hkdf-sha256"
HASH: Final = "sha256"
MAC_METHODS: Final = ("hkdf-hmac-sha256.v2", "hkdf-hmac-sha256")
OLD_MAC_METHOD: Final = MAC_METHODS[1]
# The table of the specification; the library has other names for some.
EMOJI_TABLE: Final = (
    "🐶 Dog  🐱 Cat  🦁 Lion  🐎 Horse  🦄 Unicorn  🐷 Pig  🐘 Elephant  🐰 Rabbit  🐼 Panda "
    "🐓 Rooster  🐧 Penguin  🐢 Turtle  🐟 Fish  🐙 Octopus  🦋 Butterfly  🌷 Flower "
    "🌳 Tree  🌵 Cactus  🍄 Mushroom  🌏 Globe  🌙 Moon  ☁️ Cloud  🔥 Fire  🍌 Banana "
    "🍎 Apple  🍓 Strawberry  🌽 Corn  🍕 Pizza  🎂 Cake  ❤️ Heart  😀 Smiley  🤖 Robot "
    "🎩 Hat  👓 Glasses  🔧 Spanner  🎅 Santa  👍 Thumbs_Up  ☂️ Umbrella  ⌛ Hourglass "
    "⏰ Clock  🎁 Gift  💡 Light_Bulb  📕 Book  ✏️ Pencil  📎 Paperclip  ✂️ Scissors "
    "🔒 Lock  🔑 Key  🔨 Hammer  ☎️ Telephone  🏁 Flag  🚂 Train  🚲 Bicycle  ✈️ Aeroplane "
    "🚀 Rocket  🏆 Trophy  ⚽ Ball  🎸 Guitar  🎺 Trumpet  🔔 Bell  ⚓ Anchor  🎧 Headphones "
    "📁 Folder  📌 Pin"
)
SAS_INFO: Final = "MATRIX_KEY_VERIFICATION_SAS"
MAC_INFO: Final = "MATRIX_KEY_VERIFICATION_MAC"


class SasError(ValueError):
    """The other side does not follow the protocol; with the code that tells it."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class SasExchange:
    """The secrets that two devices share after the exchange of their public keys."""

    def __init__(self, me: tuple[str, str], other: tuple[str, str], transaction_id: str) -> None:
        self._me = me  # user and device
        self._other = other
        self._transaction_id = transaction_id
        self._sas = vodozemac.Sas()
        self.public_key = self._sas.public_key.to_base64()
        self._mac_method = ""
        self._secret: vodozemac.EstablishedSas | None = None
        self._other_key = ""

    def accept(self, start: JsonObject) -> JsonObject:
        """The content that accepts a start."""
        offered = start.get("message_authentication_codes")
        macs = offered if isinstance(offered, list) else []
        self._mac_method = next((item for item in MAC_METHODS if item in macs), "")
        names = (
            ("key_agreement_protocols", KEY_AGREEMENT),
            ("hashes", HASH),
            ("short_authentication_string", "emoji"),
        )
        is_known = all(wanted in (start.get(name) or ()) for name, wanted in names)  # type: ignore[operator]
        if start.get("method") != METHOD or not is_known or not self._mac_method:
            raise SasError("m.unknown_method", "no common verification method")
        committed = self.public_key + str(Api.to_canonical_json(start))
        return {
            "method": METHOD,
            "key_agreement_protocol": KEY_AGREEMENT,
            "hash": HASH,
            "message_authentication_code": self._mac_method,
            "short_authentication_string": ["emoji"],
            "commitment": base64.b64encode(hashlib.sha256(committed.encode()).digest())
            .decode()
            .rstrip("="),
        }

    def receive_key(self, key: str) -> list[tuple[str, str]]:
        """The seven emoji and their names, from the public key of the other side."""
        if self._secret is not None:
            raise SasError("m.unexpected_message", "a second key was sent")
        try:
            self._secret = self._sas.diffie_hellman(vodozemac.Curve25519PublicKey.from_base64(key))
        except ValueError as error:
            raise SasError("m.invalid_message", "the key is invalid") from error
        info = "|".join(
            (SAS_INFO, *self._other, key, *self._me, self.public_key, self._transaction_id)
        )
        indices = self._secret.bytes(info).emoji_indices
        return [_emoji(index) for index in indices]

    def mac(self, keys: dict[str, str]) -> JsonObject:
        """The content that authenticates own keys, by their IDs."""
        macs: JsonObject = {name: self._mac(key, name, is_own=True) for name, key in keys.items()}
        names = ",".join(sorted(keys))
        return {"mac": macs, "keys": self._mac(names, "KEY_IDS", is_own=True)}

    def check_mac(self, content: JsonObject, keys: dict[str, str]) -> set[str]:
        """The IDs of the other side's *keys* that it has authenticated."""
        macs = config_values.mapping(content.get("mac"))
        names = ",".join(sorted(macs))
        expected = self._mac(names, "KEY_IDS", is_own=False)
        if content.get("keys") != expected:
            raise SasError("m.key_mismatch", "the keys do not match")
        for name, value in macs.items():
            if name in keys and value != self._mac(keys[name], name, is_own=False):
                raise SasError("m.key_mismatch", "the keys do not match")
        return keys.keys() & macs.keys()

    def _mac(self, text: str, key_id: str, *, is_own: bool) -> str:
        if self._secret is None:
            raise SasError("m.unexpected_message", "no key was sent")
        sides = (*self._me, *self._other) if is_own else (*self._other, *self._me)
        info = "".join((MAC_INFO, *sides, self._transaction_id, key_id))
        if self._mac_method == OLD_MAC_METHOD:
            return str(self._secret.calculate_mac_invalid_base64(text, info))
        return str(self._secret.calculate_mac(text, info))


def _emoji(index: int) -> tuple[str, str]:
    """An emoji of the table and its name."""
    words = EMOJI_TABLE.split()
    return words[2 * index], words[2 * index + 1].replace("_", " ")
