"""Whatever a platform sends, the messages after it are received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support import discord_server, slack_server
from support.discord_setup import discord_setup
from support.odd_payloads import odd_variants
from support.slack_setup import slack_setup
from support.telegram_server import ANN, Fault, TelegramServer
from support.telegram_setup import TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

LAST = "an ordinary message"
UNKNOWN_KINDS: tuple[tuple[str, Any], ...] = (
    ("business_message", {"a": 1}),
    ("message", None),
    ("message", []),
    ("callback_query", {"id": "1", "from": None}),
    ("kind_of_tomorrow", "text"),
)


async def test_odd_updates_of_telegram(db: SessionDB, tmp_path: Path) -> None:
    async with TelegramServer() as server:
        server.chats.add(7)
        setup = TelegramSetup(server, db, tmp_path)
        file = {"file_id": "f1", "file_unique_id": "f1", "file_name": "a.txt", "file_size": 3}
        message = server.message(
            None,
            caption="@HermesBot look",
            caption_entities=[{"type": "mention", "offset": 0, "length": 10}],
            document=file,
            reply_to_message=server.message("before"),
        )
        press = {"id": "5", "from": ANN, "message": message, "chat_instance": "1", "data": "a /b"}
        server.files = {"f1": b"abc"}
        async with setup.connected() as adapter:
            for kind, content in UNKNOWN_KINDS:
                await server.add(kind, content)
            for variant in [*odd_variants(message)][::2]:
                await server.add("message", variant)
            for variant in [*odd_variants(press)][::5]:  # they contain the message
                await server.add("callback_query", variant)
            for status in (409, 429, 500, 502):
                server.plan("getUpdates", Fault(status, f"fault {status}", {"retry_after": 0}))
            await server.send_as_user(LAST)
            await async_wait_until(lambda: setup.inbox.texts[-1:] == [LAST])
            await async_wait_until(lambda: not server.updates)
            assert adapter.problem == ""


async def test_odd_events_of_slack(db: SessionDB, tmp_path: Path) -> None:
    async with slack_setup(db, tmp_path) as setup:
        server = setup.server
        event = {
            "type": "message",
            "channel": slack_server.DM,
            "channel_type": "im",
            "user": slack_server.ANN,
            "text": f"<@{slack_server.BOT_USER}> look",
            "ts": server.ts(),
            "thread_ts": server.ts(),
            "files": [server.file("a.txt", b"abc", "text/plain")],
        }
        payload = {"type": "event_callback", "team_id": slack_server.TEAM, "event": event}
        action = {"type": "button", "value": "a /b", "action_ts": server.ts()}
        press = {
            "type": "block_actions",
            "user": {"id": slack_server.ANN},
            "channel": {"id": slack_server.DM},
            "message": {"ts": server.ts(), "text": "x"},
            "actions": [action],
        }
        command = {"command": "/hermes", "text": "help", "user_id": "UANN", "channel_id": "D1"}
        async with setup.connected() as adapter:
            for kind, odd in (("events_api", payload), ("interactive", press)):
                for variant in odd_variants(odd):
                    await server.envelope(kind, variant)
            for variant in odd_variants(command):
                await server.envelope("slash_commands", variant)
            for kind in ("kind_of_tomorrow", "events_api"):
                await server.envelope(kind, {"event": None})
            await server.time_out()  # everything that is not acknowledged comes twice
            await server.send_as_user(slack_server.DM, LAST)
            await async_wait_until(lambda: LAST in setup.inbox.texts)
            await async_wait_until(lambda: not server.unacknowledged)
            assert adapter.problem == ""


async def test_odd_events_of_discord(db: SessionDB, tmp_path: Path) -> None:
    async with discord_setup(db, tmp_path) as setup:
        server = setup.server
        message = server.message(
            discord_server.DM,
            f"<@{discord_server.BOT_ID}> look",
            discord_server.ANN,
            attachments=[server.attachment("a.txt", b"abc", "text/plain")],
        )
        async with setup.connected() as adapter:
            await server.send_as_user(discord_server.DM, "the first one")
            await setup.inbox.wait_for(1)
            for variant in odd_variants(message):
                await server.dispatch("MESSAGE_CREATE", variant)
            await server.dispatch("EVENT_OF_TOMORROW", {"a": None})
            await server.send_as_user(discord_server.DM, LAST)
            await async_wait_until(lambda: LAST in setup.inbox.texts)
            assert adapter.problem == ""


@pytest.mark.parametrize("body", [b"", b'{"ok": true, "result": [{"upd', b"<html>", b"[]", b"null"])
async def test_half_an_answer_of_telegram_loses_nothing(
    db: SessionDB, tmp_path: Path, body: bytes
) -> None:
    async with TelegramServer() as server:
        server.chats.add(7)
        setup = TelegramSetup(server, db, tmp_path)
        async with setup.connected():
            server.bodies.append(body)
            await server.send_as_user(LAST)
            await async_wait_until(lambda: setup.inbox.texts == [LAST])
