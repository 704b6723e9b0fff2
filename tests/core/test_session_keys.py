"""Session keys are a one-to-one mapping of places."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_core.errors import KeyFormatError
from hermes_core.session_keys import SessionKey, place

ANY_TEXT = st.text(max_size=12) | st.text(":/%=.\\ ctu", max_size=8) | st.just("\ud800")
OPTIONAL = st.none() | ANY_TEXT
KEYS = st.builds(SessionKey, ANY_TEXT, ANY_TEXT, ANY_TEXT, OPTIONAL, OPTIONAL, OPTIONAL)


@given(KEYS)
@example(SessionKey("main", "matrix", "group", "!abc:server.org", "$e:server.org", "@u:server.org"))
@example(SessionKey("main", "google_chat", "group", "spaces/AAA/threads/..", None, "users/%2F"))
@example(SessionKey("", "", "", "", "", ""))
def test_every_key_is_parsed_from_its_own_text(key):
    assert SessionKey.parse(key.encode()) == key


@given(KEYS, KEYS)
def test_different_places_never_share_a_key(first, second):
    assert (first.encode() == second.encode()) == (first == second)


@given(ANY_TEXT, ANY_TEXT)
def test_a_thread_and_a_user_with_the_same_id_are_different_places(chat, same):
    thread = SessionKey("main", "telegram", "group", chat, thread_id=same)
    user = SessionKey("main", "telegram", "group", chat, user_id=same)
    assert thread.encode() != user.encode()


@given(KEYS)
def test_a_key_is_plain_ascii_and_never_looks_like_a_path(key):
    text = key.encode()
    assert text.isascii()
    assert text.isprintable()
    assert not any(part in text for part in ("/", "\\", "..", " ", "\0"))
    assert text.startswith("hk1:")


@given(st.text(max_size=40) | st.text("hk1:%=ctu2fF.", max_size=30).map("hk1:a:b:c".__add__))
def test_any_text_is_either_refused_or_canonical(text):
    try:
        key = SessionKey.parse(text)
    except KeyFormatError:
        return
    assert key.encode() == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hk1",
        "hk1:a:b",
        "hk2:a:b:c",
        "agent:main:telegram:dm:1",
        "hk1:a:b:c:1",
        "hk1:a:b:c:x=1",
        "hk1:a:b:c:c=1:c=2",
        "hk1:a:b:c:u=1:t=2",
        "hk1:a:b:c:c=%3a",
        "hk1:a:b:c:c=%41",
        "hk1:a:b:c:c=%4",
        "hk1:a:b:c:c=%zz",
        "hk1:a:b:c:c=%FF",
        "hk1:a:b:c:c=é",
        "hk1:a:b:c:c= 1",
    ],
)
def test_other_spellings_are_refused(text):
    with pytest.raises(KeyFormatError):
        SessionKey.parse(text)


def test_a_missing_part_differs_from_an_empty_one():
    assert SessionKey("m", "p", "dm").encode() != SessionKey("m", "p", "dm", "").encode()


def test_the_documented_examples_hold():
    assert place("telegram", "dm", chat_id="1").encode() == "hk1:main:telegram:dm:c=1"
    assert (
        place("matrix", "group", chat_id="!abc:server.org").encode()
        == "hk1:main:matrix:group:c=!abc%3Aserver.org"
    )
    assert (
        place("google_chat", "group", chat_id="spaces/AAA").encode()
        == "hk1:main:google_chat:group:c=spaces%2FAAA"
    )


def test_a_shared_group_is_the_same_place_for_all_users():
    first = place("slack", "group", chat_id="g", user_id="a", group_sessions_per_user=False)
    second = place("slack", "group", chat_id="g", user_id="b", group_sessions_per_user=False)
    assert first == second


def test_a_direct_chat_is_the_same_place_for_all_users():
    assert place("slack", "dm", chat_id="1", user_id="a") == place("slack", "dm", chat_id="1")


def test_empty_ids_count_as_missing():
    assert place("slack", "group", chat_id="", thread_id="", user_id="") == place("slack", "group")


@pytest.mark.parametrize(
    "spelling", ["15551234567@s.whatsapp.net", "15551234567:3@lid", "+15551234567"]
)
def test_one_person_on_whatsapp_is_one_place(spelling):
    assert place("whatsapp", "dm", chat_id=spelling).chat_id == "15551234567"


def test_an_unknown_whatsapp_id_is_not_changed():
    assert place("whatsapp", "dm", chat_id="@broadcast").chat_id == "@broadcast"
