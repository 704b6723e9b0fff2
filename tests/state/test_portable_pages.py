"""Readable exports: they contain all messages and no active content."""

from __future__ import annotations

import html.parser
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_state.portable import html as html_pages
from hermes_state.portable import markdown, readable
from hermes_state.portable.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state import SessionDB

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "[click](javascript:alert(1))",
    "</pre></details><iframe src=//evil.example>",
    "<style>*{display:none}</style><!-- ",
    "&#60;script&#62;",
    "</title><base href=//evil.example>",
)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "nav", "h1", "ol", "li", "a", "article",
    "dl", "dt", "dd", "section", "header", "b", "code", "time", "mark", "div", "details",
    "summary", "pre",
}  # fmt: skip
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "href", "id", "class", "dir"}


class PageParser(html.parser.HTMLParser):
    """Collects tags and text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")


def read(page: str) -> PageParser:
    reader = PageParser()
    reader.feed(page)
    reader.close()
    return reader


def assert_inert(page: str) -> PageParser:
    reader = read(page)
    for tag, attributes in reader.tags:
        assert tag in ALLOWED
        assert attributes.keys() <= ATTRIBUTES
        assert re.fullmatch(r"#c\d+", attributes.get("href") or "#c0")
    assert sum(tag == "style" for tag, _ in reader.tags) == 1
    return reader


def texts(db: SessionDB, form: str, *ids: str, redacted: bool = False, undone: bool = False) -> str:
    reading = readable.ReadOptions(
        db, Redactor() if redacted else readable.NoRedaction(), with_undone=undone
    )

    def conversations() -> Iterator[readable.ReadableConversation]:
        return (each for each in map(reading.conversation, ids) if each is not None)

    if form == "md":
        return "".join(markdown.pages(conversations()))
    return "".join(html_pages.pages(conversations(), [each.title for each in conversations()]))


@pytest.fixture
def hostile(db: SessionDB) -> str:
    session = db.create_session("<s>", "cli", system_prompt=HOSTILE[0], cwd=HOSTILE[2])
    for text in HOSTILE:
        call = {"function": {"name": text, "arguments": text}}
        db.append_message(session, "user", text)
        db.append_message(session, "assistant", text, reasoning=text, tool_calls=[call])
        db.append_message(session, "tool", text, tool_name=text)
    db.append_message(session, f"x{HOSTILE[1]}", HOSTILE[1])
    db.set_session_title(session, HOSTILE[1])
    return session


def test_hostile_content_is_only_text_in_html(db: SessionDB, hostile: str) -> None:
    other = db.create_session("other", "cli")
    page = texts(db, "html", hostile, other)
    reader = assert_inert(page)
    page_text = "".join(reader.texts)
    for text in HOSTILE:
        assert page_text.count(text) >= 4
    policy = next(each for _, each in reader.tags if each.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<script" not in page
    assert not re.search(r"<[^>]*\son\w+=", page)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(st.characters(codec=None)))
def test_any_text_is_escaped(text: str) -> None:
    shown = html_pages.escape_text(text)
    assert not re.search("[<>\"']", shown)
    reader = read(f"<p>{shown}</p>")
    assert [tag for tag, _ in reader.tags] == ["p"]
    readable.to_utf8(shown).decode()


@pytest.mark.engines
def test_both_formats_contain_all_messages(db: SessionDB, session: str) -> None:
    call = {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    db.append_message(session, "user", "What about 世界?")
    db.append_message(session, "assistant", "", reasoning="hmm, let me see", tool_calls=[call])
    db.append_message(session, "tool", "21 degrees\n```", tool_name="weather")
    db.append_message(session, "assistant", [{"type": "text", "text": "It is *warm*."}])
    db.append_message(session, "user", "forget this")
    db.edits.undo(session)
    for form in ("md", "html"):
        page = texts(db, form, session)
        for text in ("世界", "hmm, let me see", "weather", "Oslo", "21 degrees", "It is *warm*."):
            assert text in page
        assert "forget this" not in page
        assert "forget this" in texts(db, form, session, undone=True)
    assert "````\n21 degrees\n```\n````" in texts(db, "md", session)


def test_pages_can_be_redacted(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "password: 'hunter2 hunter2'")
    call = {"function": {"name": "f", "arguments": '{"token": "hunter2 hunter2"}'}}
    db.append_message(session, "assistant", "ok", tool_calls=[call])
    for form in ("md", "html"):
        assert "hunter2" in texts(db, form, session)
        assert "hunter2" not in texts(db, form, session, redacted=True)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a <b>bold</b> claim", "a \\<b>bold\\</b> claim\n"),
        ("code `<b>` stays", "code `<b>` stays\n"),
        ("```\n<b>\n```\n<i>", "```\n<b>\n```\n\\<i>\n"),
        ("~~~\n<b>", "~~~\n<b>\n~~~\n"),
        ("[x](JavaScript:alert(1))", "[x]\\(JavaScript:alert(1))\n"),
        ("[x](https://example.org)", "[x](https://example.org)\n"),
    ],
)
def test_markdown_is_kept_but_neutralized(source: str, expected: str) -> None:
    assert markdown.neutralize(source) == expected


def test_a_title_is_one_heading(db: SessionDB, session: str) -> None:
    db.set_session_title(session, "# not `a` [link](x) <b>")
    first = texts(db, "md", session).splitlines()[0]
    assert first == r"# \# not \`a\` \[link\](x) \<b\>"
