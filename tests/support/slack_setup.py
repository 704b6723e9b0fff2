"""A Slack workspace on loopback, and the dependencies of an adapter for it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.platforms.slack.adapter import SlackAdapter
from gateway.process.runner import AdapterMemory
from support.adapters import ServerSetup
from support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


class SlackSetup(ServerSetup):
    """A workspace, and an adapter for it."""

    async def wait_for_acknowledgements(self) -> None:
        await async_wait_until(lambda: not self.server.unacknowledged)


@asynccontextmanager
async def slack_setup(db: SessionDB, folder: Path) -> AsyncIterator[SlackSetup]:
    """Run the server; the test connects the adapter."""
    async with SlackServer() as server:
        secrets = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}
        options = {"secrets": secrets, "extra": {"base_url": server.base_url}}
        yield SlackSetup(server, SlackAdapter, AdapterMemory(db, "slack"), folder, **options)
