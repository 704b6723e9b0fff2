"""Legacy session keys: formatting, and all places that a key may mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.sources import (
    COLON_FREE_IDS,
    IdPatterns,
    format_legacy,
    parse_legacy,
)
from hermes_core.errors import KeyFormatError
from hermes_core.session_keys import SessionKey, place


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"chat_type": "dm", "chat_id": "1"}, "dm:1"),
        ({"chat_type": "dm", "chat_id": "1", "user_id": "u"}, "dm:1"),
        ({"chat_type": "dm", "chat_id": "1", "thread_id": "9"}, "dm:1:9"),
        ({"chat_type": "dm", "user_id": "u"}, "dm:u"),
        ({"chat_type": "dm", "user_id": "u", "thread_id": "9"}, "dm:u:9"),
        ({"chat_type": "dm"}, "dm"),
        ({"chat_type": "dm", "thread_id": "9"}, "dm:9"),
        ({"chat_type": "group", "chat_id": "g", "user_id": "u"}, "group:g:u"),
        ({"chat_type": "group", "chat_id": "g", "user_id": "u", "user_id_alt": "a"}, "group:g:a"),
        (
            {
                "chat_type": "group",
                "chat_id": "g",
                "user_id": "u",
                "group_sessions_per_user": False,
            },
            "group:g",
        ),
        ({"chat_type": "group", "chat_id": "g", "thread_id": "t", "user_id": "u"}, "group:g:t"),
        (
            {
                "chat_type": "group",
                "chat_id": "g",
                "thread_id": "t",
                "user_id": "u",
                "thread_sessions_per_user": True,
            },
            "group:g:t:u",
        ),
        (
            {
                "chat_type": "group",
                "chat_id": "g",
                "thread_id": "t",
                "user_id": "u",
                "group_sessions_per_user": False,
                "thread_sessions_per_user": True,
            },
            "group:g:t",
        ),
    ],
)
def test_a_place_is_written_as_hermes_agent_writes_it(source, text):
    assert format_legacy(place("telegram", **source)) == f"agent:main:telegram:{text}"


def test_the_profile_is_the_namespace():
    key = place("telegram", "dm", namespace="coder", chat_id="1")
    assert format_legacy(key) == "agent:coder:telegram:dm:1"


def test_a_whatsapp_number_is_written_without_its_server():
    key = place("whatsapp", "dm", chat_id="15551234567@s.whatsapp.net")
    assert format_legacy(key) == "agent:main:whatsapp:dm:15551234567"


def test_a_direct_chat_is_unambiguous():
    reading = parse_legacy("agent:main:telegram:dm:1:9")
    assert reading.certain == SessionKey("main", "telegram", "dm", "1", "9")


def test_a_key_without_ids_is_unambiguous():
    assert parse_legacy("agent:main:local:dm").certain == SessionKey("main", "local", "dm")


def test_a_thread_or_user_is_reported_as_ambiguous_with_both_places():
    reading = parse_legacy("agent:main:telegram:group:g:9")
    assert reading.is_ambiguous
    assert reading.certain is None
    assert set(reading.places) == {
        SessionKey("main", "telegram", "group", "g", thread_id="9"),
        SessionKey("main", "telegram", "group", "g", user_id="9"),
    }


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("!abc:server.org", {"chat_id": "!abc:server.org"}),
        ("!abc:server.org:8448", {"chat_id": "!abc:server.org:8448"}),
        ("!abc:[::1]:8448", {"chat_id": "!abc:[::1]:8448"}),
        ("!abc", {"chat_id": "!abc"}),
        ("!a:s.org:$ev", {"chat_id": "!a:s.org", "thread_id": "$ev"}),
        ("!a:s.org:$ev:s.org", {"chat_id": "!a:s.org", "thread_id": "$ev:s.org"}),
        ("!a:s.org:@u:t.org", {"chat_id": "!a:s.org", "user_id": "@u:t.org"}),
        (
            "!a:s.org:$ev:@u:t.org:99",
            {"chat_id": "!a:s.org", "thread_id": "$ev", "user_id": "@u:t.org:99"},
        ),
    ],
)
def test_matrix_ids_with_colons_are_unambiguous(ids, expected):
    reading = parse_legacy(f"agent:main:matrix:group:{ids}")
    assert reading.certain == SessionKey("main", "matrix", "group", **expected)


def test_google_chat_ids_with_slashes_are_read():
    reading = parse_legacy("agent:main:google_chat:dm:spaces/AAA:spaces/AAA/threads/B")
    assert reading.certain == SessionKey(
        "main", "google_chat", "dm", "spaces/AAA", "spaces/AAA/threads/B"
    )


def test_on_an_unknown_platform_every_split_is_considered():
    reading = parse_legacy("agent:main:teams:dm:19:x@thread")
    assert {(p.chat_id, p.thread_id) for p in reading.places} == {
        ("19:x@thread", None),
        ("19", "x@thread"),
    }


def test_the_caller_can_pass_id_patterns():
    patterns = IdPatterns(chat=r"19:[^:]+", thread=r"\d+", user=r"u-[^:]+")
    reading = parse_legacy("agent:main:teams:group:19:x:u-1", patterns)
    assert reading.certain == SessionKey("main", "teams", "group", "19:x", user_id="u-1")


def test_places_without_a_chat_are_considered_only_on_request():
    text = "agent:main:telegram:dm:9"
    assert not parse_legacy(text).is_ambiguous
    places = parse_legacy(text, may_lack_chat=True).places
    assert SessionKey("main", "telegram", "dm", thread_id="9") in places
    assert SessionKey("main", "telegram", "dm", user_id="9") in places


def test_a_matrix_chat_without_a_chat_id_is_read_because_nothing_else_matches():
    reading = parse_legacy("agent:main:matrix:dm:@u:s.org")
    assert reading.certain == SessionKey("main", "matrix", "dm", user_id="@u:s.org")


@pytest.mark.parametrize(
    "text",
    ["", "agent", "agent:main:telegram", "agent::telegram:dm:1", "hk1:main:telegram:dm:c=1",
     "agent:main:telegram:dm:1:2:3", "agent:main:telegram:dm:", "agent:main:matrix:group:what"],
)  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises(KeyFormatError):
        parse_legacy(text)


IDS = st.text(min_size=1, max_size=8)
COLON_FREE_TEXTS = st.text(st.characters(exclude_characters=":"), min_size=1, max_size=8)


def places(ids):
    maybe = st.none() | ids
    return st.builds(
        place,
        st.sampled_from(["telegram", "teams"]),
        st.sampled_from(["dm", "group", "channel"]),
        chat_id=maybe,
        thread_id=maybe,
        user_id=maybe,
        group_sessions_per_user=st.booleans(),
        thread_sessions_per_user=st.booleans(),
    )


@given(places(IDS))
def test_the_original_place_is_always_among_the_results(key):
    assert key in parse_legacy(format_legacy(key), IdPatterns(), may_lack_chat=True).places


@given(places(COLON_FREE_TEXTS))
def test_ids_without_colons_give_at_most_four_places(key):
    reading = parse_legacy(format_legacy(key), COLON_FREE_IDS, may_lack_chat=True)
    assert key in reading.places
    assert len(reading.places) <= 4


@given(places(IDS))
def test_every_result_has_the_same_legacy_key(key):
    text = format_legacy(key)
    reading = parse_legacy(text, IdPatterns(), may_lack_chat=True)
    assert {format_legacy(match) for match in reading.places} == {text}
    assert len(set(reading.places)) == len(reading.places)
