"""Encrypts and decrypts events with the Olm machine of matrix-nio.

The machine keeps the state; this module makes its requests. Every request is preceded by a flush
of the key store, so a key is stored before it can be used.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError
from nio import (  # type: ignore[import-untyped] # it has no types
    EncryptionError,
    ForwardedRoomKeyEvent,
    KeysClaimResponse,
    KeysQueryResponse,
    KeysUploadResponse,
    MegolmEvent,
    RoomKeyEvent,
    ToDeviceResponse,
)
from nio.crypto import Olm  # type: ignore[import-untyped]

from gateway import config_values
from gateway.platforms.matrix import results
from gateway.platforms.matrix.encryption.cross_signing import KeyQuery
from hermes_core.errors import PlatformDownError, PlatformError
from hermes_core.isolate import attempt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.platforms.matrix.client import MatrixClient
    from gateway.platforms.matrix.encryption.key_store import KeyStore
    from hermes_core.json_values import JsonData, JsonObject

log = logging.getLogger(__name__)

MEGOLM: Final = "m.megolm.v1.aes-sha2"
ENCRYPTED_TYPE: Final = "m.room.encrypted"
CLAIM_PAUSE_SECONDS: Final = 3600  # before a device without one-time keys is tried again
FALLBACK_KEY_SECONDS: Final = 7 * 86400
NO_READER: Final = "no device in this room can decrypt messages"
NO_VERIFIED_READER: Final = (
    "platforms.matrix.only_verified is set and no device in this room is verified: verify one "
    "with `hermes gateway matrix verify`"
)


class NoReaderError(PlatformDownError):
    """No device could decrypt the message."""


class EncryptionMachine:
    """The encryption of one device."""

    def __init__(self, client: MatrixClient, store: KeyStore, account: str) -> None:
        self._client = client
        self._me = account
        self.store = store
        self.olm: Any = Olm(account, store.device_id, store)
        self._room_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._query_lock = asyncio.Lock()
        self._sharing = asyncio.Lock()
        self._out_of_keys: dict[tuple[str, str], float] = {}  # devices, with the time

    @property
    def fingerprint(self) -> str:
        """The public key of the device that people compare."""
        return str(self.olm.account.identity_keys["ed25519"])

    # Sync

    def receive(self, batch: Any, events: Iterable[Any]) -> set[str]:
        """Handle the messages to this device; the IDs of new room keys."""
        new_keys: set[str] = set()
        for event in events:
            work = functools.partial(self._receive_event, event, new_keys)
            attempt(f"read {type(event).__name__}", work)
        count = batch.device_key_count.signed_curve25519
        if count is not None:
            self.olm.uploaded_key_count = count
        self.olm.add_changed_users(set(batch.device_list.changed) & self.olm.tracked_users)
        self.olm.tracked_users -= set(batch.device_list.left)
        attempt("read key requests", self.olm.collect_key_requests)
        return new_keys

    def _receive_event(self, event: Any, new_keys: set[str]) -> None:
        decrypted = self.olm.handle_to_device_event(event)
        if isinstance(decrypted, RoomKeyEvent | ForwardedRoomKeyEvent):
            new_keys.add(str(decrypted.session_id))

    async def settle(self) -> None:
        """Make the requests that are due; those that fail are made after the next sync."""
        try:
            await self.upload_keys()
            await self._query_due()
            if self.olm.wedged_devices or self.olm.key_request_devices_no_session:
                await self._claim(self.olm.get_users_for_key_claiming())
            for message in list(self.olm.outgoing_to_device_messages):
                await self.send_to_device(message.type, message.as_dict())
                self.olm.handle_response(ToDeviceResponse(message))
        except (ClientError, PlatformError, TimeoutError) as error:
            log.warning("Matrix key request failed: %s", results.describe_exception(error))

    async def upload_keys(self) -> None:
        """Upload the keys of the device, and new one-time keys for those that were used."""
        is_old = time.time() - self.store.fallback_key_time > FALLBACK_KEY_SECONDS
        if not self.olm.should_upload_keys and not is_old:
            return
        body = self.olm.share_keys() if self.olm.should_upload_keys else {}
        if is_old:
            body["fallback_keys"] = self._fallback_keys()
        self.olm.save_account()
        answer = await self._client.call("POST", "keys/upload", body)
        counts = config_values.mapping(answer.get("one_time_key_counts"))
        count = config_values.number(counts.get("signed_curve25519"), 0)
        self.olm.handle_response(KeysUploadResponse(0, count))

    def _fallback_keys(self) -> JsonObject:
        result: JsonObject = {}
        for name, key in self.store.new_fallback_key().items():
            signed: JsonObject = {"key": key, "fallback": True}
            signature: JsonObject = {f"ed25519:{self.store.device_id}": self.olm.sign_json(signed)}
            signed["signatures"] = {self._me: signature}
            result[f"signed_curve25519:{name}"] = signed
        return result

    async def send_to_device(self, kind: str, body: JsonData) -> None:
        """Send messages to devices."""
        await self._client.call("PUT", f"sendToDevice/{kind}/{uuid.uuid4().hex}", body)

    # The keys of other devices

    async def query(self, users: Iterable[str]) -> KeyQuery:
        """Request the keys of users."""
        devices: dict[str, list[str]] = {user: [] for user in users}
        query = KeyQuery(await self._client.call("POST", "keys/query", {"device_keys": devices}))
        found = config_values.mapping(query.response.get("device_keys"))
        response = KeysQueryResponse({user: found.get(user) or {} for user in devices}, {})
        attempt("read device keys", functools.partial(self.olm.handle_response, response))
        for user in devices:
            self._apply_cross_signing(query, user)
        return query

    async def _query_due(self) -> None:
        async with self._query_lock:
            users = set(self.olm.users_for_key_query)
            if users:
                await self.query(users)
                self.olm.users_for_key_query -= users

    def _apply_cross_signing(self, query: KeyQuery, user: str) -> None:
        """Verify the devices that a verified user has signed."""
        master_key = self.store.master_keys.get(user)
        if not master_key:
            return
        devices = list(self.olm.device_store.active_user_devices(user))
        if query.master_key(user) != master_key:
            log.warning("cross-signing keys of %s have changed: their devices need verification",
                        user)  # fmt: skip
            self.store.distrust_user(user)
            for device in devices:
                self.store.unverify_device(device)
            return
        for device in devices:
            is_signed = query.is_cross_signed(user, device.id, master_key)
            if is_signed and not device.verified:
                self.store.verify_device(device)

    async def find_device(self, user: str, device_id: str) -> Any:
        """A device of a user; None if it is unknown to the homeserver."""
        await self.query([user])
        devices = self.olm.device_store.active_user_devices(user)
        return next((device for device in devices if device.id == device_id), None)

    async def _claim(self, devices: dict[str, list[str]]) -> None:
        """Start sessions with devices."""
        wanted = {
            user: dict.fromkeys(names, "signed_curve25519") for user, names in devices.items()
        }
        answer = await self._client.call("POST", "keys/claim", {"one_time_keys": wanted})
        keys = config_values.mapping(answer.get("one_time_keys"))
        response = KeysClaimResponse(keys, {})
        attempt("read one-time keys", functools.partial(self.olm.handle_response, response))

    # Sending

    async def encrypt(
        self,
        room_id: str,
        users: Iterable[str],
        kind: str,
        content: dict[str, JsonData],
        *,
        is_for_all: bool = False,
    ) -> dict[str, JsonData]:
        """The content of an encrypted event; its key is shared with the room's devices first.

        An event *is_for_all* is part of a verification: a device that is not verified can read
        it, with a key of its own, whatever the settings are.
        """
        async with self._room_locks[room_id]:
            if is_for_all and not self.store.sends_to_all:
                encrypted = await self._encrypt_for_all(room_id, sorted(users), kind, content)
            else:
                async with self._sharing:
                    await self._share_key(room_id, sorted(users))
                encrypted = self._group_encrypt(room_id, kind, content)
        relation = content.get("m.relates_to")
        return encrypted | ({"m.relates_to": relation} if relation else {})

    def _group_encrypt(
        self, room_id: str, kind: str, content: dict[str, JsonData]
    ) -> dict[str, JsonData]:
        encrypted: dict[str, JsonData] = self.olm.group_encrypt(
            room_id, {"type": kind, "content": content}
        )
        return encrypted

    async def _encrypt_for_all(
        self, room_id: str, users: list[str], kind: str, content: dict[str, JsonData]
    ) -> dict[str, JsonData]:
        sessions = self.olm.outbound_group_sessions
        async with self._sharing:  # no other room is shared with all devices meanwhile
            before = sessions.pop(room_id, None)
            self.store.sends_to_all = True
            try:
                await self._share_key(room_id, users)
                return self._group_encrypt(room_id, kind, content)
            finally:
                self.store.sends_to_all = False
                sessions.pop(room_id, None)
                if before is not None:
                    sessions[room_id] = before

    async def _share_key(self, room_id: str, users: list[str]) -> None:
        self.olm.users_for_key_query.update(set(users) - self.olm.tracked_users)
        await self._query_due()
        readers = self._readers(users)
        sessions = self.olm.outbound_group_sessions
        current = sessions.get(room_id)
        if current is not None and (current.expired or not current.users_shared_with <= readers):
            del sessions[room_id]  # a user has left, or a device is gone
            current = None
        missing = readers - (current.users_shared_with if current else set())
        missing = {item for item in missing if not self._is_out_of_keys(item)}
        if missing:
            await self._claim_missing(users, missing)
            if current is not None:
                current.shared = False  # else the library starts a new session
                current.users_ignored.clear()
            await self._send_key(room_id, users)
        if not sessions.get(room_id) or not sessions[room_id].users_shared_with:
            sessions.pop(room_id, None)
            raise NoReaderError(NO_READER if self.store.sends_to_all else NO_VERIFIED_READER)
        sessions[room_id].shared = True

    def _readers(self, users: list[str]) -> set[tuple[str, str]]:
        """The devices that may decrypt what is sent."""
        return {
            (user, device.id)
            for user in users
            for device in self.olm.device_store.active_user_devices(user)
            if (user, device.id) != (self._me, self.store.device_id)
            and not self.store.is_device_blacklisted(device)
        }

    async def _claim_missing(self, users: list[str], wanted: set[tuple[str, str]]) -> None:
        missing = {
            user: [name for name in names if (user, name) in wanted]
            for user, names in self.olm.get_missing_sessions(users).items()
        }
        missing = {user: names for user, names in missing.items() if names}
        if not missing:
            return
        await self._claim(missing)
        left = self.olm.get_missing_sessions(users)
        now = time.monotonic()
        for user, names in missing.items():
            for name in set(names) & set(left.get(user, [])):
                self._out_of_keys[user, name] = now
                log.warning("device %s of %s has no keys left: it cannot read new messages",
                            name, user)  # fmt: skip

    def _is_out_of_keys(self, device: tuple[str, str]) -> bool:
        """Whether no session could be started with a device a short time ago."""
        failed_at = self._out_of_keys.get(device)
        return failed_at is not None and time.monotonic() - failed_at < CLAIM_PAUSE_SECONDS

    async def _send_key(self, room_id: str, users: list[str]) -> None:
        shares = self.olm.share_group_session_parallel(
            room_id, users, ignore_unverified_devices=True
        )
        for shared_with, body in shares:
            await self.send_to_device(ENCRYPTED_TYPE, body)
            self.olm.outbound_group_sessions[room_id].users_shared_with |= shared_with

    # Receiving

    async def decrypt(self, room_id: str, event: JsonObject) -> JsonObject | None:
        """An event in the clear; None if its key is missing.

        The key must belong to a device of the sender: otherwise the homeserver could present
        a message as that of another user.
        """
        content = config_values.mapping(event.get("content"))
        sender_key = await self._sender_key(room_id, event, content)
        if content.get("algorithm") != MEGOLM or not sender_key:
            return None
        fields = {"device_id": "", **content, "sender_key": sender_key}
        encrypted = MegolmEvent.from_dict({**event, "content": fields})
        if not isinstance(encrypted, MegolmEvent):
            return None
        try:
            clear = self.olm.decrypt_megolm_event(encrypted, room_id)
        except EncryptionError as error:
            log.warning("event %s not decrypted: %s", event.get("event_id"), error)
            return None
        source = config_values.mapping(clear.source)
        if source.get("room_id", room_id) != room_id:
            return None
        clear_content = config_values.mapping(source.get("content"))
        return {**event, "type": source.get("type"), "content": clear_content}

    async def _sender_key(self, room_id: str, event: JsonObject, content: JsonObject) -> str:
        """The key of the sender's device that has sent the room key; empty if there is none."""
        sender = config_values.text(event.get("sender"))
        session_id = content.get("session_id")
        found = [
            str(key)
            for key, sessions in list(self.olm.inbound_group_store[room_id].items())
            if session_id in sessions
        ]
        if not found:
            return ""
        if not self._owned(sender, found):
            await self.query([sender])
        return self._owned(sender, found)

    def _owned(self, sender: str, keys: list[str]) -> str:
        own = str(self.olm.account.identity_keys["curve25519"]) if sender == self._me else ""
        devices = self.olm.device_store[sender].values()
        owned = {own, *(str(device.curve25519) for device in devices)}
        return next((key for key in keys if key in owned), "")

    def request_key(self, room_id: str, event: JsonObject) -> None:
        """Request a missing room key from the sender's device; sent by `settle`."""
        content = config_values.mapping(event.get("content"))
        encrypted = MegolmEvent.from_dict({**event, "room_id": room_id})
        if not isinstance(encrypted, MegolmEvent) or not content.get("session_id"):
            return
        if encrypted.session_id in self.olm.outgoing_key_requests:
            return
        message = encrypted.as_key_request(
            encrypted.sender, self.store.device_id, encrypted.session_id, encrypted.device_id
        )
        self.olm.outgoing_to_device_messages.append(message)
