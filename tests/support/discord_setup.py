"""A Discord server on loopback, and the dependencies of an adapter for it."""

from __future__ import annotations

import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.platforms.discord.adapter import DiscordAdapter
from gateway.process.runner import AdapterMemory
from support.adapters import ServerSetup
from support.discord_server import TOKEN, DiscordServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@asynccontextmanager
async def discord_setup(db: SessionDB, folder: Path) -> AsyncIterator[ServerSetup]:
    """Run the server; the test connects the adapter."""
    async with DiscordServer() as server:
        factory = functools.partial(DiscordAdapter, identify_seconds=0.01)
        options = {
            "secrets": {"DISCORD_BOT_TOKEN": TOKEN},
            "extra": {"base_url": server.base_url},
        }
        yield ServerSetup(server, factory, AdapterMemory(db, "discord"), folder, **options)
