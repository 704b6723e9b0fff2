"""Names of the session store and of routes that plugins of hermes-agent use."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

import hermes_state
from gateway.config import GatewayConfig, Platform, PlatformConfig, load_gateway_config
from gateway.inbound import prompt_format
from gateway.inbound.prompt_format import format_message
from gateway.platforms.base import MessageEvent
from gateway.session import SessionSource, build_session_context, build_session_context_prompt
from hermes_agent.providers.openai_compatible import OpenAICompatible
from support.agent_conversation import open_conversation, tool_call_step
from support.gateways import open_routes

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.session import SessionStore
    from hermes_state import SessionDB
    from support.command_line import Hermes

ADA = SessionSource(Platform.TELEGRAM, "42", user_id="7", user_name="Ada")


@pytest.fixture
def routes(db: SessionDB, tmp_path: Path) -> SessionStore:
    return open_routes(db, tmp_path)


def test_transcripts_by_session_id(routes: SessionStore) -> None:
    entry = routes.get_or_create_session(ADA)
    assert routes.has_any_sessions()
    routes.append_to_transcript(entry.session_id, {"role": "user", "content": "one"})
    routes.append_to_transcript(entry.session_id, {"role": "assistant", "content": "two"})
    routes.append_to_transcript(entry.session_id, {"role": "user", "content": "x"}, skip_db=True)
    texts = [message["content"] for message in routes.load_transcript(entry.session_id)]
    assert texts == ["one", "two"]
    routes.rewrite_transcript(entry.session_id, [{"role": "user", "content": "other"}])
    texts = [message["content"] for message in routes.load_transcript(entry.session_id)]
    assert texts == ["other"]
    found = routes.lookup_by_session_id(entry.session_id)
    assert found is not None
    assert found.session_key == entry.session_key
    assert routes.lookup_by_session_id("nothing") is None


def test_a_session_is_rewound_to_before_a_message(routes: SessionStore, db: SessionDB) -> None:
    entry = routes.get_or_create_session(ADA)
    for text in ("one", "two"):
        routes.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    last = db.get_messages(entry.session_id)[-1]["id"]
    routes.rewind_session(entry.session_id, last)
    assert [item["content"] for item in routes.load_transcript(entry.session_id)] == ["one"]


def test_marks_of_routes(routes: SessionStore) -> None:
    key = routes.get_or_create_session(ADA).session_key
    assert routes.mark_resume_pending(key, "restart")
    entry = routes.get(key)
    assert entry is not None
    assert (entry.resume_pending, entry.resume_reason) == (True, "restart")
    assert routes.clear_resume_pending(key)
    assert not entry.resume_pending
    assert not routes.mark_resume_pending("nothing")
    assert routes.suspend_recently_active(120) == 1
    assert routes.suspend_recently_active(120) == 0


def test_the_context_of_a_session(routes: SessionStore) -> None:
    config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(enabled=True)})
    entry = routes.get_or_create_session(ADA)
    context = build_session_context(ADA, config, entry)
    assert (context.session_id, context.connected_platforms) == (entry.session_id, ["telegram"])
    assert '"Ada"' in build_session_context_prompt(context)
    assert build_session_context(ADA, config).session_key == ""
    assert ADA.description == "telegram: direct chat with Ada"
    group = SessionSource(Platform.SLACK, "c", chat_name="team", chat_type="group", thread_id="9")
    assert group.description == "slack: group team, thread 9"
    assert load_gateway_config().platforms is not None


def test_the_context_of_a_channel_reaches_the_model_and_survives_a_restart() -> None:
    event = MessageEvent("hi", source=ADA, message_id="1", channel_context="Bob: hello\nAda: hey")
    again = prompt_format.decode(prompt_format.encode(event))
    assert again.channel_context == event.channel_context
    text = format_message(again, is_shared=False)
    assert text == '(earlier in this chat: "Bob: hello Ada: hey")\nhi'


def test_the_schema_of_hermes_agent_makes_its_tables() -> None:
    assert hermes_state.SCHEMA_VERSION == 26  # type: ignore[attr-defined]
    database = sqlite3.connect(":memory:")
    database.executescript(hermes_state.SCHEMA_SQL)  # type: ignore[attr-defined]
    names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    assert {"sessions", "messages", "schema_version"} <= names


def test_the_runs_of_a_job_are_listed(db: SessionDB) -> None:
    for name in ("cron_daily_1", "cron_daily_2", "cron_weekly_1"):
        db.create_session(name, "cron")
        db.append_message(name, "user", "run")
    assert {row["id"] for row in db.list_cron_job_runs("daily")} == {"cron_daily_1", "cron_daily_2"}


def test_a_method_for_topics_is_missing_with_the_reason(db: SessionDB) -> None:
    name = "get_telegram_topic_binding"
    assert not hasattr(db, name)
    with pytest.raises(AttributeError, match="each topic is a place of its own"):
        getattr(db, name)
    with pytest.raises(AttributeError, match=r"SessionDB has no nothing$"):
        getattr(db, "nothing")  # noqa: B009 - missing for type checkers, too


def test_a_lock_of_no_session_is_not_acquired(db: SessionDB) -> None:
    assert not db.try_acquire_compression_lock("", "holder")
    assert db.try_acquire_compression_lock("s1", "holder")


def test_a_session_in_the_trash_says_so(db: SessionDB) -> None:
    db.create_session("old", "cli")
    db.append_message("old", "user", "hello")
    assert "trashed_at" not in (db.get_session("old") or {})
    db.delete_session("old")
    row = db.get_session("old")
    assert row is not None
    assert row["trashed_at"] > 0


def test_a_session_that_hermes_agent_has_hidden_is_not_listed(db: SessionDB) -> None:
    for name in ("shown", "hidden"):
        db.create_session(name, "cli")
        db.append_message(name, "user", "hello")
    db.set_session_hidden("hidden")
    assert [row["id"] for row in db.list_sessions_rich()] == ["shown"]
    assert [row["id"] for row in db.search_sessions_by_id("hidden")] == ["hidden"]


def test_statistics_count_conversations_as_lists_do(db: SessionDB, hermes: Hermes) -> None:
    db.create_session("first", "cli")
    db.append_message("first", "user", "hello")
    db.create_session("child", "subagent", parent_session_id="first")
    db.append_message("child", "user", "task")
    report = json.loads(hermes("sessions", "stats", "--json").out)
    listed = json.loads(hermes("sessions", "list", "--json").out)
    assert (report["conversations"], report["sessions"]) == (len(listed), 2)


def test_memory_blocks_of_old_answers_are_neither_shown_nor_sent(
    db: SessionDB, hermes: Hermes
) -> None:
    db.create_session("old", "cli")
    db.append_message("old", "user", "hello")
    db.append_message("old", "assistant", "<memory-context>\nsecret\n</memory-context>\nHi there.")
    (_, answer) = db.get_messages_as_conversation("old")
    assert answer["content"] == "Hi there."
    shown = hermes("sessions", "show", "old").out
    assert "Hi there." in shown
    assert "memory-context" not in shown


def tool_call_messages(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in requests[-1]["messages"] if item.get("tool_calls")]


def test_the_reasoning_of_tool_calls_is_sent_back(hermes_home: Path, tmp_path: Path) -> None:
    del hermes_home
    step = {"think": "I look.", **tool_call_step("terminal", {"command": "true"})}
    with open_conversation(tmp_path, step, {"say": "One."}) as talk:
        talk.results()
        (sent,) = tool_call_messages(talk.server.requests)
        messages = talk.bundle.agent.conversation_store.history()
    assert sent["reasoning_content"] == "I look."
    assert messages[1]["reasoning_content"] == "I look."


def test_an_empty_reasoning_is_kept_and_strict_servers_get_none(db: SessionDB) -> None:
    db.create_session("one", "cli")
    calls = [{"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}]
    db.append_message("one", "assistant", "", tool_calls=calls, reasoning_content="")
    messages = db.get_messages_as_conversation("one")
    assert messages[0]["reasoning_content"] == ""
    for url, expected in (("https://api.deepseek.com/v1", ""), ("https://api.openai.com/v1", None)):
        provider = OpenAICompatible("m", url, window=1000)
        (encoded,) = provider._encoded.of(messages, provider.rules)
        assert json.loads(encoded).get("reasoning_content") == expected
        provider.close()
