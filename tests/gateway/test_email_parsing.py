"""How the bytes of an e-mail become the text, the sender and the thread of a message."""

from __future__ import annotations

from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.platforms.base import OutgoingMessage
from gateway.platforms.email.addresses import parse_sender
from gateway.platforms.email.bodies import unflow, without_quotations, without_signature
from gateway.platforms.email.messages import ParsedMail, parse_body, parse_headers, refusal
from gateway.platforms.email.settings import EmailSettings, MailServer
from gateway.platforms.email.smtp import create_mail
from gateway.platforms.email.threads import MailThreads, ThreadRecord, place_hash, reply_id
from hermes_core.html_text import html_to_text

ACCOUNT = "bot@hermes.test"
ANN = "ann@example.org"
HOST = "mx.hermes.test"
SERVER = MailServer("127.0.0.1", 1, "none")
SETTINGS = EmailSettings(ACCOUNT, ACCOUNT, "", SERVER, SERVER, "", "INBOX", 60, (HOST,), 0, 0)
HEADER_NAMES = (
    "From", "To", "Subject", "Message-ID", "References", "In-Reply-To", "Date", "Content-Type",
    "Content-Transfer-Encoding", "Content-Disposition", "Authentication-Results", "Auto-Submitted",
)  # fmt: skip
FRAGMENTS = (
    b"multipart/mixed; boundary=b", b"message/rfc822", b"text/html; charset=utf-7", b"base64",
    b"text/plain; charset=\"\xff\"; format=flowed; delsp=yes", b"multipart/report", b"uuencode",
    b"attachment; filename*=utf-9''%ff%zz", b"attachment; filename*0*=x''a; filename*1=b",
    b"=?utf-8?b?=FF=?=", b"=?x?q?=zz?=", b"<a@b.c> <d@e.f>", b"Mon, 99 Foo 99999 99:99:99 +9999",
    b"text/plain; charset*=utf-8''x", b"text/plain; charset=idna", b"text/plain; charset=a\0",
    b"multipart/mixed; boundary*0*=a; boundary*=b",
    b"\n--b\n", b"\n--b--\n", b"\n\n", b"<![x[", b"<p>a<div style=display:none>", b"begin 666 x\n",
)  # fmt: skip


def parse_mail(data: bytes, account: str) -> ParsedMail:
    return parse_headers(data, account)._replace(body=parse_body(data))


def mail(*lines: str, body: str = "hello") -> bytes:
    return "\r\n".join([*lines, "", body]).encode("utf-8", "surrogateescape")


@given(st.binary(max_size=2000))
def test_any_bytes_are_parsed(data: bytes) -> None:
    parse_mail(data, ACCOUNT)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(HEADER_NAMES),
            st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=60)),
        ),
        max_size=8,
    ),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=60)), max_size=12),
)
def test_any_headers_and_parts_are_parsed(
    headers: list[tuple[str, bytes]], parts: list[bytes]
) -> None:
    lines = [name.encode() + b": " + value for name, value in headers]
    parsed = parse_mail(b"\n".join([*lines, b"", b"\n".join(parts)]), ACCOUNT)
    parsed.body.text.encode()
    record = ThreadRecord("<r@x>", parsed.subject, "", "", tuple(parsed.references), 1, 0.0)
    outgoing = OutgoingMessage(ANN, parsed.body.text, "k", "<r@x>", parsed.message_id)
    sent = create_mail(SETTINGS, outgoing, record).content
    assert set(sent.keys()) <= {
        "From", "To", "Date", "Message-ID", "Subject", "In-Reply-To", "References",
        "Auto-Submitted", "X-Auto-Response-Suppress", "X-Loop", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip
    sent.as_bytes().decode("ascii")


@given(st.text(max_size=300))
def test_a_reply_is_never_cut_to_nothing(text: str) -> None:
    assert bool(without_quotations(text)) == bool(text.strip())
    assert bool(without_signature(text)) == bool(text.strip())


@given(st.text(alphabet="<>/!-[]&;=\"' abdivpstyle\n", max_size=200))
def test_any_html_becomes_text(html: str) -> None:
    html_to_text(html)


@pytest.mark.parametrize(
    "kind",
    ["charset*=utf-8''x", "charset=idna", 'charset="\0"', "charset*0*=a; charset*=b"],
)
def test_a_text_with_a_strange_charset_is_not_lost(kind: str) -> None:
    data = mail(f"From: {ANN}", f"Content-Type: text/plain; {kind}").replace(b"hello", b"h\xe4")
    assert parse_mail(data, ACCOUNT).body.text in {
        "hä",
        "[The content of the message could not be read.]",
    }


# Before, each of these took longer than a test may.


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        "<a b=c ",
        "<a href='",
        "<!--",
        "<p",
        "<li>",
        "<blockquote>",
        "<![CDATA[",
        "</",
        "a<b>",
    ],
)
def test_the_time_for_html_is_proportional_to_its_length(piece: str) -> None:
    html_to_text(piece * (1_000_000 // len(piece)))


@pytest.mark.parametrize(
    "text",
    ["am " + "schrieb " * 3000 + " " * 25_000 + "x", "den " + "skrev " * 8000],
)
def test_the_time_to_find_quotations_is_bounded(text: str) -> None:
    assert without_quotations(text) == text.strip()


@pytest.mark.parametrize("name", ["Message-ID", "References", "In-Reply-To", "Subject"])
@pytest.mark.parametrize("value", ["<" + "@" * 1_000_000, "=?a?q?" * 200_000])
def test_the_time_for_headers_is_bounded(name: str, value: str) -> None:
    assert parse_mail(mail(f"From: {ANN}", f"{name}: {value}"), ACCOUNT).sender == ANN


def test_wrapped_text_of_any_length_is_parsed() -> None:
    data = mail("Content-Type: text/plain; format=flowed", body="a \n" * 2_000_000)
    assert "left out" in parse_mail(data, ACCOUNT).body.text


def test_what_is_not_a_message_id_is_left_out() -> None:
    data = mail("References: <a@b> <c@d@e> <x> <@y> <f@g>", "Message-ID: <h@i>")
    parsed = parse_mail(data, ACCOUNT)
    assert (parsed.message_id, parsed.references) == ("<h@i>", ["<a@b>", "<c@d@e>", "<f@g>"])


def test_thousands_of_nested_parts_are_parsed() -> None:
    lines = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n"
    data = b"From: a@b.c\n" + b"".join(lines % (number, number) for number in range(3000))
    assert parse_mail(data, ACCOUNT).sender == "a@b.c"


def test_plain_text_is_preferred_and_html_is_converted() -> None:
    message = EmailMessage()
    message.set_content("plain")
    message.add_alternative("<p>rich</p>", subtype="html")
    assert parse_mail(bytes(message), ACCOUNT).body.text.strip() == "plain"
    html = (
        "<html><head><title>x</title><style>p {}</style></head><body><p>Hello <b>Ann</b>,</p>"
        "<ul><li>one<li>two</ul><div>see <a href='https://example.org/a'>this</a><br>end</div>"
        "<span style='display: none'>secret</span><blockquote>earlier<br>lines</blockquote></body>"
    )
    text = parse_mail(mail("Content-Type: text/html", body=html), ACCOUNT).body.text
    assert text == (
        "Hello Ann,\n\n- one\n- two\n\nsee this (https://example.org/a)\nend\n\n> earlier\n> lines"
    )


def test_wrong_charsets_are_tolerated() -> None:
    head = b"Content-Type: text/plain; charset=%s\n\n"
    texts = {b"utf-8": b"\xe4", b"nonsense": "ü".encode(), b"latin-1": b"\xfc", b"hex": b"\xfc"}
    read = [parse_mail(head % name + data, ACCOUNT).body.text for name, data in texts.items()]
    assert read == ["ä", "ü", "ü", "ü"]


def test_wrapped_lines_of_flowed_text_are_joined() -> None:
    assert unflow("one \ntwo\n \n> a \n> b\n-- \nAnn") == "one two\n\n> a b\n-- \nAnn"
    assert unflow("ein \nWort", is_space_deleted=True) == "einWort"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes\n\nOn Mon, 1 Jan 2024 at 10:00, Ann <a@b.c> wrote:\n> a\n>> b\n", "Yes"),
        ("Yes\n\nOn Monday the first of January,\nAnn Example <a@b.c>\nwrote:\n\n> a", "Yes"),
        ("Ja\n\nAm 1.1.2024 um 10:00 schrieb Ann:\n> a", "Ja"),
        ("Yes\n\n-----Original Message-----\nFrom: Ann\nSent: today\n\nlong text", "Yes"),
        ("Yes\n\n________________________________\nFrom: Ann\nSent: today\n\nlong", "Yes"),
        ("Yes\n\nFrom: Ann <a@b.c>\nSent: Monday\nTo: Bot\n\nlong", "Yes"),
        ("> What time?\nNoon.", "Noon."),
        (
            "Ann wrote:\n> When?\nNoon.\n> Where?\nHere.",
            "Ann wrote:\n> When?\nNoon.\n> Where?\nHere.",
        ),
        ("> only\n> a quotation", "> only\n> a quotation"),
        ("yes\n\n-- \nAnn Example\nDirector", "yes"),
        ("yes\n\nSent from my phone", "yes"),
        ("-- \nonly a signature", "-- \nonly a signature"),
        ("From: the start\nthis is prose", "From: the start\nthis is prose"),
    ],
)
def test_the_earlier_message_and_the_signature_are_left_out(text: str, expected: str) -> None:
    assert without_quotations(text) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("ann@example.org", ANN),
        ("Ann Example <Ann@Example.ORG>", ANN),
        ('"Example, Ann" <ann@example.org>', ANN),
        ("=?utf-8?q?owner=40example=2Ecom?= <ann@example.org>", ANN),
        ("ann@example.org, bob@example.org", None),
        ("ann@example.org <evil@evil.test>", None),
        ("<ann@example.org> <evil@evil.test>", None),
        ("Ann <ann@example.org>, <evil@evil.test>", None),
        ("ann@example.org (evil@evil.test)", None),
        ("group: ann@example.org;", None),
        ('"ann@example.org"@evil.test', None),
        ("änn@example.org", None),
        ("ann@exam\0ple.org", None),
        ("", None),
    ],
)
def test_only_a_clear_sender_is_accepted(header: str, expected: str | None) -> None:
    assert parse_sender([header]) == expected
    assert parse_sender([header, header]) is None


@pytest.mark.parametrize(
    "header",
    [
        f"{HOST}; dmarc=pass header.from=example.org",
        f"{HOST} 1; spf=fail smtp.mailfrom=x.test;\r\n dkim=pass header.d=example.org header.b=A=",
        f"{HOST}; dkim=pass header.i=@example.org",
        f"{HOST}; spf=pass (x: domain of ann@example.org is fine) smtp.mailfrom=ann@example.org",
        f"{HOST}; dmarc=none header.from=example.org; spf=pass smtp.mailfrom=example.org",
    ],
)
def test_the_own_server_confirms_a_sender(header: str) -> None:
    assert refusal([header, "other; dmarc=fail"], (HOST,), ANN) == ""


@pytest.mark.parametrize(
    "header",
    [
        "other.test; dmarc=pass header.from=example.org",
        f"sub.{HOST}; dmarc=pass",
        f"{HOST}; none",
        f"{HOST}; dmarc=pass header.from=evil.test",
        f"{HOST}; dmarc=fail header.from=example.org; spf=pass smtp.mailfrom=ann@example.org",
        f"{HOST}; spf=pass smtp.mailfrom=x@evil.test",
        f"{HOST}; spf=pass smtp.helo=example.org",
        f"{HOST}; spf=pass smtp.mailfrom=example.org=x@evil.test",
        f'{HOST}; spf=pass smtp.mailfrom="a; dmarc=pass header.from=example.org"@evil.test',
        f'{HOST}; spf=pass smtp.mailfrom="a dkim=pass header.d=example.org"@evil.test',
        f"{HOST}; spf=fail (dmarc=pass; dmarc=pass) smtp.mailfrom=ann@example.org",
        f"{HOST}; dkim=pass header.d=evil.test header.d=example.org",
        f"{HOST}; dkim=pass header.d=notexample.org",
        f"{HOST}; dkim=pass header.d=org",
        f"{HOST}; spf=pass (unclosed smtp.mailfrom=ann@example.org",
        "dmarc=pass header.from=example.org",
        "",
    ],
)
def test_nothing_else_confirms_a_sender(header: str) -> None:
    assert refusal([header, f"{HOST}; dmarc=pass"], (HOST,), ANN) != ""


def test_a_configured_domain_stands_for_all_its_hosts() -> None:
    header = "mx7.mail.test; dmarc=pass"
    assert refusal([header], ("*.mail.test",), ANN) == ""
    assert refusal([header], ("*.ail.test",), ANN) != ""
    assert refusal([], (HOST,), ANN) != ""


def test_a_message_without_an_id_has_the_same_identity_in_another_mailbox() -> None:
    headers = (f"From: {ANN}", "Date: Mon, 01 Jan 2024 10:00:00 +0000", "Subject: x")
    first = parse_mail(mail("Received: one", *headers), ACCOUNT)
    again = parse_mail(mail("Received: two", "X-Copied: yes", *headers), ACCOUNT)
    other = parse_mail(mail(*headers, body="other"), ACCOUNT)
    assert first.message_id == again.message_id != other.message_id


async def test_a_reply_with_another_users_thread_stays_in_the_own_chat() -> None:
    threads = MailThreads(None, "hermes.test")
    root = "<root@example.org>"
    await threads.note(ANN, threads.find(ANN, root, []), root, "A plan", [])
    own_reply = reply_id("k", ANN, root, "hermes.test")
    assert threads.find(ANN, "<2@x.y>", [own_reply]).thread_id == root
    stolen = threads.find("eve@evil.test", "<3@x.y>", [own_reply])
    assert (stolen.thread_id, stolen.record, stolen.is_continued) == (own_reply, None, False)
    assert place_hash(ANN, root) != place_hash("eve@evil.test", root)
