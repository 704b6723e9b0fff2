"""A second real client with encryption: matrix-nio with its own key store."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from nio import (  # type: ignore[import-untyped] # it has no types
    AsyncClient,
    AsyncClientConfig,
    Event,
    MegolmEvent,
)
from nio.crypto import decrypt_attachment, encrypt_attachment  # type: ignore[import-untyped]
from nio.store import SqliteStore  # type: ignore[import-untyped]

from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.synapse import MatrixUser

ENCRYPTION = {
    "type": "m.room.encryption",
    "state_key": "",
    "content": {"algorithm": "m.megolm.v1.aes-sha2"},
}


class EncryptedUser:
    """A user whose app encrypts and decrypts."""

    def __init__(self, user: MatrixUser, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        config = AsyncClientConfig(encryption_enabled=True, store=SqliteStore)
        self.user = user
        self.device_id = str(user.call("GET", "/_matrix/client/v3/account/whoami")["device_id"])
        self.client = AsyncClient(
            user.url, user.user_id, self.device_id, store_path=str(folder), config=config
        )
        self.client.restore_login(user.user_id, self.device_id, user.token)
        self.client.add_event_callback(self._note, Event)
        self.events: list[dict[str, Any]] = []  # decrypted, in order
        self.undecrypted: list[dict[str, Any]] = []
        self.to_device: list[dict[str, Any]] = []
        self.client.add_to_device_callback(self._note_to_device, None)

    async def _note(self, room: Any, event: Any) -> None:
        is_encrypted = isinstance(event, MegolmEvent)
        fields = {"room_id": room.room_id, "was_encrypted": bool(event.decrypted)}
        (self.undecrypted if is_encrypted else self.events).append({**event.source, **fields})

    async def _note_to_device(self, event: Any) -> None:
        self.to_device.append(event.source)

    async def sync(self, milliseconds: int = 0) -> None:
        """Receive what is new, and answer the requests for keys."""
        client = self.client
        await client.sync(milliseconds, full_state=not client.rooms)
        if client.should_upload_keys:
            await client.keys_upload()
        if client.should_query_keys:
            await client.keys_query()
        if client.should_claim_keys:
            await client.keys_claim(client.get_users_for_key_claiming())
        await client.send_to_device_messages()

    async def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        """Send an encrypted event; its ID."""
        await self.sync()
        answer = await self.client.room_send(room, kind, content, ignore_unverified_devices=True)
        return str(answer.event_id)

    async def share_key_later(self, room: str) -> list[dict[str, Any]]:
        """Create a key for a room; the requests that share it are not sent."""
        await self.sync()
        await self.client.keys_claim(self.client.get_missing_sessions(room))
        users = list(self.client.rooms[room].users)
        olm = self.client.olm
        shares = list(olm.share_group_session_parallel(room, users, ignore_unverified_devices=True))
        for shared_with, _body in shares:
            olm.outbound_group_sessions[room].users_shared_with |= shared_with
        olm.outbound_group_sessions[room].shared = True
        return [body for _shared_with, body in shares]

    async def send_to_device(self, kind: str, body: dict[str, Any]) -> None:
        self.user.call("PUT", f"/_matrix/client/v3/sendToDevice/{kind}/{time.monotonic_ns()}", body)

    async def send_text(self, room: str, text: str, **fields: Any) -> str:
        return await self.send(room, {"msgtype": "m.text", "body": text, **fields})

    async def send_file(self, room: str, name: str, data: bytes, mime: str) -> str:
        """Send an encrypted file."""
        encrypted, keys = encrypt_attachment(data)
        url = self.user.upload(encrypted, "file")
        content = {
            "msgtype": "m.file",
            "body": name,
            "filename": name,
            "file": {**keys, "url": url},
            "info": {"mimetype": mime, "size": len(data)},
        }
        return await self.send(room, content)

    async def wait_for(self, count: int, sender: str, kind: str = "m.room.message") -> list[Any]:
        """The decrypted events of a sender, once there are *count*."""
        for _ in range(int(PATIENCE_SECONDS)):
            found = [
                item for item in self.events if item["sender"] == sender and item["type"] == kind
            ]
            if len(found) >= count:
                return found
            await self.sync(1000)
        raise AssertionError(f"no {count} events of {sender}: {self.events} {self.undecrypted}")

    def open_file(self, content: dict[str, Any]) -> bytes:
        """The content of an encrypted file."""
        file = content["file"]
        media = file["url"].removeprefix("mxc://")
        data = self.user.download(media)
        return bytes(
            decrypt_attachment(data, file["key"]["k"], file["hashes"]["sha256"], file["iv"])
        )

    def trust(self, user: str) -> None:
        """Mark the devices of a user as verified."""
        for device in self.client.device_store.active_user_devices(user):
            self.client.verify_device(device)


@asynccontextmanager
async def encrypted_user(user: MatrixUser, folder: Path) -> AsyncIterator[EncryptedUser]:
    """A user's app; its keys are uploaded."""
    app = EncryptedUser(user, folder)
    try:
        await app.sync()
        yield app
    finally:
        await app.client.close()


async def position_stored(adapter: Any) -> None:
    """Wait until what an adapter has received is not requested again after a restart."""
    await async_wait_until(lambda: not adapter._listener._open)
