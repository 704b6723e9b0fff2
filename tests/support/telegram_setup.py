"""A Bot API server, and the dependencies of an adapter for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.process.runner import AdapterMemory
from support.adapters import ServerSetup
from support.telegram_server import TOKEN, TelegramServer

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

SECRET = "a-secret_of-the-webhook"
GROUP = -100500


class TelegramSetup(ServerSetup):
    """A Telegram server, and an adapter for it."""

    def __init__(self, server: TelegramServer, db: SessionDB, folder: Path) -> None:
        # Imported here: aiogram takes seconds, in each test process.
        from gateway.platforms.telegram.adapter import TelegramAdapter  # noqa: PLC0415

        super().__init__(
            server,
            TelegramAdapter,
            AdapterMemory(db, "telegram"),
            folder,
            secrets={"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_WEBHOOK_SECRET": SECRET},
            extra={"base_url": server.base_url, "poll_seconds": 1},
        )
