"""Redaction: every secret pattern, in plain text and in nested JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_state.messages.rows import JSON_PREFIX, decode_content
from hermes_state.portable.redaction import SECRET_PATTERNS, Redactor, redact
from state.portable_histories import export
from support.scaling import growth

if TYPE_CHECKING:
    from hermes_state import SessionDB

KEY = "sk-ant-api03-abcdefghij0123456789"


@pytest.mark.parametrize("secret", SECRET_PATTERNS, ids=lambda secret: secret.kind)
def test_the_example_is_redacted_and_the_counter_example_is_not(secret) -> None:
    redacted = redact(secret.example)
    assert f"[redacted:{secret.kind}]" in redacted
    assert redact(redacted) == redacted
    assert redact(secret.counter_example) == secret.counter_example


@pytest.mark.parametrize("secret", SECRET_PATTERNS, ids=lambda secret: secret.kind)
def test_the_example_is_redacted_within_text_and_json(secret) -> None:
    text = f"before\n{secret.example}\nafter"
    redacted = redact(text)
    assert redacted != text
    assert redacted.startswith("before\n")
    wrapped = json.dumps({"output": text, "more": [json.dumps({"inner": text})]})
    for form in (wrapped, JSON_PREFIX + wrapped):
        stored = Redactor().stored(form)
        assert "[redacted:" in stored
        json.loads(stored.removeprefix(JSON_PREFIX))
        inner = json.loads(json.loads(stored.removeprefix(JSON_PREFIX))["more"][0])
        assert inner == {"inner": redacted}


pieces = st.one_of(
    st.sampled_from(
        [each for secret in SECRET_PATTERNS for each in (secret.example, secret.example[:9])]
    ),
    st.text(max_size=6),
    st.sampled_from(["=", ": ", " ", "\n", "'", '"', "://", "@", "token", "PASSWORD", "&key="]),
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_redaction_is_idempotent(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
def test_values_without_secrets_are_unchanged(value: object) -> None:
    if "[redacted:" not in json.dumps(Redactor().value(value)):
        assert Redactor().value(value) == value


@pytest.mark.parametrize(
    ("before", "unit", "count", "after"),
    [
        ("", "A", 200_000, "="), ("://", ":", 100_000, ""), ("", "a.b", 60_000, ""),
        ("", "M.M", 60_000, ""), ("", "eyJ", 60_000, ""), ("", "curl -u ", 20_000, ""),
        ("", "bearer ", 40_000, ""), ("", "token: ", 40_000, ""), ("", "password: '", 20_000, ""),
        ("", "A_SECRET='", 20_000, ""), ("sk-", "a", 100_000, ""),
        ("", "-----BEGIN PRIVATE KEY-----", 5_000, ""), ("", "SECRET", 30_000, "="),
        ("token", " ", 100_000, ""), ("", "[", 50_000, ""), ("", '{"a":', 50_000, ""),
    ],
)  # fmt: skip
def test_redaction_time_grows_linearly(before: str, unit: str, count: int, after: str) -> None:
    assert growth(lambda size: Redactor().text(before + unit * size + after), count) < 2.5


def test_values_with_secret_names_are_redacted() -> None:
    value = {
        "db_password": "correct horse", "token": "abcd", "Authorization": "Custom zzz",
        "password": "$PASSWORD", "api-key": "<your key>", "tokens": "many words", "x": "y",
    }  # fmt: skip
    redacted = Redactor().value(value)
    assert {name for name in value if redacted[name] != value[name]} == {
        "db_password", "token", "Authorization",
    }  # fmt: skip


def test_a_secret_used_as_a_name_is_redacted() -> None:
    assert Redactor().value({KEY: {"uses": 3}}) == {"[redacted:api-key]": {"uses": 3}}


def test_an_export_redacts_secrets_in_all_columns(db: SessionDB) -> None:
    session = db.create_session(
        "s", "cli", system_prompt=f"use {KEY}", model_config={"api_key": "hunter2hunter2"}
    )
    arguments = json.dumps({"header": f"Bearer {KEY}", "password": "pass word"})
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    db.append_message(session, "user", [{"type": "text", "text": f"my key is {KEY}"}])
    db.append_message(session, "assistant", None, tool_calls=[call], reasoning=f"{KEY}!",
                      reasoning_details=[{"text": KEY}], codex_message_items=[KEY])  # fmt: skip
    db.append_message(session, "tool", json.dumps({"out": "DB=postgres://u:hunter3@h/db"}))
    db.set_session_title(session, f"about {KEY}"[:90])
    plain, redacted = export(db).decode(), export(db, is_redacted=True).decode()
    for secret in (KEY, "hunter2", "hunter3", "pass word"):
        assert secret in plain
        assert secret not in redacted
    record = json.loads(redacted.splitlines()[1])
    assert record["session"]["title"] == "about [redacted:api-key]"
    first = decode_content(record["messages"][0]["content"])
    assert first == [{"type": "text", "text": "my key is [redacted:api-key]"}]
    arguments = json.loads(record["messages"][1]["tool_calls"])[0]["function"]["arguments"]
    assert json.loads(arguments)["password"] == "[redacted:named-value]"
    assert record["messages"][2]["content"] == (
        '{"out": "DB=postgres://u:[redacted:url-password]@h/db"}'
    )
