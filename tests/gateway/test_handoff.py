"""Hand-offs of conversations to a chat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, HomeChannel, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.platforms.local import LocalAdapter
from gateway.routing.handoff_worker import HandoffWorker
from gateway.routing.sources import SessionSource
from support.gateways import local_message, open_routes, outbox_texts, running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from hermes_state import SessionDB


def test_a_hand_off_that_broke_off_is_carried_out_at_the_next_start(
    db: SessionDB, tmp_path: Path
) -> None:
    source = local_message("x", "0").source
    assert source is not None
    routes = open_routes(db, tmp_path)
    routes.get_or_create_session(source)
    db.create_session("cli1", "cli", is_owned=False)
    db.request_handoff("cli1", "local")
    db.claim_handoff("cli1")  # and killed
    HandoffWorker(db, routes, {"local": LocalAdapter(tmp_path / "s")}, lambda _: True).run_pending()
    assert (db.get_handoff_state("cli1") or {})["state"] == "completed"
    assert db.inbox.waiting_places() == 1


async def test_a_terminal_conversation_continues_in_a_chat(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Going on.}]")
    db.create_session("cli1", "cli", is_owned=False)
    db.append_message("cli1", "user", "from the terminal")
    db.end_session("cli1", "cli_close")
    db.request_handoff("cli1", "local")
    async with running_gateway(db, tmp_path, at_home()) as service:
        await async_wait_until(lambda: db.get_handoff_state("cli1") == _completed())
        await async_wait_until(lambda: outbox_texts(db) == ["Continuing cli1."])
        source = SessionSource(Platform.LOCAL, "home", user_id="ada")
        event = MessageEvent("and now?", source=source, message_id="m1")
        await service.receiver.receive("local", event)
        await async_wait_until(lambda: outbox_texts(db)[-1] == "Going on.")
    assert [str(item["content"]) for item in db.get_messages("cli1")] == [
        "from the terminal",
        "and now?",
        "Going on.",
    ]
    kinds = {boundary.kind for boundary in db.boundaries.recent()}
    assert "handoff" in kinds


def at_home() -> GatewayConfig:
    home = HomeChannel(Platform.LOCAL, "home", "Home")
    return GatewayConfig(platforms={Platform.LOCAL: PlatformConfig(True, home_channel=home)})


def _completed() -> dict[str, Any]:
    return {"state": "completed", "platform": "local", "error": None}


async def test_who_hands_off_hears_that_the_chat_is_unknown_or_that_it_is_done(
    db: SessionDB, tmp_path: Path, answering: Any, hermes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[]")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "1:x")
    db.create_session("cli1", "cli", is_owned=False)
    db.append_message("cli1", "user", "from the terminal")
    async with running_gateway(db, tmp_path, at_home()):
        failed = await asyncio.to_thread(hermes, "gateway", "handoff", "cli1", "telegram")
        done = await asyncio.to_thread(hermes, "gateway", "handoff", "cli1", "local")
    assert failed.code == 2
    assert "Send the agent a message there first" in failed.err
    assert (db.get_handoff_state("cli1") or {})["state"] == "completed"
    assert "Handed off to Local." in done.out
