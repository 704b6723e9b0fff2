"""Sending through the Discord adapter, with the real library, on a loopback server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.outbound.sender import OutboxSender
from gateway.platforms.base import ErrorKind, OutgoingMessage
from gateway.platforms.discord.adapter import MAX_TEXT_CHARS, make
from support.adapters import PNG, ServerSetup
from support.discord_server import (
    DM,
    Fault,
)
from support.discord_setup import discord_setup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[ServerSetup]:
    async with discord_setup(db, tmp_path) as result:
        yield result


def posted_bodies(setup: ServerSetup) -> list[dict[str, Any]]:
    return [body for method, path, body in setup.server.requests if _is_post(method, path)]


def _is_post(method: str, path: str) -> bool:
    return method == "POST" and path.endswith("/messages")


async def test_a_text_is_sent_once_and_mentions_no_user(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        outgoing = OutgoingMessage(str(DM), "hello @everyone", "a-long-key:" * 9, reply_to="123")
        setup.server.plan("POST messages", Fault(is_cut=True))
        lost = await adapter.send(outgoing)
        again = await adapter.send(outgoing)
    assert (lost.error_kind, lost.may_have_arrived) == (ErrorKind.TRANSIENT, True)
    assert again.success
    assert setup.server.texts(DM) == ["hello @everyone"]
    body = posted_bodies(setup)[0]
    assert body["allowed_mentions"]["parse"] == []
    assert not body["allowed_mentions"].get("replied_user")
    assert body["message_reference"]["fail_if_not_exists"] is False


async def test_a_reply_whose_arrival_is_unknown_is_repeated_without_a_note(
    setup: ServerSetup, db: SessionDB
) -> None:
    db.outbox.add("k1", platform="discord", target={"chat_id": str(DM)}, payload={"text": "hi"})
    lost = db.outbox.claim("discord")
    assert lost is not None
    db.outbox.postpone(lost.outbox_id, "cut", may_have_arrived=True, after_seconds=0)
    async with setup.connected() as adapter:
        sender = OutboxSender(db, "discord", adapter)
        sender.stop()
        await sender.run()
    assert setup.server.texts(DM) == ["hi"]


async def test_a_message_is_edited_and_typing_shown(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        sent = await adapter.send(OutgoingMessage(str(DM), "one", "k1"))
        assert sent.message_id
        edited = await adapter.edit(OutgoingMessage(str(DM), "two", "k1"), sent.message_id)
        gone = await adapter.edit(OutgoingMessage(str(DM), "two", "k1"), "1")
        await adapter.typing(str(DM))
        await adapter.typing("31337")
        await adapter.react(str(DM), "1", "👀")
    assert (edited.success, edited.message_id) == (True, sent.message_id)
    assert gone.error_kind is ErrorKind.NOT_FOUND
    assert setup.server.texts(DM) == ["two"]
    assert ("POST", f"channels/{DM}/typing", {}) in setup.server.requests


async def test_a_file_is_sent_with_its_caption(setup: ServerSetup, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    async with setup.connected() as adapter:
        sent = await adapter.send(OutgoingMessage(str(DM), "look", "k1", file=path))
        missing = await adapter.send(OutgoingMessage(str(DM), "look", "k2", file=tmp_path / "no"))
    assert sent.success
    assert missing.error_kind is ErrorKind.NOT_FOUND
    assert (setup.server.uploads, setup.server.texts(DM)) == ([PNG], ["look"])


@pytest.mark.parametrize(
    ("fault", "kind", "is_unsure"),
    [
        (Fault(403, {"message": "no", "code": 50007}), ErrorKind.FORBIDDEN, False),
        (Fault(404, {"message": "no", "code": 10003}), ErrorKind.NOT_FOUND, False),
        (Fault(400, {"message": "no", "code": 50006}), ErrorKind.BAD_FORMAT, False),
        (Fault(413, {"message": "no", "code": 40005}), ErrorKind.TOO_LONG, False),
        (Fault(503, {"message": "no"}), ErrorKind.TRANSIENT, True),
    ],
)
async def test_errors_of_discord_are_mapped_to_error_kinds(
    setup: ServerSetup, fault: Fault, kind: ErrorKind, is_unsure: bool
) -> None:
    setup.server.plan("POST messages", fault)
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage(str(DM), "hello", "k1"))
    assert (result.error_kind, result.may_have_arrived) == (kind, is_unsure)


async def test_a_text_that_is_too_long_and_an_unknown_chat_are_reported(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        long = await adapter.send(OutgoingMessage(str(DM), "x" * 2001, "k1"))
        fits = await adapter.send(OutgoingMessage(str(DM), "x" * MAX_TEXT_CHARS, "k2"))
        nowhere = await adapter.send(OutgoingMessage("a word", "x", "k3"))
        unknown = await adapter.send(OutgoingMessage("31337", "x", "k4"))
    assert long.error_kind is ErrorKind.TOO_LONG
    assert fits.success
    assert nowhere.error_kind is unknown.error_kind is ErrorKind.NOT_FOUND


async def test_a_long_limit_is_reported_and_a_short_one_is_waited_for(setup: ServerSetup) -> None:
    long = {"message": "slow down", "retry_after": 300.5, "global": False}
    setup.server.plan("POST messages", Fault(429, {**long, "retry_after": 0.01}))
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage(str(DM), "one", "k1"))).success
        setup.server.plan("POST messages", Fault(429, long))
        result = await adapter.send(OutgoingMessage(str(DM), "two", "k2"))
    assert (result.error_kind, result.retry_after) == (ErrorKind.RATE_LIMITED, 300.5)


async def test_nothing_is_sent_where_nothing_is_connected(setup: ServerSetup) -> None:
    adapter = make(setup.context())
    result = await adapter.send(OutgoingMessage(str(DM), "hello", "k1"))
    assert result.error_kind is ErrorKind.TRANSIENT
    assert not result.may_have_arrived
    await adapter.typing(str(DM))
