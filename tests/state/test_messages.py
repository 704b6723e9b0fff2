"""Messages are stored once, in order and unchanged."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import SessionNotFoundError
from state.conftest import FILES_ONLY

if TYPE_CHECKING:
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB

CALLS = [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}]


@pytest.mark.engines
def test_a_message_is_read_back_unchanged(db: SessionDB, session: str) -> None:
    row_id = db.append_message(
        session, "assistant", "hello", tool_calls=CALLS, finish_reason="tool_calls",
        reasoning="because", reasoning_details=[{"a": 1}], token_count=7,
    )  # fmt: skip
    message = db.get_messages(session)[0]
    assert message["id"] == row_id
    assert message["content"] == "hello"
    assert message["tool_calls"] == CALLS
    assert json.loads(message["reasoning_details"]) == [{"a": 1}]
    assert message["reasoning"] == "because"
    assert message["token_count"] == 7


@pytest.mark.parametrize(
    "content",
    [
        "",
        "plain",
        "NUL \x00 inside",
        "\x00json:looks encoded but is text",
        "lone surrogate \ud83d here",
        [{"type": "text", "text": "中文"}, {"type": "image_url", "image_url": {"url": "data:"}}],
        {"type": "text", "text": "x"},
        [],
        None,
    ],
)
def test_any_content_is_read_back_unchanged(db: SessionDB, session: str, content: object) -> None:
    db.append_message(session, "user", content)
    db.append_message(session, "assistant", "after")
    assert [m["content"] for m in db.get_messages(session)] == [content, "after"]


def test_fifty_megabytes_are_stored(db: SessionDB, session: str) -> None:
    content = "x" * 50_000_000
    db.append_message(session, "tool", content, tool_name="shell")
    assert db.get_messages(session)[0]["content"] == content


@FILES_ONLY
def test_multimodal_content_is_encoded_as_other_programs_expect(
    db: SessionDB, session: str
) -> None:
    content = [{"type": "text", "text": "é"}]
    row_id = db.append_message(session, "user", content)
    stored = db.engine.read(
        lambda r: r.value("SELECT content FROM messages WHERE id = ?", (row_id,))
    )
    assert stored == "\x00json:" + json.dumps(content)


def test_the_same_identity_is_stored_once(db: SessionDB, session: str) -> None:
    uid = db.ids.new()
    first = db.append_message(session, "user", "hello", uid=uid)
    again = db.append_message(session, "user", "hello", uid=uid)
    assert first == again
    assert len(db.get_messages(session)) == 1
    assert db.get_session(session)["message_count"] == 1


def test_identity_holds_after_reopening(open_store, session: str) -> None:
    store = open_store()
    uid = store.ids.new()
    first = store.append_message(session, "user", "hello", uid=uid)
    store.close()
    assert open_store().append_message(session, "user", "hello", uid=uid) == first


@pytest.mark.engines
def test_eight_threads_saving_the_same_messages_store_each_once(
    db: SessionDB, session: str
) -> None:
    uids = [db.ids.new() for _ in range(50)]

    def save_all() -> None:
        for uid in uids:
            db.append_message(session, "user", uid, uid=uid)

    threads = [threading.Thread(target=save_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(m["content"] for m in db.get_messages(session)) == sorted(uids)


def test_a_loaded_conversation_saved_again_adds_nothing(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "hello")
    db.append_message(session, "assistant", "hi", tool_calls=CALLS)
    conversation = db.get_messages_as_conversation(session)
    copies = [dict(message) for message in conversation]
    ids = db.append_messages_batch(session, copies)
    assert ids == [m["id"] for m in db.get_messages(session)]


def test_a_message_of_another_session_is_stored_once_here_too(db: SessionDB, session: str) -> None:
    other = db.create_session("other", "cli")
    uid = db.ids.new()
    db.append_message(session, "user", "hello", uid=uid)
    first = db.append_message(other, "user", "hello", uid=uid)
    assert db.append_message(other, "user", "hello", uid=uid) == first
    assert len(db.get_messages(other)) == 1


def test_a_batch_is_stored_atomically(db: SessionDB, session: str) -> None:
    with pytest.raises(SessionNotFoundError):
        db.append_messages_batch("nowhere", [{"role": "user", "content": "x"}])
    assert db.message_count() == 0


def test_messages_are_ordered_by_storage_not_by_timestamp(
    db: SessionDB, session: str, clock: ManualClock
) -> None:
    db.append_message(session, "user", "first")
    clock.jump(-86_400)
    db.append_message(session, "assistant", "second")
    assert [m["content"] for m in db.get_messages(session)] == ["first", "second"]
    assert [m["content"] for m in db.get_messages(session, limit=1, latest=True)] == ["second"]


@pytest.mark.engines
def test_counters_are_updated_with_the_messages(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "run it")
    db.append_message(session, "assistant", "", tool_calls=CALLS * 3)
    row = db.get_session(session)
    assert row["message_count"] == 2
    assert row["tool_call_count"] == 3


def test_iteration_returns_every_row_of_a_long_session(db: SessionDB, session: str) -> None:
    texts = [f"message {number}" for number in range(1203)]
    db.append_messages_batch(session, [{"role": "user", "content": t} for t in texts])
    assert [m.content for m in db.messages.iter_messages(session)] == texts
    assert [m["content"] for m in db.get_messages(session, limit=2, offset=5)] == texts[5:7]
    third = db.get_messages(session, limit=3)[-1]["id"]
    assert [m.content for m in db.messages.shown(session, after_id=third)] == texts[3:]


def test_the_messages_around_a_message_are_returned(db: SessionDB, session: str) -> None:
    ids = [db.append_message(session, "user", str(number)) for number in range(10)]
    view = db.get_anchored_view(session, ids[5], window=1, bookend=1)
    assert [m["content"] for m in view["window"]] == ["4", "5", "6"]
    assert (view["messages_before"], view["messages_after"]) == (1, 1)
    assert [m["content"] for m in view["bookend_start"] + view["bookend_end"]] == ["0", "9"]


@pytest.mark.engines
def test_a_streamed_reply_becomes_one_message(db: SessionDB, session: str) -> None:
    draft = db.messages.draft(session)
    for piece in ("Hel", "lo ", "there"):
        draft.write(piece)
    draft.write("thinking", channel="reasoning")
    draft.flush()
    row_id = draft.finish()
    message = db.get_messages(session)[0]
    assert message["id"] == row_id
    assert message["content"] == "Hello there"
    assert message["reasoning"] == "thinking"
    assert db.engine.read(lambda r: r.rows("SELECT * FROM hermes_draft")) == []


def test_a_finished_reply_finished_again_is_the_same_row(db: SessionDB, session: str) -> None:
    draft = db.messages.draft(session)
    draft.write("hello")
    assert draft.finish() == draft.finish()
    assert len(db.get_messages(session)) == 1


@pytest.mark.engines
def test_search_finds_words_phrases_and_any_writing_system(db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "The quick brown fox")
    db.append_message(session, "assistant", "quick thinking")
    db.append_message(session, "user", [{"type": "text", "text": "这张图片里有什么"}])
    hits = db.search_messages("quick")
    assert [hit["role"] for hit in hits] == ["assistant", "user"]
    assert ">>>quick<<<" in hits[0]["snippet"]
    assert len(db.search_messages('"quick brown"')) == 1
    assert len(db.search_messages("图片")) == 1
    assert db.search_messages("quick", role_filter=["user"])[0]["role"] == "user"
    assert db.search_messages("quick", sort="oldest")[0]["role"] == "user"
    assert db.search_messages("quick", exclude_sources=["cli"]) == []
    assert db.search_messages("  ") == []
