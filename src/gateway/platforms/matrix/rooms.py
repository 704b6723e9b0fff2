"""The rooms of an account: members, names, encryption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway import config_values
from gateway.platforms.matrix import results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nio import AsyncClient  # type: ignore[import-untyped] # it has no types

    from hermes_core.json_values import JsonObject

PRESENT_MEMBERSHIPS: Final = ("join", "invite")
ROOM_GONE_CODES: Final = (
    "M_FORBIDDEN",
    "M_NOT_FOUND",
)  # the bot was removed from the room


class MatrixRoom:
    """The state of a room."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._name = ""
        self._alias = ""
        self.members: dict[str, str] = {}  # joined and invited users, with their display names
        self.is_encrypted = False

    def apply(self, event: JsonObject) -> None:
        """Apply a state event."""
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

    def _apply_member(self, user: str, content: JsonObject) -> None:
        if content.get("membership") in PRESENT_MEMBERSHIPS:
            self.members[user] = config_values.text(content.get("displayname")) or user
        else:
            self.members.pop(user, None)

    @property
    def name(self) -> str | None:
        """The name of the room: its name, its alias, or its members."""
        others = [name for user, name in sorted(self.members.items()) if user != self._me]
        return self._name or self._alias or ", ".join(others[:3]) or None

    def name_of(self, user: str) -> str:
        """The display name of a user in the room."""
        return self.members.get(user) or user

    @property
    def has_two_members(self) -> bool:
        """Whether the room has at most two members, including invited ones."""
        return 0 < len(self.members) <= 2


class MatrixRooms:
    """The rooms of an account."""

    def __init__(self, client: AsyncClient, me: str, direct: Iterable[str] = ()) -> None:
        self._client = client
        self._me = me
        self._direct = frozenset(direct)  # listed as direct by the account
        self._known: dict[str, MatrixRoom] = {}

    async def get(self, room_id: str) -> MatrixRoom:
        """A room; its state is requested if it is unknown."""
        if room_id not in self._known:
            answer = await self._client.room_get_state(room_id)
            room = MatrixRoom(self._me)
            if results.is_error(answer):
                if answer.status_code in ROOM_GONE_CODES:
                    return room
                raise results.platform_error(answer)
            for event in answer.events:
                room.apply(event)
            self._known[room_id] = room
        return self._known[room_id]

    def apply(self, room_id: str, event: JsonObject) -> None:
        """Apply a state event to a known room."""
        if room_id in self._known:
            self._known[room_id].apply(event)

    def forget_all(self) -> None:
        """Request the state of all rooms again: after a failed sync it may have changed."""
        self._known.clear()

    def forget(self, room_id: str) -> None:
        """Remove a room that the account has left."""
        self._known.pop(room_id, None)

    def kind(self, room_id: str, room: MatrixRoom) -> str:
        """`dm` or `group`; a room with more people is a group, also if it is listed as direct."""
        is_unknown = not room.members and room_id in self._direct
        return "dm" if room.has_two_members or is_unknown else "group"

    def is_direct(self, room_id: str) -> bool:
        """Whether the account lists a room as direct: its messages are for the agent."""
        return room_id in self._direct
