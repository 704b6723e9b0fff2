"""The e-mail adapter on a real Dovecot and a real SMTP server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from imapclient import IMAPClient  # type: ignore[import-untyped] # it has no types

from gateway.platforms.base import ErrorKind, MessageType, OutgoingMessage
from gateway.platforms.email import listener
from hermes_core.errors import PlatformDownError, PlatformRefusedError
from support.adapters import PNG, RecordingInbox
from support.mail_server import SERVER_NAME, compose
from support.mail_setup import ANN, MailSetup
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from support.mail_server import MailServer

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def setup(mail_server: MailServer, tmp_path: Path) -> MailSetup:
    return MailSetup(mail_server, tmp_path)


def thread_of(inbox: RecordingInbox, number: int) -> str | None:
    source = inbox.events[number].source
    assert source is not None
    return source.thread_id


async def test_a_message_has_its_sender_thread_and_subject(setup: MailSetup) -> None:
    async with setup.connected() as adapter:
        sent = await setup.write("How are you?\n", f"Ann <{ANN.upper()}>", Subject="A question")
        [event] = await setup.inbox.wait_for(1)
    assert adapter.account == setup.address
    assert event.text == "Subject: A question\n\nHow are you?"
    assert (event.message_id, event.message_type) == (sent["Message-ID"], MessageType.TEXT)
    source = event.source
    assert source is not None
    assert (source.chat_id, source.user_id, source.chat_type) == (ANN, ANN, "dm")
    assert source.thread_id == sent["Message-ID"]


async def test_a_reply_is_in_the_thread_and_the_answer_to_it_too(setup: MailSetup) -> None:
    async with setup.connected() as adapter:
        sent = await setup.write("How are you?", Subject="A question")
        [event] = await setup.inbox.wait_for(1)
        thread, root = thread_of(setup.inbox, 0), sent["Message-ID"]
        outgoing = OutgoingMessage(ANN, "Fine: ü\n\n* one", "k1", thread, event.message_id)
        result = await adapter.send(outgoing)
        [answer] = await setup.wait_for_answers(1)
        reply = f"And now?\n\nOn Monday, {setup.address} wrote:\n> Fine: ü\n>\n> * one\n"
        await setup.write(reply, Subject="Re: A question", In_Reply_To=str(result.message_id))
        events = await setup.inbox.wait_for(2)
    headers = {name: answer.content[name] for name in ("Subject", "In-Reply-To", "References")}
    assert headers == {"Subject": "Re: A question", "In-Reply-To": root, "References": root}
    assert (answer.text, answer.content["Message-ID"]) == ("Fine: ü\n\n* one", result.message_id)
    assert answer.content["Auto-Submitted"] == "auto-replied"
    assert (events[1].text, thread_of(setup.inbox, 1)) == ("And now?", thread)


async def test_each_thread_of_a_sender_is_a_conversation_of_its_own(setup: MailSetup) -> None:
    async with setup.connected():
        first = await setup.write("one", Subject="A")
        second = await setup.write("two", Subject="B")
        await setup.write("three", References=f"{first['Message-ID']} <between@example.org>")
        await setup.inbox.wait_for(3)
    ids = [first["Message-ID"], second["Message-ID"], first["Message-ID"]]
    assert [thread_of(setup.inbox, number) for number in range(3)] == ids
    assert setup.inbox.texts == ["Subject: A\n\none", "Subject: B\n\ntwo", "three"]


async def test_a_repeated_send_has_the_same_message_id(setup: MailSetup) -> None:
    async with setup.connected() as adapter:
        outgoing = OutgoingMessage(ANN, "The backup failed.\nSee the log.", "k1")
        results = [await adapter.send(outgoing) for _ in range(2)]
        results.append(await adapter.send(outgoing._replace(key="k2")))
    assert results[0] == results[1] != results[2]
    message = setup.answers[0].content
    assert (message["Subject"], message["In-Reply-To"]) == ("The backup failed.", None)


async def test_the_answer_to_a_message_of_the_agent_belongs_to_the_main_conversation(
    setup: MailSetup,
) -> None:
    async with setup.connected() as adapter:
        sent = await adapter.send(OutgoingMessage(ANN, "The backup failed.", "k1"))
        written = await setup.write("Why?\n> The backup failed.", References=sent.message_id)
        [event] = await setup.inbox.wait_for(1)
        await adapter.send(OutgoingMessage(ANN, "No space.", "k2", None, event.message_id))
        answers = await setup.wait_for_answers(2)
    assert (event.text, thread_of(setup.inbox, 0)) == ("Why?", None)
    references = f"{sent.message_id} {written['Message-ID']}"
    assert answers[1].content["References"] == references


async def test_files_arrive_with_their_names_and_are_sent_as_attachments(
    setup: MailSetup, tmp_path: Path
) -> None:
    message = compose(ANN, setup.address, "Look at these")
    message.add_attachment(PNG, maintype="image", subtype="png", filename="bild ü.png")
    message.add_attachment(b"x" * 1_100_000, maintype="a", subtype="b", filename="large.bin")
    (tmp_path / "plan\n\r.txt").write_text("a plan")
    async with setup.connected() as adapter:
        await setup.send(message)
        [event] = await setup.inbox.wait_for(1)
        outgoing = OutgoingMessage(ANN, "Here", "k1", file=tmp_path / "plan\n\r.txt")
        assert (await adapter.send(outgoing)).success
        missing = await adapter.send(outgoing._replace(file=tmp_path / "missing"))
    assert event.text == "Look at these\n[Attached file, download failed: large.bin]"
    assert (event.message_type, event.media_names) == (MessageType.PHOTO, ["bild ü.png"])
    assert await asyncio.to_thread(Path(event.media_urls[0]).read_bytes) == PNG
    [attachment] = setup.answers[0].content.iter_attachments()
    assert (attachment.get_filename(), attachment.get_content()) == ("plan .txt", "a plan")
    assert missing.error_kind is ErrorKind.NOT_FOUND


async def test_messages_from_before_the_first_start_are_not_answered(setup: MailSetup) -> None:
    await setup.write("long ago")
    async with setup.connected():
        await setup.write("now")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["now"]


async def test_messages_of_a_downtime_are_received_once_and_in_order(setup: MailSetup) -> None:
    async with setup.connected():
        await setup.write("before")
        await setup.inbox.wait_for(1)
    texts = [f"m{number}" for number in range(25)]
    for text in texts:
        await setup.write(text)
    async with setup.connected():
        await setup.inbox.wait_for(26)
    async with setup.connected():
        await setup.write("after")
        await setup.inbox.wait_for(27)
    assert setup.inbox.texts == ["before", *texts, "after"]


async def test_the_position_is_stored_only_after_a_message_was_received(setup: MailSetup) -> None:
    async with setup.connected():
        setup.inbox.fail()
        await setup.write("in vain")
        await async_wait_until(lambda: setup.inbox.attempts > 2)
    setup.inbox.recover()
    async with setup.connected():
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["in vain"]


async def test_the_server_reports_a_message_long_before_the_next_search(
    setup: MailSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "FIRST_WAIT_SECONDS", 600.0)
    async with setup.connected():
        while not setup.inbox.events:  # the first ones may arrive before the wait
            await setup.write("hello")
            await asyncio.sleep(1)


async def test_a_server_without_reports_is_searched_regularly(
    setup: MailSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IMAPClient, "has_capability", lambda _client, _name: False)
    async with setup.connected():
        await setup.write("hello")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]


async def test_a_restart_of_the_server_loses_nothing(
    setup: MailSetup, mail_server: MailServer
) -> None:
    async with setup.connected() as adapter:
        await asyncio.to_thread(mail_server.stop_imap)
        await async_wait_until(lambda: adapter.problem)
        await setup.write("meanwhile")
        await asyncio.to_thread(mail_server.start_imap)
        await setup.inbox.wait_for(1)
        await async_wait_until(lambda: not adapter.problem)
        await setup.write("afterwards")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["meanwhile", "afterwards"]


async def test_new_uids_do_not_bring_old_messages_back(
    setup: MailSetup, mail_server: MailServer
) -> None:
    await setup.write("long ago", Date="Mon, 01 Jan 2024 10:00:00 +0000")
    async with setup.connected():
        sent = await setup.write("before")
        await setup.inbox.wait_for(1)
        await asyncio.to_thread(mail_server.change_validity, setup.address, 4711)
        await setup.write("afterwards")
        await async_wait_until(lambda: "afterwards" in setup.inbox.texts)
    # The inbox drops "before" by its message ID, which is the same.
    ids = {event.message_id for event in setup.inbox.events if event.text == "before"}
    assert ids == {sent["Message-ID"]}
    assert set(setup.inbox.texts) == {"before", "afterwards"}
    assert setup.inbox.texts[-1] == "afterwards"


async def test_a_message_without_an_id_keeps_its_identity(
    setup: MailSetup, mail_server: MailServer
) -> None:
    message = compose(ANN, setup.address, "who am I?")
    del message["Message-ID"]
    async with setup.connected():
        await setup.send(message)
        [first] = list(await setup.inbox.wait_for(1))
        await asyncio.to_thread(mail_server.change_validity, setup.address, 4712)
        await setup.inbox.wait_for(2)
    assert str(first.message_id).startswith("hash:")
    assert setup.inbox.events[1].message_id == first.message_id


async def test_automatic_messages_are_not_answered(
    setup: MailSetup, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {
        "Auto_Submitted": "auto-replied",
        "Precedence": "bulk",
        "List_Id": "<news.example.org>",
        "X_Auto_Response_Suppress": "All",
        "X_Loop": setup.address,
    }
    async with setup.connected():
        for name, value in headers.items():
            await setup.write(name, **{name: value})
        await setup.write("me", sender=setup.address)
        await setup.write("bounce", sender="MAILER-DAEMON@example.org")
        await setup.write("empty return path", envelope_sender="<>")
        await setup.write("hello", Auto_Submitted="no")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]
    assert caplog.text.count("automatic message") == 8


async def test_a_reply_of_the_agent_to_itself_is_ignored(setup: MailSetup) -> None:
    other = MailSetup(setup.server, Path("/nonexistent"))
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage(other.address, "ping", "k1"))).success
        async with other.connected() as second:
            assert (await second.send(OutgoingMessage(setup.address, "pong", "k2"))).success
        await setup.write("hello")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]


async def test_a_sender_that_the_own_server_does_not_confirm_is_refused(
    setup: MailSetup, caplog: pytest.LogCaptureFixture
) -> None:
    forged = f"{SERVER_NAME}; dmarc=pass header.from=example.org"
    async with setup.connected():
        await setup.write("spoofed", envelope_sender="x@evil.test", Authentication_Results=forged)
        await setup.write("two senders", sender=f"{ANN}, x@evil.test", Sender=ANN)
        await setup.write("a trick", sender=f'"{ANN}" <x@evil.test>', envelope_sender=ANN)
        setup.deliver(f"From: {ANN}\r\nMessage-ID: <1@x>\r\n\r\nno results".encode())
        await setup.write("really me")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["really me"]
    assert caplog.text.count("sender not verified") == 3
    assert caplog.text.count("not exactly one sender address") == 1


async def test_verification_can_be_switched_off(mail_server: MailServer, tmp_path: Path) -> None:
    setup = MailSetup(mail_server, tmp_path, verify_sender=False, authserv_id="")
    async with setup.connected():
        await setup.write("anyone", envelope_sender="x@evil.test")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["anyone"]


async def test_a_subject_cannot_add_headers(setup: MailSetup) -> None:
    subject = "=?utf-8?q?hello=0D=0ABcc=3A_victim=40example=2Ecom=0D=0A=0D=0Abody?="
    raw = f"From: {ANN}\r\nSubject: {subject}\r\nMessage-ID: <a@b.c>\r\n\r\nhi"
    results = f"Authentication-Results: {SERVER_NAME}; dmarc=pass header.from=example.org\r\n"
    async with setup.connected() as adapter:
        setup.deliver((results + raw).encode())
        [event] = await setup.inbox.wait_for(1)
        outgoing = OutgoingMessage(ANN, "hi", "k1", "<a@b.c>", event.message_id)
        assert (await adapter.send(outgoing)).success
        bad = await adapter.send(OutgoingMessage("a@b.c\r\nBcc: x@y.z", "hi", "k2"))
    [answer] = setup.answers
    assert answer.content["Subject"] == "Re: hello Bcc: victim@example.com body"
    assert answer.content["Bcc"] is None
    assert bad.error_kind is ErrorKind.NOT_FOUND


async def test_commands_are_the_first_paragraph(setup: MailSetup) -> None:
    async with setup.connected():
        await setup.write("/new please\n\n-- \nAnn", Subject="Hello")
        await setup.write("!status\n\nBest wishes\nAnn", Subject="Hello")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["/new please", "!status"]
    assert {event.message_type for event in setup.inbox.events} == {MessageType.COMMAND}


async def test_a_message_that_fails_is_quarantined_and_the_next_one_received(
    setup: MailSetup,
) -> None:
    async with setup.connected():
        setup.inbox.fail(3, RuntimeError("unexpected"))
        await setup.write("poison")
        await setup.write("hello")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]
    [(update_id, error)] = setup.quarantined
    assert update_id.startswith(f"{setup.address}:")
    assert error == "RuntimeError: unexpected"


async def test_more_messages_than_allowed_are_set_aside(
    mail_server: MailServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = MailSetup(mail_server, tmp_path, messages_per_hour=2, thread_messages=1)
    async with setup.connected():
        first = await setup.write("one")
        await setup.write("two", References=first["Message-ID"])
        await setup.write("three")
        await setup.write("four")
        await setup.write("hello", sender="bob@example.org")
        await setup.inbox.wait_for(3)
    assert setup.inbox.texts == ["one", "three", "hello"]
    assert len(setup.quarantined) == 2
    assert "more than 1 messages in one thread" in caplog.text
    assert "more than 2 messages of one sender in an hour" in caplog.text


async def test_both_connections_are_encrypted_and_verified(
    mail_server: MailServer, tmp_path: Path
) -> None:
    secure = {
        "imap_host": "localhost",
        "imap_port": mail_server.imap_tls_port,
        "imap_security": "tls",
        "smtp_host": "localhost",
        "smtp_port": mail_server.smtp_starttls_port,
        "smtp_security": "starttls",
        "ca_file": str(mail_server.ca_file),
    }
    setup = MailSetup(mail_server, tmp_path, **secure)
    async with setup.connected() as adapter:
        await setup.write("hello")
        await setup.inbox.wait_for(1)
        assert (await adapter.send(OutgoingMessage(ANN, "hi", "k1"))).success
    imap_starttls = {"imap_port": mail_server.imap_port, "imap_security": "starttls"}
    async with MailSetup(mail_server, tmp_path, **secure | imap_starttls).connected():
        pass
    for changed in ({"ca_file": ""}, {"imap_host": "127.0.0.1"}, {"smtp_host": "127.0.0.1"}):
        with pytest.raises(PlatformRefusedError, match=r"certificate of .* is not trusted"):
            async with MailSetup(mail_server, tmp_path, **secure | changed).connected():
                pass
    plain = {**secure, "smtp_port": mail_server.smtp_port}
    with pytest.raises(PlatformRefusedError, match="does not offer STARTTLS"):
        async with MailSetup(mail_server, tmp_path, **plain).connected():
            pass


async def test_a_wrong_password_is_refused_and_an_absent_server_is_down(
    setup: MailSetup, mail_server: MailServer, tmp_path: Path
) -> None:
    setup.secrets["EMAIL_PASSWORD"] = "wrong"
    with pytest.raises(PlatformRefusedError, match="rejected the login"):
        async with setup.connected():
            pass
    absent = MailSetup(mail_server, tmp_path, imap_port=1)
    with pytest.raises(PlatformDownError, match=r"No connection to 127\.0\.0\.1:1"):
        async with absent.connected():
            pass
    elsewhere = MailSetup(mail_server, tmp_path)
    elsewhere.extra["folder"] = "Nowhere"
    with pytest.raises(PlatformRefusedError, match=r"platforms\.email\.folder"):
        async with elsewhere.connected():
            pass


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"imap_host": ""}, "set platforms.email.imap_host"),
        ({"smtp_host": None}, "set platforms.email.smtp_host"),
        ({"imap_host": "mail.example.org"}, "would send the password in plain text"),
        ({"smtp_security": "ssl"}, "must be tls, starttls or none"),
        ({"authserv_id": " "}, "senders cannot be verified"),
        ({"ca_file": "/nonexistent.pem"}, "cannot read the certificates"),
    ],
)
async def test_a_wrong_setting_is_refused_with_what_to_do(
    options: dict[str, object], text: str, mail_server: MailServer, tmp_path: Path
) -> None:
    setup = MailSetup(mail_server, tmp_path, **options)
    with pytest.raises(PlatformRefusedError) as raised:
        async with setup.connected():
            pass
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ("550 no such user", ErrorKind.NOT_FOUND),
        ("451 greylisted", ErrorKind.TRANSIENT),
        ("554 spam", ErrorKind.FORBIDDEN),
        ("552 too large", ErrorKind.TOO_LONG),
        ("550 5.4.5 daily limit", ErrorKind.RATE_LIMITED),
    ],
)
async def test_a_rejected_reply_has_the_reason(
    response: str, kind: ErrorKind, setup: MailSetup
) -> None:
    async with setup.connected() as adapter:
        setup.server.smtp.failures.append(response)
        result = await adapter.send(OutgoingMessage(ANN, "hi", "k1"))
    assert (result.error, result.error_kind, result.may_have_arrived) == (response, kind, False)


def test_the_platform_needs_only_the_library_that_it_installs() -> None:
    code = (
        "import sys; sys.modules |= dict.fromkeys(('aiohttp', 'aiogram', 'nio', 'discord'));"
        "import gateway.platforms.email.adapter"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr


async def test_any_bytes_in_the_mailbox_do_not_stop_the_listener(setup: MailSetup) -> None:
    head = f"Authentication-Results: {SERVER_NAME}; dmarc=pass\nFrom: {ANN}\n".encode()
    async with setup.connected():
        setup.deliver(b"\xff\xfe\0" * 100)
        setup.deliver(b"")
        setup.deliver(head + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 200)
        setup.deliver(
            head + b"Subject: =?utf-9?b?%%?=\nContent-Type: text/plain; charset=x\n\n\xe4"
        )
        await setup.write("hello")
        await async_wait_until(lambda: setup.inbox.texts[-1:] == ["hello"])
    assert setup.quarantined == []


async def test_the_content_of_an_unverified_message_is_not_read(setup: MailSetup) -> None:
    """Anyone can send it: it must neither fail nor take time."""
    async with setup.connected():
        setup.deliver(b"From: x@evil.test\nContent-Type: text/plain; charset*=a''x\n\n\xff")
        setup.deliver(b"From: x@evil.test\nContent-Type: text/html\n\n" + b"<a " * 1_000_000)
        await setup.write("hello")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]
    assert setup.quarantined == []


async def test_of_a_message_of_an_unknown_sender_only_the_headers_are_read(
    setup: MailSetup, tmp_path: Path
) -> None:
    setup.is_accepted = lambda event: event.source is not None and event.source.user_id == ANN
    message = compose("eve@example.org", setup.address, "text", Subject="Hi")
    message.add_attachment(PNG, maintype="image", subtype="png", filename="a.png")
    async with setup.connected():
        await setup.send(message)
        await setup.write("hello")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["Subject: Hi", "hello"]  # access control drops the first one
    assert [path for path in (tmp_path / "media").rglob("*") if path.is_file()] == []
    assert len(setup.records.values) == 1  # the thread of the second one
