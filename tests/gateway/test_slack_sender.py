"""Sending through the Slack adapter, with the real library, on a loopback server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.platforms.base import ErrorKind, OutgoingMessage
from gateway.platforms.slack.adapter import MAX_TEXT_CHARS, make
from gateway.platforms.slack.mrkdwn import render_mrkdwn
from support.adapters import PNG
from support.slack_server import (
    DM,
    GENERAL,
    Fault,
)
from support.slack_setup import SlackSetup, slack_setup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[SlackSetup]:
    async with slack_setup(db, tmp_path) as result:
        yield result


async def test_a_text_is_sent_with_slack_markup_and_mentions_no_user(setup: SlackSetup) -> None:
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage(GENERAL, "**hi** <!channel> <@UANN>", "k1"))
    [message] = setup.server.messages[GENERAL]
    assert (result.success, result.message_id) == (True, message["ts"])
    assert message["text"] == "*hi* &lt;!channel&gt; &lt;@UANN&gt;"


async def test_a_message_is_edited_and_reacted_to(setup: SlackSetup) -> None:
    async with setup.connected() as adapter:
        sent = await adapter.send(OutgoingMessage(DM, "one", "k1"))
        assert sent.message_id
        edited = await adapter.edit(OutgoingMessage(DM, "two", "k1"), sent.message_id)
        gone = await adapter.edit(OutgoingMessage(DM, "two", "k1"), "1.0")
        for emoji in ("👀", "👀", "🦑"):
            await adapter.react(DM, sent.message_id, emoji)
    assert (edited.success, edited.message_id) == (True, sent.message_id)
    assert gone.error_kind is ErrorKind.NOT_FOUND
    assert setup.server.texts(DM) == ["two"]
    assert setup.server.reactions == [(DM, sent.message_id, "eyes")]


async def test_a_file_is_sent_with_its_caption(setup: SlackSetup, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PNG)
    async with setup.connected() as adapter:
        sent = await adapter.send(OutgoingMessage(DM, "look", "k1", thread_id="1.0", file=path))
        missing = await adapter.send(OutgoingMessage(DM, "look", "k2", file=tmp_path / "no"))
    assert sent.success
    assert missing.error_kind is ErrorKind.NOT_FOUND
    assert list(setup.server.uploads.values()) == [PNG]
    [message] = setup.server.messages[DM]
    assert (message["text"], message["thread_ts"]) == ("look", "1.0")


@pytest.mark.parametrize(
    ("fault", "kind", "is_unsure"),
    [
        (Fault("not_in_channel"), ErrorKind.FORBIDDEN, False),
        (Fault("invalid_auth"), ErrorKind.TRANSIENT, False),
        (Fault("msg_too_long"), ErrorKind.TOO_LONG, False),
        (Fault("ratelimited", 429, {"Retry-After": "17"}), ErrorKind.RATE_LIMITED, False),
        (Fault("fatal_error"), ErrorKind.TRANSIENT, True),
        (Fault("service_unavailable", 503), ErrorKind.TRANSIENT, False),
        (Fault(status=502), ErrorKind.TRANSIENT, True),
        (Fault(is_cut=True), ErrorKind.TRANSIENT, True),
        (Fault("something_new"), ErrorKind.UNKNOWN, False),
    ],
)
async def test_errors_of_slack_are_mapped_to_error_kinds(
    setup: SlackSetup, fault: Fault, kind: ErrorKind, is_unsure: bool
) -> None:
    setup.server.plan("chat.postMessage", fault)
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage(DM, "hello", "k1"))
    assert (result.error_kind, result.may_have_arrived) == (kind, is_unsure)
    assert result.retry_after == (17 if kind is ErrorKind.RATE_LIMITED else None)


async def test_a_text_with_markup_that_slack_rejects_is_sent_plain(setup: SlackSetup) -> None:
    setup.server.plan("chat.postMessage", Fault("invalid_blocks", only_marked=True))
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage(DM, "**hi**", "k1"))
    assert result.success
    assert setup.server.texts(DM) == ["**hi**"]


async def test_an_unknown_chat_and_a_valid_text_are_reported(setup: SlackSetup) -> None:
    async with setup.connected() as adapter:
        unknown = await adapter.send(OutgoingMessage("C404", "x", "k1"))
        sent = await adapter.send(OutgoingMessage(DM, "one", "k2"))
        fits = await adapter.edit(
            OutgoingMessage(DM, "x" * MAX_TEXT_CHARS, "k2"), str(sent.message_id)
        )
    assert unknown.error_kind is ErrorKind.NOT_FOUND
    assert fits.success


async def test_nothing_is_sent_where_nothing_is_connected(setup: SlackSetup) -> None:
    adapter = make(setup.context())
    result = await adapter.send(OutgoingMessage(DM, "hello", "k1"))
    assert result.error_kind is ErrorKind.TRANSIENT
    assert not result.may_have_arrived
    await adapter.react(DM, "1.0", "👀")


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# A **big** title", "*A big title*"),
        ("*a* **b** ~~c~~ `d<e`", "_a_ *b* ~c~ `d&lt;e`"),
        ("[a](https://x.org/?a=1&b=2|3)", "<https://x.org/?a=1&amp;b=2%7C3|a>"),
        ("[a](javascript:alert)", "[a](javascript:alert)"),
        ("<https://x.org>", "<https://x.org>"),
        ("- a\n- b\n  1. c", "• a\n• b\n    1. c"),
        ("> a\n> b", "> a\n> b"),
        ("```py\na < b\n```", "```\na &lt; b\n```"),
        ("| a |\n|---|\n| b |", "```\n| a |\n|---|\n| b |\n```"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
    ],
)
def test_markdown_is_written_as_slack_writes_it(markdown: str, expected: str) -> None:
    assert render_mrkdwn(markdown) == expected
