"""What is known of Matrix rooms: who is in them, what they are called, whether one is encrypted.

The state of a room is asked for when its first message comes, then kept up to date from
what the server sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway import config_values
from gateway.platforms.matrix import results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nio import AsyncClient  # type: ignore[import-untyped] # it has no types

PRESENT: Final = ("join", "invite")
GONE: Final = ("M_FORBIDDEN", "M_NOT_FOUND")  # the bot was shown out; what was said there stays


class Room:
    """One room, as its state says."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._name = ""
        self._alias = ""
        self.members: dict[str, str] = {}  # who is there or invited, and how they are called
        self.is_encrypted = False

    def apply(self, event: dict[str, Any]) -> None:
        """A piece of state."""
        content = config_values.mapping(event.get("content"))
        if "state_key" not in event:
            return
        match event.get("type"):
            case "m.room.member":
                self._apply_member(str(event["state_key"]), content)
            case "m.room.name":
                self._name = config_values.text(content.get("name"))
            case "m.room.canonical_alias":
                self._alias = config_values.text(content.get("alias"))
            case "m.room.encryption":
                self.is_encrypted = True

    def _apply_member(self, user: str, content: dict[str, Any]) -> None:
        if content.get("membership") in PRESENT:
            self.members[user] = config_values.text(content.get("displayname")) or user
        else:
            self.members.pop(user, None)

    @property
    def name(self) -> str | None:
        """What it is called: by its name, its address, or those who are in it."""
        others = [name for user, name in sorted(self.members.items()) if user != self._me]
        return self._name or self._alias or ", ".join(others[:3]) or None

    def name_of(self, user: str) -> str:
        """How somebody is called in it."""
        return self.members.get(user) or user

    @property
    def is_for_two(self) -> bool:
        """Whether nobody but one other is in it, or invited."""
        return 0 < len(self.members) <= 2


class Rooms:
    """The rooms of an account."""

    def __init__(self, client: AsyncClient, me: str, direct: Iterable[str] = ()) -> None:
        self._client = client
        self._me = me
        self._direct = frozenset(direct)  # those the account itself calls direct
        self._known: dict[str, Room] = {}

    async def get(self, room_id: str) -> Room:
        """A room; its state is asked for if it has to be."""
        if room_id not in self._known:
            answer = await self._client.room_get_state(room_id)
            room = Room(self._me)
            if results.is_error(answer):
                if answer.status_code in GONE:
                    return room
                raise results.trouble(answer)
            for event in answer.events:
                room.apply(event)
            self._known[room_id] = room
        return self._known[room_id]

    def apply(self, room_id: str, event: dict[str, Any]) -> None:
        """A piece of state; of a room that was never needed it is not kept."""
        if room_id in self._known:
            self._known[room_id].apply(event)

    def forget(self, room_id: str) -> None:
        """The account is no longer in it."""
        self._known.pop(room_id, None)

    def kind(self, room_id: str, room: Room) -> str:
        """`dm` or `group`."""
        return "dm" if room_id in self._direct or room.is_for_two else "group"
