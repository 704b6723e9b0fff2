"""The key store: the keys of a device, as records that change together.

It has the methods that the Olm machine of matrix-nio calls. They only note what has changed;
`flush` stores it in one transaction. The client flushes before every request, so that whatever
it sends is stored, and the listener before it stores the sync position.

One program at a time owns the keys of an account: the program that opens the store writes its
mark, and the changes of an earlier owner are rejected.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import vodozemac
from nio.crypto import (  # type: ignore[import-untyped] # it has no types
    DeviceStore,
    GroupSessionStore,
    InboundGroupSession,
    OlmAccount,
    OlmDevice,
    OutgoingKeyRequest,
    Session,
    SessionStore,
    TrustState,
)
from nio.crypto.sessions import derive_pickle_key  # type: ignore[import-untyped]

from gateway import config_values
from gateway.platforms.matrix.encryption.record_types import (
    DEVICE,
    DEVICE_PREFIXES,
    DEVICES_PREFIX,
    MASTER_KEY_PREFIX,
    OLM_PREFIX,
    OWNER,
    REQUEST_PREFIX,
    ROOM_KEY_PREFIX,
    ROOM_PREFIX,
    account_prefix,
)
from hermes_core.errors import PlatformDownError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.platforms.base import Records
    from gateway.platforms.matrix.encryption.record_types import (
        DeviceRecord,
        OlmRecord,
        OtherDeviceRecord,
        RequestRecord,
        RoomKeyRecord,
    )
    from hermes_core.json_values import JsonObject

    MakeRecord = Callable[[], bytes | None]


class KeyStoreTakenError(PlatformDownError):
    """Another program has opened the key store."""


def dump_json(value: object) -> bytes:
    """A value as a record."""
    return json.dumps(value).encode()


class KeyStore:
    """The keys of one account and its device."""

    def __init__(self, records: Records, account: str) -> None:
        self._records = records
        self._prefix = account_prefix(account)
        self._mark = secrets.token_hex(16).encode()
        self._changes: dict[str, MakeRecord] = {}
        self._flushing = asyncio.Lock()
        self._stored: dict[str, bytes] = {}
        self._raw_account: vodozemac.Account | None = None
        self._account: Any = None
        self._devices: Any = DeviceStore()
        self.device_id = ""
        self.fallback_key_time = 0.0
        self.master_keys: dict[str, str] = {}  # of users, as verified
        self.encrypted_rooms: set[str] = set()
        self.sends_to_all = True  # also to devices that are not verified

    def read(self) -> None:
        """Load the records."""
        self._stored = self._records.load(self._prefix)
        device = self.load_json(DEVICE)
        self.device_id = str(device.get("device_id", ""))
        self.fallback_key_time = config_values.fraction(device.get("fallback_key_time"), 0)
        self.master_keys = {
            user: content.decode() for user, content in self._rest(MASTER_KEY_PREFIX)
        }
        self.encrypted_rooms = {room for room, _content in self._rest(ROOM_PREFIX)}

    def open(self) -> None:
        """Load the records as their only owner."""
        self._records.change(self._prefix, {OWNER: self._mark})
        self.read()

    def abandon(self) -> None:
        """Remove the mark from a store without keys, so that it stays empty."""
        if not self.has_account:
            self._records.change(self._prefix, {OWNER: None}, (OWNER, self._mark))

    def is_owned(self) -> bool:
        """Whether no other program has opened the store since."""
        return self._records.change(self._prefix, {}, (OWNER, self._mark))

    # Changes

    def keep(self, name: str, make: MakeRecord) -> None:
        """Note a record that has changed; *make* is called when it is stored."""
        self._changes[name] = make

    def keep_json(self, name: str, value: object) -> None:
        """Note the new content of a record."""
        content = dump_json(value)
        self._stored[name] = content
        self.keep(name, lambda: content)

    def remove(self, name: str) -> None:
        """Note that a record is deleted."""
        self._stored.pop(name, None)
        self.keep(name, lambda: None)

    def load_json(self, name: str) -> JsonObject:
        """The content of a record; empty if there is none."""
        content: JsonObject = json.loads(self._stored.get(name) or b"{}")
        return content

    def items(self, prefix: str) -> list[tuple[str, Any]]:
        """The records whose names start with a prefix, by the rest of their names."""
        return [(name, json.loads(content)) for name, content in self._rest(prefix)]

    def _rest(self, prefix: str) -> list[tuple[str, bytes]]:
        return [
            (name.removeprefix(prefix), content)
            for name, content in self._stored.items()
            if name.startswith(prefix)
        ]

    async def flush(self) -> None:
        """Store what has changed; when this returns, it is on disk."""
        if not self._changes and not self._flushing.locked():
            return
        async with self._flushing:
            changes, self._changes = self._changes, {}
            try:
                records = {name: make() for name, make in changes.items()}
                await asyncio.shield(asyncio.to_thread(self._write, records))
            except BaseException:
                self._changes = changes | self._changes
                raise

    def write(self) -> None:
        """Store what has changed, from a program without an event loop."""
        changes, self._changes = self._changes, {}
        self._write({name: make() for name, make in changes.items()})

    def _write(self, records: dict[str, bytes | None]) -> None:
        if records and not self._records.change(self._prefix, records, (OWNER, self._mark)):
            raise KeyStoreTakenError("Another program has opened the key store of this account.")

    # The device

    def use_device(self, device_id: str) -> None:
        """Set the device of a store without one."""
        self.device_id = device_id

    def forget_device(self) -> None:
        """Delete the keys of the device; room keys and cross-signing keys stay."""
        self.device_id = ""
        for name in list(self._stored):
            if name == DEVICE or name.startswith(DEVICE_PREFIXES):
                self.remove(name)

    @property
    def has_account(self) -> bool:
        """Whether the keys of a device are stored."""
        return DEVICE in self._stored

    def load_account(self) -> Any:
        """The account of the device; None if there is none."""
        if not self.has_account:
            return None
        record: DeviceRecord = json.loads(self._stored[DEVICE])
        raw = vodozemac.Account.from_pickle(str(record["pickle"]), derive_pickle_key())
        self._hold(raw, is_shared=bool(record["shared"]))
        return self._account

    def _hold(self, raw: vodozemac.Account, *, is_shared: bool) -> None:
        self._raw_account = raw
        self._account = OlmAccount(raw)
        self._account.shared = is_shared

    def create_account(self) -> None:
        """Create the account of the device."""
        self._hold(vodozemac.Account(), is_shared=False)
        self.save_account(self._account)
        self._stored[DEVICE] = self._device_record()

    def new_fallback_key(self) -> dict[str, str]:
        """Create the key that is used while all one-time keys are claimed; by its ID."""
        account: Any = self._raw_account  # its types lack the fallback key
        account.generate_fallback_key()
        self.fallback_key_time = time.time()
        self.save_account(self._account)
        keys = account.fallback_key
        return {name: key.to_base64() for name, key in keys.items()}

    def save_account(self, account: Any) -> None:
        """Note that the account has changed."""
        self._account = account
        self.keep(DEVICE, self._device_record)

    def _device_record(self) -> bytes:
        return dump_json(
            {
                "device_id": self.device_id,
                "shared": self._account.shared,
                "pickle": self._account.pickle().decode(),
                "fallback_key_time": self.fallback_key_time,
                **self._account.identity_keys,
            }
        )

    # Sessions with devices

    def load_sessions(self) -> Any:
        """The sessions with other devices."""
        sessions = SessionStore()
        record: OlmRecord
        for name, record in self.items(OLM_PREFIX):
            created, used = _time(record["created"]), _time(record["used"])
            session = Session.from_pickle(record["pickle"].encode(), created, use_time=used)
            sessions.add(name.partition(" ")[0], session)
        return sessions

    def save_session(self, curve_key: str, session: Any) -> None:
        """Note that a session has changed."""

        def make() -> bytes:
            return dump_json(
                {
                    "pickle": session.pickle().decode(),
                    "created": session.creation_time.timestamp(),
                    "used": session.use_time.timestamp(),
                }
            )

        self.keep(f"{OLM_PREFIX}{curve_key} {session.id}", make)

    # Room keys

    def load_inbound_group_sessions(self) -> Any:
        """The room keys."""
        sessions = GroupSessionStore()
        for _name, record in self.items(ROOM_KEY_PREFIX):
            sessions.add(_room_key(record))
        return sessions

    def save_inbound_group_session(self, session: Any) -> None:
        """Note a new room key."""
        self.keep_json(
            f"{ROOM_KEY_PREFIX}{session.sender_key} {session.id}",
            {
                "pickle": session.pickle().decode(),
                "ed25519": session.ed25519,
                "sender_key": session.sender_key,
                "room_id": session.room_id,
                "chain": session.forwarding_chain,
            },
        )

    # Other devices

    def load_device_keys(self) -> Any:
        """The devices of other users."""
        self._devices = DeviceStore()
        for user, record in self.items(DEVICES_PREFIX):
            for device_id, fields in record.items():
                self._devices.add(_device(user, device_id, fields))
        return self._devices

    def save_device_keys(self, changed: dict[str, dict[str, Any]]) -> None:
        """Note that devices of users have changed."""
        for user in changed:
            self._save_devices(user)

    def _save_devices(self, user: str) -> None:
        devices = self._devices[user]

        def make() -> bytes:
            return dump_json(
                {
                    item.id: {
                        "keys": item.keys,
                        "name": item.display_name,
                        "deleted": item.deleted,
                        "verified": item.verified,
                    }
                    for item in devices.values()
                }
            )

        self.keep(DEVICES_PREFIX + user, make)

    def trust_master_key(self, user: str, key: str) -> None:
        """Note that the cross-signing key of a user is verified."""
        self.master_keys[user] = key
        self.keep(MASTER_KEY_PREFIX + user, key.encode)

    def distrust_user(self, user: str) -> None:
        """Forget the cross-signing key of a user."""
        self.master_keys.pop(user, None)
        self.remove(MASTER_KEY_PREFIX + user)

    def verify_device(self, device: Any) -> bool:
        """Mark a device as verified; whether it was not."""
        was_verified = bool(device.verified)
        device.trust_state = TrustState.verified
        self._save_devices(device.user_id)
        return not was_verified

    def unverify_device(self, device: Any) -> bool:
        """Mark a device as not verified; whether it was."""
        was_verified = bool(device.verified)
        device.trust_state = TrustState.unset
        self._save_devices(device.user_id)
        return was_verified

    def is_device_verified(self, device: Any) -> bool:
        """Whether a device is verified."""
        return bool(device.verified)

    def is_device_blacklisted(self, device: Any) -> bool:
        """Whether a device gets no room keys."""
        return not self.sends_to_all and not device.verified

    def is_device_ignored(self, device: Any) -> bool:
        """Whether a device gets room keys although it is not verified."""
        return self.sends_to_all

    def ignore_devices(self, devices: Iterable[Any]) -> None:
        """Nothing to store: `sends_to_all` decides."""

    # Requests for room keys

    def load_outgoing_key_requests(self) -> dict[str, Any]:
        """The requests for room keys, by their IDs."""
        return {
            name: OutgoingKeyRequest(name, **record) for name, record in self.items(REQUEST_PREFIX)
        }

    def add_outgoing_key_request(self, request: Any) -> None:
        """Note a request for a room key."""
        record: RequestRecord = {
            "session_id": request.session_id,
            "room_id": request.room_id,
            "algorithm": request.algorithm,
        }
        self.keep_json(REQUEST_PREFIX + request.request_id, record)

    def remove_outgoing_key_request(self, request: Any) -> None:
        """Delete a request for a room key."""
        self.remove(REQUEST_PREFIX + request.request_id)

    # Rooms

    def add_encrypted_room(self, room_id: str) -> None:
        """Note an encrypted room: encryption cannot be disabled."""
        if room_id not in self.encrypted_rooms:
            self.encrypted_rooms.add(room_id)
            self.keep_json(ROOM_PREFIX + room_id, {})


def _time(value: float) -> datetime:
    """A stored time; without a time zone, as the library compares it."""
    return datetime.fromtimestamp(value)  # noqa: DTZ006


def _room_key(record: RoomKeyRecord) -> Any:
    return InboundGroupSession.from_pickle(
        record["pickle"].encode(),
        record["ed25519"],
        record["sender_key"],
        record["room_id"],
        forwarding_chain=record["chain"],
    )


def _device(user: str, device_id: str, fields: OtherDeviceRecord) -> Any:
    return OlmDevice(
        user,
        device_id,
        fields["keys"],
        display_name=fields["name"],
        deleted=fields["deleted"],
        trust_state=TrustState.verified if fields["verified"] else TrustState.unset,
    )
