"""Texts and files sent to Telegram, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.platforms.base import ErrorKind, OutgoingMessage
from support.adapters import PNG
from support.telegram_server import Fault, TelegramServer
from support.telegram_setup import GROUP, TelegramSetup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


async def test_sending_returns_the_id_and_replies(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        number = await setup.server.send_as_user("hello")
        result = await adapter.send(OutgoingMessage("7", "hi", "k1", reply_to=str(number)))
    sent = setup.server.sent[0]
    assert (result.success, result.message_id) == (True, str(sent.message_id))
    assert f'"message_id": {number}' in sent.fields["reply_parameters"]
    assert '"allow_sending_without_reply": true' in sent.fields["reply_parameters"]


async def test_markdown_arrives_formatted(setup: TelegramSetup) -> None:
    from gateway.platforms.telegram.sender import render_html  # noqa: PLC0415 - takes seconds

    text = (
        "# Title\n\nSome **bold & brave** `a<b` [link](https://a.b/?c=1&d=2).\n\n"
        "- one\n  - two\n\n```py\nif a < b:\n    pass\n```\n\n> said\n> > twice\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n<script>alert(1)</script>"
    )
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage("7", text, "k1"))).success
    sent = setup.server.sent[0]
    assert sent.text == render_html(text).shown
    assert ("b", "bold & brave") in sent.entities
    assert ("code", "a<b") in sent.entities
    assert ("a", "link") in sent.entities
    assert ("pre", "if a < b:\n    pass") in sent.entities
    assert "• one\n  • two" in sent.text
    assert "<script>alert(1)</script>" in sent.text


async def test_a_text_with_invalid_markup_is_sent_plain(setup: TelegramSetup) -> None:
    refusal = Fault(400, "Bad Request: can't parse entities: no", only_formatted=True)
    setup.server.plan("sendMessage", refusal)
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage("7", "some *thing", "k1"))
        first = setup.server.sent[0]
        setup.server.plan("editMessageText", refusal)
        edited = await adapter.edit(OutgoingMessage("7", "**other**", "k1"), str(first.message_id))
    assert result.success
    assert (first.text, first.entities) == ("some *thing", [])
    assert edited.success
    assert setup.server.sent[0].text == "**other**"


async def test_a_text_that_renders_empty_is_sent_plain(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage("7", "[](https://a.b)", "k1"))).success
        empty = await adapter.send(OutgoingMessage("7", "", "k2"))
    assert setup.server.sent[0].text == "[](https://a.b)"
    assert empty.error_kind is ErrorKind.BAD_FORMAT


async def test_a_text_as_long_as_is_declared_arrives(setup: TelegramSetup) -> None:
    from gateway.platforms.telegram.adapter import TelegramAdapter  # noqa: PLC0415 - takes seconds

    longest = TelegramAdapter.abilities.longest_text
    async with setup.connected() as adapter:
        for text in ("x" * longest, "& < >" * (longest // 5), "**b** " * (longest // 6)):
            assert (await adapter.send(OutgoingMessage("7", text, "k"))).success
    assert len(setup.server.sent) == 3


async def test_a_text_of_emoji_is_split_by_utf16_units(setup: TelegramSetup) -> None:
    text = "😀 " * 2000
    async with setup.connected() as adapter:
        setup.server.plan("sendMessage", Fault(), Fault(429, "slow", {"retry_after": 1}))
        first = await adapter.send(OutgoingMessage("7", text, "k1"))
        assert first.error_kind is ErrorKind.RATE_LIMITED
        again = await adapter.send(OutgoingMessage("7", text, "k1"))
    assert again.success
    assert len(setup.server.sent) == 2, "what was out is not sent again"
    assert "".join(item.text for item in setup.server.sent).count("😀") == 2000


@pytest.mark.parametrize(
    ("fault", "kind", "retry_after", "may_have_arrived"),
    [
        (
            Fault(429, "Too Many Requests: retry after 17", {"retry_after": 17}),
            ErrorKind.RATE_LIMITED,
            17,
            False,
        ),
        (Fault(403, "Forbidden: bot was kicked"), ErrorKind.FORBIDDEN, None, False),
        (
            Fault(400, "Bad Request: not enough rights to send text messages"),
            ErrorKind.FORBIDDEN,
            None,
            False,
        ),
        (Fault(400, "Bad Request: message is too long"), ErrorKind.TOO_LONG, None, False),
        (Fault(500, "Internal Server Error"), ErrorKind.TRANSIENT, None, False),
        (Fault(502, "no JSON", body="<html>bad gateway"), ErrorKind.TRANSIENT, None, True),
        (Fault(is_cut=True), ErrorKind.TRANSIENT, None, True),
        (Fault(is_cut_in_body=True), ErrorKind.TRANSIENT, None, True),
    ],
)
async def test_errors_of_telegram_are_mapped_to_error_kinds(
    setup: TelegramSetup,
    fault: Fault,
    kind: ErrorKind,
    retry_after: float | None,
    may_have_arrived: bool,
) -> None:
    setup.server.plan("sendMessage", fault)
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage("7", "hi", "k1"))
    assert not result.success
    assert (result.error_kind, result.retry_after) == (kind, retry_after)
    assert result.may_have_arrived is may_have_arrived
    assert len(setup.server.sent) == (fault.is_cut or fault.is_cut_in_body)


async def test_a_block_and_a_missing_chat_are_distinguished(setup: TelegramSetup) -> None:
    setup.server.chats.add(8)
    setup.server.blocked.add(8)
    async with setup.connected() as adapter:
        blocked = await adapter.send(OutgoingMessage("8", "hi", "k1"))
        missing_chat = await adapter.send(OutgoingMessage("9", "hi", "k2"))
        gone = await adapter.edit(OutgoingMessage("7", "hi", "k3"), "12345")
    assert blocked.error_kind is ErrorKind.FORBIDDEN
    assert "blocked by the user" in (blocked.error or "")
    assert missing_chat.error_kind is ErrorKind.NOT_FOUND
    assert gone.error_kind is ErrorKind.NOT_FOUND
    assert not any(item.retryable for item in (blocked, missing_chat, gone))


async def test_without_a_connection_nothing_can_have_arrived(setup: TelegramSetup) -> None:
    idle = await setup.adapter().send(OutgoingMessage("7", "hi", "k0"))
    async with setup.connected() as adapter:
        await setup.server.stop()
        result = await adapter.send(OutgoingMessage("7", "hi", "k1"))
    for item in (idle, result):
        assert (item.error_kind, item.may_have_arrived) == (ErrorKind.TRANSIENT, False)


async def test_a_migrated_supergroup_is_resolved(setup: TelegramSetup) -> None:
    setup.server.chats.add(GROUP)
    moved = Fault(400, "Bad Request: group chat was upgraded", {"migrate_to_chat_id": GROUP})
    setup.server.plan("sendMessage", moved)
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage("-5", "hi", "k1"))).success
    assert setup.server.sent[0].chat_id == GROUP


async def test_a_message_is_edited_and_an_unchanged_text_is_not_a_failure(
    setup: TelegramSetup,
) -> None:
    async with setup.connected() as adapter:
        first = await adapter.send(OutgoingMessage("7", "one", "k1"))
        for _ in range(2):
            result = await adapter.edit(
                OutgoingMessage("7", "**two**", "k1"), first.message_id or ""
            )
            assert (result.success, result.message_id) == (True, first.message_id)
    assert setup.server.sent[0].text == "two"


async def test_an_edit_that_does_not_fit_is_too_long(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        first = await adapter.send(OutgoingMessage("7", "one", "k1"))
        result = await adapter.edit(OutgoingMessage("7", "😀" * 3000, "k1"), first.message_id or "")
    assert result.error_kind is ErrorKind.TOO_LONG
    assert setup.server.sent[0].text == "one"


async def test_typing_and_reactions_are_shown_and_never_raise(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        number = await setup.server.send_as_user("hello")
        await adapter.typing("7")
        await adapter.react("7", str(number), "👍")
        await adapter.typing("99")
        await adapter.react("99", "1", "👍")
    requests = dict(setup.server.requests)
    assert requests["sendChatAction"]["action"] == "typing"
    assert "\\ud83d\\udc4d" in requests["setMessageReaction"]["reaction"]


async def test_files_are_sent_with_their_caption(setup: TelegramSetup, tmp_path: Path) -> None:
    picture, text, fake = tmp_path / "a.png", tmp_path / "a.txt", tmp_path / "b.png"
    picture.write_bytes(PNG)
    text.write_bytes(b"words")
    fake.write_bytes(b"no picture")
    async with setup.connected() as adapter:
        for file in (picture, text, fake):
            outgoing = OutgoingMessage("7", "**look**", "k", file=file)
            assert (await adapter.send(outgoing)).success
        gone = await adapter.send(OutgoingMessage("7", "", "k", file=tmp_path / "gone"))
        long = OutgoingMessage("7", "word " * 300, "k", file=text)
        assert (await adapter.send(long)).success
    fields = ["photo" if "photo" in item.fields else "document" for item in setup.server.sent[:3]]
    assert fields == ["photo", "document", "document"]
    assert [item.file for item in setup.server.sent[:3]] == [PNG, b"words", b"no picture"]
    assert setup.server.sent[0].entities == [("b", "look")]
    assert gone.error_kind is ErrorKind.NOT_FOUND
    assert [item.file for item in setup.server.sent[3:]] == [None, b"words"]
