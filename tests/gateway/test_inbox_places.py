"""Messages that arrive at the same time do not take more places than there are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from support.gateways import running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from hermes_state import SessionDB


async def test_messages_at_the_same_time_share_the_places(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.inbound.inbox_workers.OWNER_TURNS", 0)
    model = answering("[" + ", ".join(["{hang: 60}"] * 12) + "]")
    async with running_gateway(
        db, tmp_path, GatewayConfig(max_concurrent_sessions=3), drain=0
    ) as service:
        sources = [SessionSource(Platform.LOCAL, f"c{number}", user_id="u") for number in range(12)]
        events = [MessageEvent("hi", source=source, message_id="1") for source in sources]
        await asyncio.gather(*(service.receiver.receive("local", event) for event in events))
        await async_wait_until(lambda: len(model.requests) >= 3)
        await asyncio.sleep(0.5)
        assert len(model.requests) == 3
