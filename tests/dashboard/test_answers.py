"""Questions to the history over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_dashboard.resources import answers
from hermes_state import SessionDB
from support.data_resources import serve_resources
from support.model_servers import HeldServer, StepwiseServer, configured_models
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx2 as httpx

    from support.scripted_server import ScriptServer

QUESTION = "how did we fix the websocket that reconnects"


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        for name, texts in {
            "proxy": ["The websocket reconnects every hour", "A ping every 30 s fixed it."],
            "garden": ["When do tomatoes need water?", "In the evening."],
        }.items():
            db.create_session(name, "cli", is_owned=False)
            for place, text in enumerate(texts):
                db.append_message(name, ("user", "assistant")[place % 2], text)
        yield db


@pytest.fixture
def client(db: SessionDB, hermes_home: Path) -> Iterator[httpx.Client]:
    with serve_resources(db, hermes_home, answers) as client:
        yield client


@pytest.fixture
def answering(hermes_home: Path) -> Iterator[Callable[..., ScriptServer]]:
    with configured_models() as start:
        yield start


def ask(client: httpx.Client, question: str = QUESTION, **fields: Any) -> str:
    """The address of a question that was asked."""
    response = client.post("/api/answers", json={"question": question, **fields})
    assert response.status_code == 202, response.text
    return f"/api/answers/{response.json()['number']}"


def answer(client: httpx.Client, address: str) -> dict[str, Any]:
    """The question at the address, once it is answered."""
    wait_until(lambda: not client.get(address).json()["is_running"])
    state: dict[str, Any] = client.get(address).json()
    return state


def test_each_sentence_of_an_answer_names_its_messages(
    db: SessionDB, client: httpx.Client, answering: Callable[..., ScriptServer]
) -> None:
    server = answering("[{say: 'A ping every 30 seconds fixed it [1]. It was the proxy.'}]")
    before = db.statistics.stats()
    state = answer(client, ask(client))
    assert (state["question"], state["error"]) == (QUESTION, "")
    found = state["answer"]
    assert found["sentences"] == [{"text": "A ping every 30 seconds fixed it.", "sources": [1]}]
    assert (found["left_out"], found["model"]) == (1, "scripted")
    assert found["quotations"][0]["session_id"] == "proxy"
    assert db.messages.session_of(found["quotations"][0]["message_id"]) == "proxy"
    assert "tomatoes" not in str(server.requests[0])
    assert db.statistics.stats() == before  # nothing is stored


def test_quotations_need_no_model(client: httpx.Client) -> None:
    found = answer(client, ask(client, with_model=False))["answer"]
    assert (found["sentences"], found["note"]) == ([], "")
    assert "websocket" in found["quotations"][0]["text"]
    without = answer(client, ask(client))["answer"]  # none is configured
    assert "hermes setup" in without["note"]
    assert without["quotations"] == found["quotations"]


def test_nothing_found_asks_no_model(
    client: httpx.Client, answering: Callable[..., ScriptServer]
) -> None:
    server = answering("[{say: Guess.}]")
    found = answer(client, ask(client, "zzyzx qwxyz"))["answer"]
    assert (found["sentences"], found["quotations"]) == ([], [])
    assert server.requests == []


def test_a_question_that_cannot_be_searched_says_why(client: httpx.Client) -> None:
    state = answer(client, ask(client, "-websocket"))
    assert (state["answer"], "at least one word" in state["error"]) == (None, True)
    for question in ("", "   ", "x" * 501):
        assert client.post("/api/answers", json={"question": question}).status_code == 422
    assert client.get("/api/answers/99").status_code == 404


def test_a_model_that_answers_slowly_can_be_stopped_and_leaves_the_quotations(
    client: httpx.Client, answering: Callable[..., ScriptServer]
) -> None:
    server = answering("[{say: 'Late [1].'}]", HeldServer)
    assert isinstance(server, HeldServer)
    address = ask(client)
    wait_until(lambda: server.requests)
    running = client.get(address).json()
    assert (running["is_running"], running["answer"]) == (True, None)
    assert "scripted" in running["step"]
    assert client.delete(address).status_code == 204
    found = answer(client, address)["answer"]
    assert (found["sentences"], bool(found["failure"])) == ([], True)
    assert found["quotations"]
    server.release()


def test_only_some_questions_are_answered_at_a_time(
    client: httpx.Client, answering: Callable[..., ScriptServer]
) -> None:
    server = answering("[{say: 'Yes [1].'}, {say: 'Yes [1].'}, {say: 'Yes [1].'}]", StepwiseServer)
    assert isinstance(server, StepwiseServer)
    asked = [ask(client) for _ in range(3)]
    refused = client.post("/api/answers", json={"question": QUESTION})
    assert (refused.status_code, "3 questions" in refused.json()["detail"]) == (409, True)
    for _ in asked:
        server.release()
    assert all(answer(client, each)["answer"]["sentences"] for each in asked)
    assert answer(client, ask(client, with_model=False))["answer"]["quotations"]


def test_a_page_does_not_choose_the_model(client: httpx.Client) -> None:
    body = {"question": QUESTION, "model": "http://127.0.0.1:9/v1#other"}
    response = client.post("/api/answers", json=body)
    state = answer(client, f"/api/answers/{response.json()['number']}")
    assert "hermes setup" in state["answer"]["note"]  # none is configured
