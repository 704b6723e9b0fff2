"""Requests of API clients in the store: which chat a transcript continues, and retries."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state.delivery.api_requests import NewApiRequest, RequestPlan

if TYPE_CHECKING:
    from hermes_state import SessionDB


def new(token: str, hashes: tuple[str, ...] = (), **fields: Any) -> NewApiRequest:
    known = {"scope": "", "digest": f"digest {token}", "asked": f"asked {token}", **fields}
    return NewApiRequest(
        token, f"message {token}", new_chat=f"chat {token}", hashes=hashes, **known
    )


def answered_chat(db: SessionDB) -> int:
    """A chat with an answer whose transcript has the hash `h`; the row of the answer."""
    db.create_session("s1", "api_server")
    db.append_message("s1", "user", "hi", uid="inbox:7")
    answer = db.append_message("s1", "assistant", "Hello.")
    db.api_requests.open(new("a"))
    db.api_requests.settle("a", ["h", "streamed h"], "s1", 7)
    return answer


@pytest.mark.engines
@pytest.mark.parametrize("digest", ["h", "streamed h"])
def test_a_transcript_continues_its_chat_once(db: SessionDB, digest: str) -> None:
    answer = answered_chat(db)
    first = db.api_requests.open(new("b", ("unknown", digest)))
    again = db.api_requests.open(new("b", ("unknown", digest)))
    second = db.api_requests.open(new("c", (digest,)))
    assert first == again == RequestPlan("chat a", ("s1", answer), digest)
    assert second == RequestPlan("chat c", ("s1", answer), digest)


@pytest.mark.engines
def test_of_several_threads_one_continues_the_chat(db: SessionDB) -> None:
    answered_chat(db)
    plans: list[RequestPlan] = []
    requests = [new(f"t{number}", ("h",)) for number in range(8)]
    threads = [
        threading.Thread(target=lambda item=item: plans.append(db.api_requests.open(item)))
        for item in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [plan.chat_id for plan in plans].count("chat a") == 1
    assert len({plan.chat_id for plan in plans}) == 8


@pytest.mark.engines
def test_a_request_after_a_failed_one_takes_its_place(db: SessionDB) -> None:
    answered_chat(db)
    db.api_requests.open(new("b", ("h",)))
    db.api_requests.settle("b", [], is_failed=True)
    assert db.api_requests.open(new("c", ("h",))).chat_id == "chat a"
    assert db.api_requests.open(new("d", ("h",))).chat_id == "chat d"


@pytest.mark.engines
def test_another_scope_and_a_deleted_conversation_are_not_continued(db: SessionDB) -> None:
    answered_chat(db)
    assert db.api_requests.open(new("b", ("h",), scope="ada")) == RequestPlan("chat b")
    db.delete_session("s1")
    assert db.api_requests.open(new("c", ("h",))) == RequestPlan("chat c")


@pytest.mark.engines
def test_a_retry_joins_an_open_or_recent_request_once(db: SessionDB) -> None:
    for token in ("a", "b"):
        db.api_requests.open(new(token, digest="same", chat_id="chat"))
    joined = [db.api_requests.join("", "same", 1, 60, 60) for _ in range(3)]
    assert joined == ["message a", "message b", None]
    assert db.api_requests.join("", "same", 2, 60, 60) == "message a"
    assert db.api_requests.join("", "other", 2, 60, 60) is None
    db.api_requests.settle("a", [], is_failed=True)
    db.api_requests.settle("b", ["h"])
    assert db.api_requests.join("", "same", 3, 60, -1) is None
    assert db.api_requests.join("", "same", 3, 60, 60) == "message b"
