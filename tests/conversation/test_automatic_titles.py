"""Automatic titles: written once, in the background, never over a title of the user."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation, clean_title
from hermes_state import SessionDB
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def titles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_AGENT_AUTOMATIC_TITLES")


@contextmanager
def conversation(
    steps: str, folder: Path, *, is_titled: bool = True
) -> Iterator[tuple[Conversation, ScriptServer]]:
    with ScriptServer(ModelScript.parse(f"steps: [{steps}]")) as server, SessionDB() as db:
        options = ConversationOptions(
            model=f"{server.base_url}#m", cwd=folder, has_automatic_title=is_titled
        )
        talk = Conversation(db, NonInteractivePrompter(), options)
        yield talk, server
        talk.stop()


def ask(talk: Conversation, text: str) -> None:
    list(talk.send(text))
    talk.titles.wait(60)


def test_the_first_answer_is_followed_by_a_title_and_no_other_is(tmp_path: Path) -> None:
    steps = '{say: Water boils at 100 °C.}, {say: "\\"Boiling water.\\"\\n"}, {say: Yes.}'
    announced: list[str] = []
    with conversation(steps, tmp_path) as (talk, server):
        talk.titles.on_title = lambda: announced.append(talk.title(""))
        ask(talk, "When does water boil?")
        ask(talk, "Really?")
        assert talk.title("") == "Boiling water"
        assert announced == ["Boiling water"]
        assert len(server.requests) == 3
        row = talk.row()
        assert row is not None
        assert row.message_count == 4  # the request for the title is no message


def test_a_title_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    with conversation("{say: Fine.}, {say: Other title}", tmp_path) as (talk, server):
        talk.title("My title")
        ask(talk, "hello")
        assert talk.title("") == "My title"
        assert len(server.requests) == 1


def test_two_conversations_about_the_same_have_different_titles(tmp_path: Path) -> None:
    for title in ("Tea", "Tea #2"):
        with conversation("{say: Fine.}, {say: Tea}", tmp_path) as (talk, _server):
            ask(talk, "tea?")
            assert talk.title("") == title


@pytest.mark.parametrize(
    ("failure", "requests"), [("{fail: {status: 401}}", 1), ('{say: "  "}, {say: "  "}', 2)]
)
def test_without_a_usable_answer_there_is_no_title_and_it_is_not_asked_for_later(
    tmp_path: Path, failure: str, requests: int
) -> None:
    with conversation(f"{{say: Fine.}}, {failure}, {{say: Sure.}}", tmp_path) as (talk, server):
        ask(talk, "hello")
        ask(talk, "again")
        assert talk.title("") == ""
        assert len(server.requests) == 2 + requests


def test_titles_can_be_switched_off(tmp_path: Path, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("agent: {automatic_titles: false}\n")
    with conversation("{say: Fine.}", tmp_path) as (talk, server):
        ask(talk, "hello")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("**Tea for two**", "Tea for two"),
        ("Title: Tea", "Tea"),
        ("Sure! Here is a title:\n\n“茶的历史”", "茶的历史"),
        ("word " * 40, "word word word word word word word word word word word word"),
        ("\n \n", ""),
    ],
)
def test_a_title_is_taken_out_of_what_a_model_writes(text: str, title: str) -> None:
    assert clean_title(text) == title
