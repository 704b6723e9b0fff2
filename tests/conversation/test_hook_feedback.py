"""Feedback of `Stop` hooks: the model reads it as a message, and nobody has written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_achievements.metrics.facts import ROLE_FIELD, USER_ROLE
from hermes_achievements.scan.ledger_entries import read_facts
from hermes_acp.editor_session import replay
from hermes_acp.tool_calls import ShownCalls
from hermes_agent.context.compaction import split, user_messages
from hermes_agent.memory.review import turns_in
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.shell_hooks.transcripts import Transcripts
from hermes_conversation.agent_factory import ConversationOptions
from hermes_state import SessionDB
from hermes_state.ledger.history import StoreHistory
from hermes_state.portable.readable import ReadOptions
from hermes_tui.messages import entries
from support.command_line import run_hermes
from support.scripted_server import ScriptServer
from tui_gateway.live_session import LiveSession

if TYPE_CHECKING:
    from collections.abc import Iterator

FEEDBACK = "write done"


@pytest.fixture
def live(hermes_home: Path, tmp_path: Path) -> Iterator[LiveSession]:
    """A conversation of one turn, which a hook continued once."""
    work = tmp_path / "work"
    work.mkdir(parents=True)
    hermes_home.mkdir(parents=True, exist_ok=True)
    command = f"test -e {work}/done || {{ touch {work}/done; echo '{FEEDBACK}' >&2; exit 2; }}"
    entry = {"hooks": [{"type": "command", "command": command}]}
    (hermes_home / "config.yaml").write_text(f"hooks: {json.dumps({'Stop': [entry]})}\n")
    steps = [{"say": "First."}, {"say": "Second."}]
    script = ModelScript.parse(json.dumps({"steps": steps}))
    with ScriptServer(script) as server, SessionDB() as db:
        result = LiveSession(db, ConversationOptions(model=f"{server.base_url}#m", cwd=work))
        list(result.conversation.send("go"))
        contents = [row.content for row in db.messages.rows(result.conversation.session_id)]
        assert [FEEDBACK in str(content) for content in contents] == [False, False, True, False]
        yield result
        result.conversation.stop()


def test_feedback_is_not_a_prompt_of_the_user(live: LiveSession) -> None:
    conversation, db = live.conversation, live.conversation.db
    assert [prompt.text for prompt in conversation.prompts()] == ["go"]
    session_id = conversation.session_id
    assert [prompt.text for prompt in db.transcripts.prompts(session_id)] == ["go"]
    assert [row["preview"] for row in db.list_recent_user_messages(session_id)] == ["go"]
    conversation.undo(1)
    assert live.messages() == []


def test_feedback_is_not_counted_as_a_message_of_a_person(live: LiveSession) -> None:
    history = StoreHistory(live.conversation.db.engine)
    session = history.session(live.conversation.session_id)
    assert session is not None
    facts = read_facts(session, history.rows(session.id), ()).facts
    assert [fact[ROLE_FIELD] for fact in facts].count(USER_ROLE) == 1


def test_feedback_is_shown_as_that_of_a_hook(live: LiveSession) -> None:
    assert [message["role"] for message in live.messages()] == [
        "user", "assistant", "hook", "assistant",
    ]  # fmt: skip
    shown = [entry.kind for entry in entries(live.messages())]
    assert shown == ["user", "assistant", "notice", "assistant"]
    updates = list(replay(live._opened(), ShownCalls(live.conversation.agent.cwd)))
    kinds = [update.session_update for update in updates]
    assert kinds.count("user_message_chunk") == 1
    session_id = live.conversation.session_id
    read = ReadOptions(live.conversation.db).conversation(session_id)
    assert read is not None
    assert [message.role for message in read.messages()][2] == "hook"
    printed = run_hermes("sessions", "show", session_id)
    headings = [line.split("  ")[0] for line in printed.out.splitlines()]
    assert headings.count("user") == 1
    assert "hook" in headings


def test_feedback_is_not_carried_over_a_compaction_as_words_of_the_user(live: LiveSession) -> None:
    messages = live.conversation.agent.conversation_store.history()
    assert user_messages(messages, set(), 10_000) == ["go"]
    assert turns_in(messages) == 1
    _, kept = split(messages, 200)
    assert kept[0]["content"] == "go"


def test_the_model_reads_feedback_as_a_message_after_a_restart(live: LiveSession) -> None:
    message = live.conversation.agent.conversation_store.history()[2]
    assert message["role"] == "user"
    assert FEEDBACK in str(message["content"])


def test_a_search_finds_feedback_as_that_of_a_hook(live: LiveSession) -> None:
    def roles(*options: str) -> list[str]:
        found = run_hermes("sessions", "search", "done", "--json", *options)
        return [hit["role"] for hit in json.loads(found.out)]

    assert live.conversation.exists
    assert roles("--role", "user") == []
    assert roles() == ["hook"]
    assert roles("--role", "hook") == ["hook"]
    found = run_hermes("sessions", "search", "Second", "--json")
    assert [message["role"] for message in json.loads(found.out)[0]["context"]] == [
        "hook", "assistant",
    ]  # fmt: skip


def test_the_transcript_for_hooks_marks_feedback(live: LiveSession) -> None:
    conversation = live.conversation
    path = Path(Transcripts(conversation.db).write(conversation.session_id))
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["type"] for entry in entries] == ["user", "assistant", "user", "assistant"]
    assert [entry.get("isMeta", False) for entry in entries] == [False, False, True, False]
