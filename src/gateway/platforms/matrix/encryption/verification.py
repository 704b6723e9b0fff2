"""Emoji verification of the owner's devices, as a device or in a room.

The owner starts it in a Matrix app. The bot accepts, shows seven emoji, and trusts the device once
the owner has confirmed that the app shows the same: in the chat or on the command line.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Final

import vodozemac
from nio import Api  # type: ignore[import-untyped] # it has no types

from gateway import config_values
from gateway.platforms.matrix.encryption import cross_signing
from gateway.platforms.matrix.encryption.cross_signing import CrossSigningKeys
from gateway.platforms.matrix.encryption.record_types import (
    ANSWER_NAME,
    CROSS_SIGNING,
    VERIFICATION_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.platforms.base import Memory, SendResult
    from gateway.platforms.matrix.client import MatrixClient
    from gateway.platforms.matrix.encryption.machine import EncryptionMachine
    from gateway.platforms.matrix.encryption.record_types import VerificationRecord
    from hermes_core.json_values import JsonData, JsonObject

    SendEvent = Callable[[str, str, dict[str, JsonData]], Awaitable[SendResult]]


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


log = logging.getLogger(__name__)

TYPE_PREFIX: Final = "m.key.verification."
MAX_SECONDS: Final = 600  # of one verification
COMMAND: Final = "/verify"
EMOJI_TEXT: Final = (
    "Verification of your device {device}: {emoji}\n"
    "If your app shows the same seven emoji, send `!verify yes`, otherwise `!verify no`. "
    "`hermes gateway matrix verify` on the machine of Hermes is safer: an attacker cannot change "
    "what it shows."
)
VERIFIED_TEXT: Final = "Your device {device} is verified."
NOT_OWNER: Final = "only the owner of this bot can verify it"


class Verification:
    """A verification that is under way."""

    def __init__(self, user: str, device_id: str, transaction_id: str, room_id: str) -> None:
        self.user = user
        self.device_id = device_id
        self.transaction_id = transaction_id
        self.room_id = room_id  # empty between devices
        self.deadline = time.monotonic() + MAX_SECONDS
        self.exchange: SasExchange | None = None
        self.device: Any = None
        self.emoji: list[tuple[str, str]] = []
        self.mac: JsonObject | None = None  # of the other side
        self.is_confirmed = False

    def facts(self) -> VerificationRecord:
        """What the command line shows."""
        return {
            "transaction_id": self.transaction_id,
            "user": self.user,
            "device": self.device_id,
            "emoji": self.emoji,
        }


class Verifications:
    """The verification of an account; a new one replaces the one before."""

    def __init__(
        self,
        client: MatrixClient,
        machine: EncryptionMachine,
        account: str,
        memory: Memory,
        is_owner: Callable[[str], bool],
        send_event: SendEvent,
    ) -> None:
        self._client = client
        self._machine = machine
        self._me = account
        self._memory = memory
        self._is_owner = is_owner
        self._send_event = send_event
        self._current: Verification | None = None

    @property
    def is_open(self) -> bool:
        """Whether emoji wait to be confirmed."""
        return self._current is not None and bool(self._current.emoji)

    async def clear(self) -> None:
        """Forget the verification of an earlier run: its secrets were never stored."""
        if await self._memory.recall(VERIFICATION_NAME + self._me):
            await self._memory.keep(VERIFICATION_NAME + self._me, "{}")

    async def handle(
        self, kind: str, sender: str, content: JsonObject, room_id: str = "", event_id: str = ""
    ) -> None:
        """Handle an event of a verification; *room_id* and *event_id* of one in a room."""
        relation = config_values.mapping(content.get("m.relates_to"))
        name = relation.get("event_id") or event_id if room_id else content.get("transaction_id")
        transaction_id = config_values.text(name)
        step = kind.removeprefix(TYPE_PREFIX)
        if step in {"request", "start"} and not self._matches(sender, transaction_id):
            await self._begin(step, sender, content, transaction_id, room_id)
        current = self._current
        if current is None or not self._matches(sender, transaction_id):
            return
        try:
            await self._advance(current, step, content)
        except SasError as error:
            await self._cancel(current, error.code, str(error))

    def _matches(self, sender: str, transaction_id: str) -> bool:
        current = self._current
        return current is not None and (current.user, current.transaction_id) == (
            sender,
            transaction_id,
        )

    async def _begin(
        self, step: str, sender: str, content: JsonObject, transaction_id: str, room_id: str
    ) -> None:
        if room_id and (step == "start" or content.get("to") != self._me):
            return  # a verification between other people
        device_id = config_values.text(content.get("from_device"))
        started = Verification(sender, device_id, transaction_id, room_id)
        if sender != self._me and not await asyncio.to_thread(self._is_owner, sender):
            log.warning("verification request of %s rejected: not the owner", sender)
            await self._cancel(started, "m.user", NOT_OWNER)
            return
        if self._current is not None:
            await self._cancel(self._current, "m.user", "another verification was started")
        self._current = started

    async def _advance(self, current: Verification, step: str, content: JsonObject) -> None:
        match step:
            case "request":
                methods = content.get("methods")
                if not isinstance(methods, list) or METHOD not in methods:
                    raise SasError("m.unknown_method", "no common verification method")
                ready: JsonObject = {
                    "from_device": self._machine.store.device_id,
                    "methods": [METHOD],
                }
                await self._send(current, "ready", ready)
            case "start":
                await self._start(current, content)
            case "key":
                await self._receive_key(current, content)
            case "mac":
                current.mac = content
                await self._finish(current)
            case "cancel":
                log.info("verification cancelled: %s", content.get("reason"))
                await self._close(current)

    async def _start(self, current: Verification, content: JsonObject) -> None:
        device_id = config_values.text(content.get("from_device"))
        current.device = await self._machine.find_device(current.user, device_id)
        if current.device is None or current.exchange is not None:
            raise SasError("m.unexpected_message", "the device is unknown")
        current.device_id = device_id
        me = (self._me, self._machine.store.device_id)
        other = (current.user, device_id)
        current.exchange = SasExchange(me, other, current.transaction_id)
        await self._send(current, "accept", current.exchange.accept(content))

    async def _receive_key(self, current: Verification, content: JsonObject) -> None:
        if current.exchange is None:
            raise SasError("m.unexpected_message", "the verification was not started")
        current.emoji = current.exchange.receive_key(config_values.text(content.get("key")))
        await self._send(current, "key", {"key": current.exchange.public_key})
        await self._memory.keep(VERIFICATION_NAME + self._me, json.dumps(current.facts()))
        names = ", ".join(f"{emoji} {name}" for emoji, name in current.emoji)
        log.info("verification of %s %s: %s", current.user, current.device_id, names)
        await self._tell(current, EMOJI_TEXT.format(device=current.device_id, emoji=names))

    # The answer of the owner

    async def poll(self) -> None:
        """Read the answer that was given on the command line, and end what takes too long."""
        current = self._current
        if current is None:
            return
        if time.monotonic() > current.deadline:
            await self._cancel(current, "m.timeout", "the verification took too long")
            return
        stored = await self._memory.recall(ANSWER_NAME + self._me)
        answer = config_values.mapping(json.loads(stored or "{}"))
        if current.emoji and answer.get("transaction_id") == current.transaction_id:
            await self.answer(is_same=bool(answer.get("is_same")))

    async def answer(self, *, is_same: bool) -> None:
        """Continue after the owner has compared the emoji."""
        current = self._current
        if current is None or current.exchange is None or not current.emoji:
            return
        if not is_same:
            await self._cancel(current, "m.mismatched_sas", "the emoji differ")
            return
        if current.is_confirmed:
            return
        current.is_confirmed = True
        await self._send(current, "mac", current.exchange.mac(self._own_keys()))
        try:
            await self._finish(current)
        except SasError as error:
            await self._cancel(current, error.code, str(error))

    def _own_keys(self) -> dict[str, str]:
        keys = {f"ed25519:{self._machine.store.device_id}": self._machine.fingerprint}
        master_key = self._machine.store.master_keys.get(self._me)
        return keys | ({f"ed25519:{master_key}": master_key} if master_key else {})

    async def _finish(self, current: Verification) -> None:
        """Trust the keys once both sides have confirmed."""
        if current.mac is None or not current.is_confirmed or current.exchange is None:
            return
        query = await self._machine.query([current.user])
        master_key = query.master_key(current.user)
        keys = {f"ed25519:{current.device_id}": str(current.device.ed25519)}
        if master_key:
            keys[f"ed25519:{master_key}"] = master_key
        verified = current.exchange.check_mac(current.mac, keys)
        if f"ed25519:{current.device_id}" not in verified:
            raise SasError("m.key_mismatch", "the device was not authenticated")
        store = self._machine.store
        store.verify_device(current.device)
        if master_key and f"ed25519:{master_key}" in verified and current.user != self._me:
            store.trust_master_key(current.user, master_key)
            await self._sign_user(query.key_object("master", current.user), current.user)
            await self._machine.query([current.user])  # verifies the other devices, too
        await self._send(current, "done", {})
        await store.flush()
        log.info("device %s of %s verified", current.device_id, current.user)
        await self._close(current)
        await self._tell(current, VERIFIED_TEXT.format(device=current.device_id))

    async def _sign_user(self, master: JsonObject, user: str) -> None:
        """Sign the master key of a user, so that other apps of the account trust it, too."""
        stored = self._machine.store.load_json(CROSS_SIGNING)
        if not stored:
            return
        user_signing = CrossSigningKeys.load(stored).user_signing
        signed = cross_signing.signed(master, self._me, user_signing)
        key = cross_signing.public_key(master)
        await self._client.call("POST", "keys/signatures/upload", {user: {key: signed}})

    async def _cancel(self, current: Verification, code: str, reason: str) -> None:
        log.info("verification of %s ended: %s", current.user, reason)
        await self._send(current, "cancel", {"code": code, "reason": reason})
        await self._close(current)

    async def _close(self, current: Verification) -> None:
        if current is self._current:
            self._current = None
            await self._memory.keep(VERIFICATION_NAME + self._me, "{}")

    async def _send(self, current: Verification, step: str, fields: JsonObject) -> None:
        kind = TYPE_PREFIX + step
        content: dict[str, JsonData]
        if current.room_id:
            relation: JsonObject = {"rel_type": "m.reference", "event_id": current.transaction_id}
            content = {**fields, "m.relates_to": relation}
            await self._send_event(current.room_id, kind, content)
            return
        content = {**fields, "transaction_id": current.transaction_id}
        body = {"messages": {current.user: {current.device_id: content}}}
        await self._machine.send_to_device(kind, body)

    async def _tell(self, current: Verification, text: str) -> None:
        if current.room_id:
            content: dict[str, JsonData] = {"msgtype": "m.notice", "body": text, "m.mentions": {}}
            await self._send_event(current.room_id, "m.room.message", content)
