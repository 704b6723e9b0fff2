"""A gateway in this process, with a store and a scripted model."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.platforms.local import LocalAdapter
from gateway.process.service import GatewayService
from gateway.routing.session_routes import SessionRoutes
from gateway.routing.sources import SessionSource
from gateway.session import SessionStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import Adapter
    from hermes_core.clock import Clock
    from hermes_state import SessionDB


@asynccontextmanager
async def running_gateway(
    db: SessionDB,
    folder: Path,
    config: GatewayConfig | None = None,
    adapters: dict[str, Adapter] | None = None,
    drain: float = 10,
    *,
    is_in_default_folder: bool = False,
    clock: Clock | None = None,
) -> AsyncIterator[GatewayService]:
    """Run a gateway service; messages on the local socket wait for a client."""
    config = config or GatewayConfig()
    routes = SessionRoutes(db, folder, config)
    workspace = None if is_in_default_folder else folder
    service = GatewayService(db, routes, config, workspace, clock=clock)
    await service.start(adapters or {"local": LocalAdapter(folder / "s.sock")})
    try:
        yield service
    finally:
        await service.stop(drain)


def conversation_texts(db: SessionDB, chat: str = "c1", platform: str = "local") -> list[str]:
    """The texts of the latest conversation of a direct chat."""
    key = f"agent:main:{platform}:dm:{chat}"
    rows = db.list_sessions_rich(limit=1, session_key=key, order_by_last_active=True)
    return [str(message["content"]) for message in db.get_messages(rows[0]["id"])]


def outbox_texts(db: SessionDB) -> list[str]:
    """The texts of all pending and sent replies, in order."""
    sql = "SELECT payload FROM hermes_outbox WHERE inbox_id IS NOT NULL ORDER BY outbox_id"
    rows = db.engine.read(lambda reader: reader.rows(sql))
    return [str(json.loads(row[0])["text"]) for row in rows]


def local_message(text: str, message_id: str, user: str = "u1", **fields: Any) -> MessageEvent:
    """A message from a user in the chat c1."""
    source = SessionSource(fields.pop("platform", Platform.LOCAL), "c1", user_id=user)
    return MessageEvent(text, source=source, message_id=message_id, **fields)


def open_routes(db: SessionDB, folder: Path, **config: Any) -> SessionStore:
    """The routes of a store."""
    routes = SessionStore(folder, GatewayConfig(**config))
    routes._db = db
    return routes


def guest_config(**extra: Any) -> GatewayConfig:
    """A configuration with two users on Telegram."""
    allowed = {"allowed_users": ["guest", "owner"], **extra}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=allowed)})
