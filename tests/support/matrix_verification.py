"""The side of an app in an emoji verification, written from the Matrix specification."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import TYPE_CHECKING, Any

import vodozemac
from nio import Api  # type: ignore[import-untyped] # it has no types

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.matrix_client import EncryptedUser

# The table of the specification.
NAMES = (
    "Dog Cat Lion Horse Unicorn Pig Elephant Rabbit Panda Rooster Penguin Turtle Fish Octopus",
    "Butterfly Flower Tree Cactus Mushroom Globe Moon Cloud Fire Banana Apple Strawberry Corn",
    "Pizza Cake Heart Smiley Robot Hat Glasses Spanner Santa Thumbs_Up Umbrella Hourglass Clock",
    "Gift Light_Bulb Book Pencil Paperclip Scissors Lock Key Hammer Telephone Flag Train Bicycle",
    "Aeroplane Rocket Trophy Ball Guitar Trumpet Bell Anchor Headphones Folder Pin",
)
EMOJI_NAMES = [name.replace("_", " ") for line in NAMES for name in line.split()]
MAC_METHOD = "hkdf-hmac-sha256.v2"


class AppVerification:
    """A verification that an app starts, between devices or in a room."""

    def __init__(self, app: EncryptedUser, bot: str, bot_device: str, room: str = "") -> None:
        self._app = app
        self._bot = bot
        self._bot_device = bot_device
        self._room = room
        self._sas = vodozemac.Sas()
        self._secret: vodozemac.EstablishedSas | None = None
        self._start: dict[str, Any] = {}
        self.transaction_id = f"t{time.monotonic_ns()}"
        self._seen: set[str] = set()

    async def request(self) -> None:
        """Send the request, as apps do."""
        content: dict[str, Any] = {
            "from_device": self._app.device_id,
            "methods": ["m.sas.v1", "m.qr_code.show.v1", "m.reciprocate.v1"],
        }
        if self._room:
            content |= {"msgtype": "m.key.verification.request", "to": self._bot, "body": "verify"}
            self.transaction_id = await self._app.send(self._room, content)
        else:
            await self._send("request", {**content, "timestamp": int(time.time() * 1000)})

    async def exchange_keys(self) -> list[int]:
        """Start, exchange keys, and return the numbers of the emoji."""
        self._start = {
            "from_device": self._app.device_id,
            "method": "m.sas.v1",
            "key_agreement_protocols": ["curve25519-hkdf-sha256"],
            "hashes": ["sha256"],
            "message_authentication_codes": ["hkdf-hmac-sha256", MAC_METHOD],
            "short_authentication_string": ["decimal", "emoji"],
        }
        await self._send("start", self._start)
        accepted = await self.wait_for("accept")
        assert accepted["message_authentication_code"] == MAC_METHOD
        own_key = self._sas.public_key.to_base64()
        await self._send("key", {"key": own_key})
        bot_key = str((await self.wait_for("key"))["key"])
        committed = bot_key + str(Api.to_canonical_json(self._with_reference(self._start)))
        digest = base64.b64encode(hashlib.sha256(committed.encode()).digest()).decode()
        assert accepted["commitment"] == digest.rstrip("=")
        self._secret = self._sas.diffie_hellman(vodozemac.Curve25519PublicKey.from_base64(bot_key))
        mine = f"{self._app.user.user_id}|{self._app.device_id}|{own_key}"
        bots = f"{self._bot}|{self._bot_device}|{bot_key}"
        info = f"MATRIX_KEY_VERIFICATION_SAS|{mine}|{bots}|{self.transaction_id}"
        return list(self._secret.bytes(info).emoji_indices)

    async def confirm(self, keys: dict[str, str]) -> dict[str, str]:
        """Authenticate own keys; the authenticated keys of the bot, by their IDs."""
        mine = f"{self._app.user.user_id}{self._app.device_id}"
        bots = f"{self._bot}{self._bot_device}"
        info = f"MATRIX_KEY_VERIFICATION_MAC{mine}{bots}{self.transaction_id}"
        macs = {name: self._mac(key, info + name) for name, key in keys.items()}
        names = ",".join(sorted(keys))
        await self._send("mac", {"mac": macs, "keys": self._mac(names, f"{info}KEY_IDS")})
        answer = await self.wait_for("mac")
        info = f"MATRIX_KEY_VERIFICATION_MAC{bots}{mine}{self.transaction_id}"
        assert answer["keys"] == self._mac(",".join(sorted(answer["mac"])), f"{info}KEY_IDS")
        self._bot_info = info
        return dict(answer["mac"])

    def authenticates(self, macs: dict[str, str], name: str, key: str) -> bool:
        """Whether a key of the bot is authenticated."""
        return macs.get(name) == self._mac(key, self._bot_info + name)

    def _mac(self, text: str, info: str) -> str:
        assert self._secret is not None
        return str(self._secret.calculate_mac(text, info))

    async def wait_for(self, step: str) -> dict[str, Any]:
        """The content of the bot's next event of a kind."""
        kind = f"m.key.verification.{step}"
        for _ in range(int(PATIENCE_SECONDS)):
            events = self._app.events if self._room else self._app.to_device
            for event in events:
                if event["type"] == kind and event["sender"] == self._bot:
                    content: dict[str, Any] = event["content"]
                    if self._id_of(content) == self.transaction_id:
                        return content
            await self._app.sync(1000)
        raise AssertionError(f"no {kind} from the bot")

    def _id_of(self, content: dict[str, Any]) -> Any:
        relation = content.get("m.relates_to", {})
        return relation.get("event_id") if self._room else content.get("transaction_id")

    async def _send(self, step: str, content: dict[str, Any]) -> None:
        kind, content = f"m.key.verification.{step}", self._with_reference(content)
        if self._room:
            await self._app.send(self._room, content, kind)
        else:
            messages = {self._bot: {self._bot_device: content}}
            await self._app.send_to_device(kind, {"messages": messages})

    def _with_reference(self, content: dict[str, Any]) -> dict[str, Any]:
        if self._room:
            relation = {"rel_type": "m.reference", "event_id": self.transaction_id}
            return {**content, "m.relates_to": relation}
        return {**content, "transaction_id": self.transaction_id}
