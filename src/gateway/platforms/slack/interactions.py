"""Slash commands and buttons of Slack.

An app has the commands of its manifest: `/hermes NAME` runs any command, and a command of its own
name (`/new`) runs that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms.base import COMMAND_PREFIX, MessageEvent, MessageType, pressed
from gateway.platforms.slack.messages import SlackMessage
from hermes_core.json_values import list_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.platforms.base import Button
    from gateway.platforms.slack.messages import SlackMessageReader
    from hermes_core.json_values import JsonObject

APP_COMMAND: Final = "/hermes"
MAX_SECTION_CHARS: Final = 2900  # Slack takes 3000


class Interaction(NamedTuple):
    """A command or a pressed button, and where it comes from."""

    place: SlackMessage
    text: str  # the command, or the data of the button
    interaction_id: str
    is_press: bool = False
    message_text: str = ""  # of the message with the button


def interaction_in(kind: str, payload: JsonObject, envelope_id: str) -> Interaction | None:
    """The command or the pressed button of an envelope; None if there is none."""
    if kind == "slash_commands":
        return _command_in(payload, envelope_id)
    if kind == "interactive" and payload.get("type") == "block_actions":
        return _press_in(payload)
    return None


def _command_in(payload: JsonObject, envelope_id: str) -> Interaction | None:
    name, arguments = (config_values.text(payload.get(field)) for field in ("command", "text"))
    if name == APP_COMMAND:
        name, _, arguments = (arguments.strip() or "help").partition(" ")
        name = f"/{name.lstrip('/')}"
    place = _place(payload, payload.get("user_id"), payload.get("channel_id"))
    if not place.channel or not place.user or not name.startswith("/"):
        return None
    unique = config_values.text(payload.get("trigger_id")) or envelope_id
    return Interaction(place, f"{name} {arguments}".strip(), f"{COMMAND_PREFIX}{unique}")


def _press_in(payload: JsonObject) -> Interaction | None:
    user, channel, message = (
        config_values.mapping(payload.get(name)) for name in ("user", "channel", "message")
    )
    actions = list_in(payload, "actions")
    action = config_values.mapping(actions[0]) if actions else {}
    thread = message.get("thread_ts")
    place = _place(payload, user.get("id"), channel.get("id"), ts=message.get("ts"), thread=thread)
    data = config_values.text(action.get("value"))
    if not place.channel or not place.user or not data:
        return None
    unique = f"{place.ts}:{config_values.text(action.get('action_ts'))}"
    text = config_values.text(message.get("text"))
    return Interaction(place, data, unique, is_press=True, message_text=text)


def _place(
    payload: JsonObject, user: object, channel: object, *, ts: object = "", thread: object = ""
) -> SlackMessage:
    """Where something happened, as a message without text."""
    team = config_values.mapping(payload.get("team")).get("id") or payload.get("team_id")
    message: JsonObject = {
        "user": config_values.text(user),
        "ts": config_values.text(ts),
        "thread_ts": config_values.text(thread),
    }
    return SlackMessage(
        message, config_values.text(channel), "", config_values.text(team), is_edit=False
    )


async def read_interaction(
    interaction: Interaction, reader: SlackMessageReader
) -> MessageEvent | None:
    """The message that a command or a pressed button sends."""
    source = await reader.source_of(interaction.place)
    if interaction.is_press:
        return pressed(interaction.text, source, interaction.interaction_id)
    return MessageEvent(
        interaction.text, MessageType.COMMAND, source, message_id=interaction.interaction_id
    )


def blocks(text: str, buttons: Sequence[Button]) -> list[JsonObject]:
    """A text with buttons below it."""
    sections: list[JsonObject] = [
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": text[first : first + MAX_SECTION_CHARS]},
        }
        for first in range(0, len(text), MAX_SECTION_CHARS)
    ]
    elements: list[JsonObject] = [
        {
            "type": "button",
            "action_id": f"hermes-{number}",
            "text": {"type": "plain_text", "text": button.label},
            "value": button.data,
        }
        for number, button in enumerate(buttons)
    ]
    return [*sections, {"type": "actions", "elements": list(elements)}]
