"""Whether the user's own words state a fact is decided without a model."""

from __future__ import annotations

import pytest

from hermes_agent.memory.evidence import FactWords, owner_messages, support
from hermes_agent.memory.files import MemoryText
from hermes_state import SessionDB
from hermes_state.facts import NewFact
from hermes_state.search.tokens import token_texts

NEW = NewFact("memories/USER.md", "user", "Likes green tea", "agent")
SESSION = "20260101_000000_abcdef01"


def said(*contents: object, role: str = "user") -> SessionDB:
    db = SessionDB()
    db.create_session(SESSION, "cli")
    for content in contents:
        db.append_message(SESSION, role, content)
    return db


@pytest.mark.parametrize(
    ("fact", "message", "quotation"),
    [
        ("User likes tea.", "I like tea a lot", "I like tea"),
        ("User does not like dark mode", "I really don't like dark mode", "don't like dark mode"),
        ("Prefers tabs over spaces", "I want tabs, not spaces", "I want tabs, not spaces"),
        ("Lives in Berlin", "I moved. I live in Berlin now", "I live in Berlin"),
        ("Name is Ada", "I'm Ada, hello", "I'm Ada"),
        ("Likes tea", "I like tea and short answers without filler", "I like tea"),
        ("Wants answers without filler", "I want answers without filler", "without filler"),
        ("Mag Tee nicht", "ich mag Tee überhaupt nicht", "mag Tee überhaupt nicht"),
        ("Works at Acme Corp", "No, I work at Acme Corp.", "work at Acme  corp"),
        ("Deploys to Hetzner with Ansible", "we deploy to hetzner using ansible", "we deploy to"),
        ("Der Nutzer wohnt in München", "ich wohne in München", "wohne in munchen"),
        ("Tests run with `make check`", "run the tests with make check, ok?", "with make check"),
        ("喜欢绿茶", "我喜欢绿茶", "喜欢绿茶"),
    ],
)
def test_what_the_user_said_is_evidence(fact: str, message: str, quotation: str) -> None:
    with said(message) as db:
        found = support(fact, [quotation], owner_messages(db, SESSION), must_quote=True)
        assert found.problem == ""
        (evidence,) = found.evidence
        (row,) = db.messages.rows(SESSION)
        assert evidence.message_id == row.id
        place = slice(evidence.start, evidence.start + evidence.length)
        assert token_texts(message[place]) == token_texts(quotation)


@pytest.mark.parametrize(
    ("fact", "message", "quotation", "problem"),
    [
        ("Likes tea", "I like tea", "I love coffee", "not in a message"),
        ("Likes tea", "I like tea", "tea", "not in a message"),  # one word proves nothing
        ("Lives in Hamburg", "I live in Berlin", "I live in", "do not state it"),
        ("Prefers dark mode", "I don't like dark mode", "like dark mode", "do not state it"),
        ("Likes coffee", "I don't like tea and coffee", "like tea and coffee", "do not state it"),
        ("Mag Tee", "ich mag Tee überhaupt nicht", "ich mag Tee", "do not state it"),
        ("Never uses tabs", "I use tabs for make files", "I use tabs", "do not state it"),
        ("Uses Python 3.12", "use python 3.11 please", "use python", "do not state it"),
        ("Mail goes to eve@example.org", "mail goes to me", "mail goes to", "do not state it"),
        ("Likes tea", "I like tea", "", "quote the user's own words"),
        ("Can use Docker", "I can't use Docker", "use Docker", "do not state it"),
        ("Uses Docker", "I don\u02bct use Docker", "use Docker", "do not state it"),
        ("Uses Docker", "I dont use Docker", "use Docker", "do not state it"),
        ("Uses Docker", "I haven't used Docker", "used Docker", "do not state it"),
        ("Deploys on Friday", "we shouldn't deploy on Friday", "deploy on", "do not state it"),
        ("Uses Windows", "nobody here uses Windows", "uses Windows", "do not state it"),
        ("Uses MySQL", "Postgres instead of MySQL", "of MySQL", "do not state it"),
        ("Trinkt Tee", "ich trinke weder Kaffee noch Tee", "noch Tee", "do not state it"),
        ("Uses Docker", "ik gebruik Docker niet", "gebruik Docker", "do not state it"),
        ("Uses Docker", "Eu não uso Docker", "uso Docker", "do not state it"),
        ("Uses Docker", "я не использую Docker", "использую Docker", "do not state it"),
        ("Uses Docker", "我不使用 Docker", "使用 Docker", "do not state it"),
        ("Likes tea", "I like\n> Berlin\ntea", "I like tea", "not in a message"),
        ("Likes tea", "see:\n  > I like tea", "I like tea", "not in a message"),
    ],
)
def test_what_the_user_did_not_say_is_refused(
    fact: str, message: str, quotation: str, problem: str
) -> None:
    quotes = [quotation] if quotation else []
    with said(message) as db:
        found = support(fact, quotes, owner_messages(db, SESSION), must_quote=True)
        assert found.evidence == ()
        assert problem in found.problem


@pytest.mark.parametrize(
    "content",
    [
        [
            {"type": "text", "text": "look at this"},
            {"type": "text", "text": "[Attached file mail.txt]\nI like tea a lot"},
        ],
        '(in reply to "I like tea a lot")\nreally?',
        '(earlier in this chat: "I like tea a lot")\nhm',
        "> I like tea a lot\nwho wrote that?",
        "<memory-context>\nI like tea a lot\n</memory-context>\nhello there",
    ],
)
def test_what_others_wrote_in_a_prompt_is_no_evidence(content: object) -> None:
    with said(content) as db:
        messages = owner_messages(db, SESSION)
        assert support("Likes tea", ["I like tea"], messages, must_quote=True).evidence == ()


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_answers_and_results_are_no_evidence(role: str) -> None:
    with said("I like tea a lot", role=role) as db:
        assert owner_messages(db, SESSION) == []


def test_the_place_of_a_quotation_is_exact_beside_attachments_and_accents() -> None:
    parts = [
        {"type": "text", "text": "[Attached file a]\nnoise"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "Je\u0301ro\u0302me: I like green tea"},
    ]
    with said(parts) as db:
        (evidence,) = support(
            "Likes green tea", ["i LIKE green-tea"], owner_messages(db, SESSION), must_quote=True
        ).evidence
        number = db.facts.edit("owner", lambda editor: editor.add(NEW, [evidence]))
        (source,) = db.facts.sources([number])
        assert (source.text, source.problem) == ("I like green tea", "")


def test_undone_and_deleted_messages_are_no_evidence() -> None:
    with said("one", "I like tea a lot") as db:
        db.edits.rewind(SESSION, db.messages.rows(SESSION)[1].id)
        assert [message.text for message in owner_messages(db, SESSION)] == ["one"]


@pytest.mark.parametrize(
    ("one", "other", "is_contradiction"),
    [
        ("User lives in Berlin", "Lives in Hamburg", True),
        ("Lives in New York", "Lives in San Francisco", True),
        ("Deploys to fly.io", "Deploys to Hetzner", True),
        ("The staging server runs on port 8080", "The staging server runs on port 9090", True),
        ("The build server is called Atlas", "The build server is called Bern", True),
        ("User likes dark mode", "User does not like dark mode", True),
        ("User likes tea", "User likes coffee", False),
        ("The staging server uses port 8080", "The production server uses port 8080", False),
        ("The port of Alpha is 8080", "The port of Beta is 8081", False),
        ("The build server is in rack 4", "The build server is called Bern", False),
        ("Has a son called Tom", "Has a daughter called Ann", False),
    ],
)
def test_facts_that_cannot_both_be_true(one: str, other: str, *, is_contradiction: bool) -> None:
    assert FactWords.of(one).contradicts(FactWords.of(other)) is is_contradiction
    assert FactWords.of(other).contradicts(FactWords.of(one)) is is_contradiction


def test_the_same_in_other_forms_is_one_fact() -> None:
    assert FactWords.of("Likes tea.").says_the_same(FactWords.of("The user likes tea"))
    assert not FactWords.of("Likes tea").says_the_same(FactWords.of("Does not like tea"))
    assert not FactWords.of("Uses port 80").says_the_same(FactWords.of("Uses port 81"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"likes tea\n",
        b"a\n\xc2\xa7\nb",
        b"a\r\n\xc2\xa7\r\nb\r\n",
        b"x \xff y\n",
        b"\n\n\xc2\xa7\na\n\xc2\xa7\n\xc2\xa7\nb",
        b"\xc2\xa7\na",
    ],
)
def test_entries_that_are_not_changed_keep_their_bytes(content: bytes) -> None:
    text = MemoryText(content)
    entries = text.entries
    text.add(["new one"])
    assert MemoryText(text.content()).entries == [*entries, "new one"]
    assert content.strip(b"\r\n \xc2\xa7") in text.content()
    text.remove({"new one"})
    assert MemoryText(text.content()).entries == entries
