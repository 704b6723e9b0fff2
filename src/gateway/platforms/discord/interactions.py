"""Application commands and buttons of Discord."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any, Final

import discord
from aiohttp import ClientError

from gateway import config_values
from gateway.platforms.base import COMMAND_PREFIX, MessageEvent, MessageType, pressed
from gateway.platforms.discord import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.platforms.base import Button, Memory, MenuCommand
    from gateway.routing.sources import SessionSource

log = logging.getLogger(__name__)

ARGUMENTS_OPTION: Final = "arguments"
MAX_HELP_CHARS: Final = 100
REGISTER_SECONDS: Final = 30.0


def view_of(buttons: Sequence[Button]) -> discord.ui.View | None:
    """The buttons below a message; the library need not remember them."""
    if not buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in buttons:
        view.add_item(discord.ui.Button(label=button.label, custom_id=button.data))
    view.stop()
    return view


def event_of(interaction: discord.Interaction, source: SessionSource) -> MessageEvent | None:
    """The message that a command or a pressed button sends; None for anything else."""
    data: dict[str, Any] = dict(interaction.data or {})
    if interaction.type is discord.InteractionType.component:
        return pressed(config_values.text(data.get("custom_id")), source, str(interaction.id))
    if interaction.type is not discord.InteractionType.application_command:
        return None
    arguments = [
        config_values.text(option.get("value"))
        for option in data.get("options") or []
        if isinstance(option, dict)
    ]
    text = " ".join([f"/{config_values.text(data.get('name'))}", *arguments]).strip()
    return MessageEvent(
        text,
        MessageType.COMMAND,
        source,
        message_id=f"{COMMAND_PREFIX}{interaction.id}",
        timestamp=interaction.created_at.timestamp(),
    )


async def confirm(interaction: discord.Interaction, event: MessageEvent | None) -> None:
    """Confirm an interaction, which Discord shows as failed otherwise."""
    try:
        if interaction.type is discord.InteractionType.component:
            await interaction.response.edit_message(view=None)
        else:
            shown = event.text if event is not None else "?"
            await interaction.response.send_message(f"`{shown[:100]}`", ephemeral=True)
    except (discord.DiscordException, ClientError, OSError) as error:  # also if it took 3 s
        log.info("Discord interaction not confirmed: %s", results.describe_error(error))


async def register_commands(
    client: discord.Client, commands: Sequence[MenuCommand], memory: Memory
) -> None:
    """Register the commands of the bot if they have changed; it also works without them."""
    payload = [_command(command) for command in commands]
    digest = hashlib.sha256(json.dumps(payload).encode()).hexdigest()
    name = f"commands:{client.application_id}"
    if not payload or client.application_id is None or await memory.recall(name) == digest:
        return
    try:
        async with asyncio.timeout(REGISTER_SECONDS):
            await client.http.bulk_upsert_global_commands(client.application_id, payload)
    except (discord.DiscordException, ClientError, OSError) as error:
        log.warning("Discord commands not registered: %s", results.describe_error(error))
        return
    await memory.keep(name, digest)


def _command(command: MenuCommand) -> dict[str, Any]:
    arguments = {
        "type": discord.AppCommandOptionType.string.value,
        "name": ARGUMENTS_OPTION,
        "description": (command.hint or "optional")[:MAX_HELP_CHARS],
        "required": False,
    }
    return {
        "type": discord.AppCommandType.chat_input.value,
        "name": command.name,
        "description": command.help[:MAX_HELP_CHARS],
        "options": [arguments] if command.hint else [],
    }
