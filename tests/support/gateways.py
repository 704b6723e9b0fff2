"""A gateway in this process, with a store and a scripted model."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gateway.config import GatewayConfig
from gateway.platforms.local import LocalAdapter
from gateway.process.service import GatewayService
from gateway.session import SessionStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import Adapter
    from hermes_state import SessionDB


@asynccontextmanager
async def started(
    db: SessionDB,
    folder: Path,
    config: GatewayConfig | None = None,
    adapters: dict[str, Adapter] | None = None,
    drain: float = 10,
) -> AsyncIterator[GatewayService]:
    """A service at work; what it sends on the local socket waits for somebody to connect."""
    config = config or GatewayConfig()
    routes = SessionStore(folder, config)
    routes._db = db
    service = GatewayService(db, routes, config, folder)
    await service.start(adapters or {"local": LocalAdapter(folder / "s.sock")})
    try:
        yield service
    finally:
        await service.stop(drain)


def said(db: SessionDB, chat: str = "c1", platform: str = "local") -> list[str]:
    """Everything in the latest conversation of a direct chat."""
    key = f"agent:main:{platform}:dm:{chat}"
    rows = db.list_sessions_rich(limit=1, session_key=key, order_by_last_active=True)
    return [str(one["content"]) for one in db.get_messages(rows[0]["id"])]


def answers(db: SessionDB) -> list[str]:
    """Everything that is owed or sent in answer to messages, in order."""
    sql = "SELECT payload FROM hermes_outbox WHERE inbox_id IS NOT NULL ORDER BY outbox_id"
    rows = db.engine.read(lambda reader: reader.rows(sql))
    return [str(json.loads(row[0])["text"]) for row in rows]
