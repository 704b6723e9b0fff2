"""A Slack workspace on loopback, and what an adapter for it is made from."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.platforms.slack.adapter import SlackAdapter
from gateway.process.adapter_factory import AdapterMemory
from support.adapters import ServerSetup, waited
from support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


class SlackSetup(ServerSetup):
    """A workspace, and an adapter for it."""

    async def acknowledged(self) -> None:
        await waited(lambda: not self.server.unacknowledged)


@asynccontextmanager
async def slack_setup(db: SessionDB, folder: Path) -> AsyncIterator[SlackSetup]:
    """The server at work; the adapter is connected by the test."""
    async with SlackServer() as server:
        secrets = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
        facts = {"secrets": secrets, "extra": {"base_url": server.base_url}}
        yield SlackSetup(server, SlackAdapter, AdapterMemory(db, "slack"), folder, **facts)
