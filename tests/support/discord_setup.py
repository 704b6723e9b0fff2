"""A Discord server on loopback, and what an adapter for it is made from."""

from __future__ import annotations

import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.platforms.discord.adapter import DiscordAdapter
from gateway.process.adapter_factory import AdapterMemory
from support.adapters import ServerSetup
from support.discord_server import TOKEN, DiscordServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@asynccontextmanager
async def discord_setup(db: SessionDB, folder: Path) -> AsyncIterator[ServerSetup]:
    """The server at work; the adapter is connected by the test."""
    async with DiscordServer() as server:
        result = functools.partial(DiscordAdapter, identify_seconds=0.01)
        facts = {
            "secrets": {"DISCORD_BOT_TOKEN": TOKEN},
            "extra": {"base_url": server.base_url},
        }
        yield ServerSetup(server, result, AdapterMemory(db, "discord"), folder, **facts)
