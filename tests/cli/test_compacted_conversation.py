"""A message of a compacted conversation is counted, found, shown and exported once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from support.daemons import DaemonClient, stopping_daemon
from support.model_servers import configured_models

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


@pytest.fixture
def compacted(hermes_home: Path) -> str:
    """Ten messages with three tool calls; the last six were kept, with two of the calls."""
    del hermes_home
    with SessionDB() as db:
        db.create_session("long", "cli")
        for number in range(5):
            calls = CALLS if number in (0, 3, 4) else None
            db.append_message("long", "user", f"question {number} walrus")
            db.append_message("long", "assistant", f"answer {number}", tool_calls=calls)
        _compact(db)
        db.end_session("long", "cli_close")
    return "long"


def _compact(db: SessionDB) -> None:
    tail = db.get_messages_as_conversation("long")[-6:]
    db.archive_and_compact("long", [{"role": "user", "content": "What was said."}, *tail])


def counts(hermes: Hermes, session_id: str) -> tuple[int, int]:
    session = json.loads(hermes("sessions", "show", session_id, "--json").out)["session"]
    return session["message_count"], session["tool_call_count"]


def contents(text: str) -> list[str]:
    return [message["content"] for message in json.loads(text)["messages"]]


ALL = [
    f"{kind} {number}{end}"
    for number in range(5)
    for kind, end in (("question", " walrus"), ("answer", ""))
]


def test_the_list_counts_each_message_once(hermes: Hermes, compacted: str) -> None:
    (row,) = json.loads(hermes("sessions", "list", "--json").out)
    assert (row["id"], row["message_count"]) == (compacted, 10)
    assert counts(hermes, compacted) == (10, 3)


def test_the_statistics_count_each_call_once(hermes: Hermes, compacted: str) -> None:
    with SessionDB() as db:
        db.edits.branch(compacted, "branch")
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    assert (stats["lifetime_messages"], stats["lifetime_tool_calls"]) == (10, 3)


def test_a_branch_counts_what_it_shows(hermes: Hermes, compacted: str) -> None:
    with SessionDB() as db:
        db.edits.branch(compacted, "branch")
    found = json.loads(hermes("sessions", "show", "branch", "--json").out)
    session = found["session"]
    assert (session["message_count"], session["tool_call_count"]) == (10, 3)
    assert [message["content"] for message in found["messages"]] == [*ALL, "What was said."]


def test_a_search_finds_each_message_once(hermes: Hermes, compacted: str) -> None:
    with SessionDB() as db:
        db.edits.branch(compacted, "branch")
        _compact(db)
    hits = json.loads(hermes("sessions", "search", "walrus", "--json").out)
    assert sorted(hit["snippet_text"] for hit in hits) == [f"question {n} walrus" for n in range(5)]
    assert {hit["session_id"] for hit in hits} == {compacted}


def test_a_search_finds_a_copy_if_its_original_was_deleted(hermes: Hermes, compacted: str) -> None:
    with SessionDB() as db:
        db.edits.branch(compacted, "branch")
    assert hermes("sessions", "delete", compacted, "-y").code == 0
    hits = json.loads(hermes("sessions", "search", "walrus", "--json").out)
    assert [hit["session_id"] for hit in hits] == ["branch"] * 5


def test_show_prints_the_conversation_as_it_was(hermes: Hermes, compacted: str) -> None:
    shown = contents(hermes("sessions", "show", compacted, "--json").out)
    assert shown == [*ALL, "What was said."]
    printed = hermes("sessions", "show", compacted).out
    assert "summary" in printed


def test_an_export_contains_each_message_once(
    hermes: Hermes, compacted: str, tmp_path: Path
) -> None:
    for suffix in ("md", "html"):
        path = tmp_path / f"out.{suffix}"
        assert hermes("sessions", "export", str(path), "--session", compacted).code == 0
        text = path.read_text()
        assert [text.count(f"question {n} walrus") for n in range(5)][1:] == [1] * 4


def test_an_undone_message_is_not_shown_because_of_its_first_row(
    hermes: Hermes, compacted: str
) -> None:
    with SessionDB() as db:
        db.edits.undo(compacted)
    assert contents(hermes("sessions", "show", compacted, "--json").out) == [
        *ALL[:-2],
        "What was said.",
    ]
    assert not any(
        "question 4" in hit["snippet_text"]
        for hit in json.loads(hermes("sessions", "search", "walrus", "--json").out)
    )


def test_clients_get_the_conversation_as_it_was(compacted: str) -> None:
    with configured_models() as configure, stopping_daemon():
        configure("[]")
        client = DaemonClient()
        opened = client.open("session.resume", session_id=compacted)
        messages: list[Any] = client.call("session.history")["messages"]
        client.close()
    assert [message["content"] for message in messages] == [*ALL, "What was said."]
    assert messages[-1]["role"] == "summary"
    assert opened["message_count"] == 11


def test_an_exported_summary_keeps_its_mark(hermes: Hermes, compacted: str, tmp_path: Path) -> None:
    exported = tmp_path / "history.jsonl"
    assert hermes("sessions", "export", str(exported), "--session", compacted).code == 0
    other = {"HERMES_HOME": str(tmp_path / "other")}
    assert hermes("sessions", "import", str(exported), **other).code == 0
    shown = json.loads(hermes("sessions", "show", compacted, "--json", **other).out)
    assert [message["content"] for message in shown["messages"]] == [*ALL, "What was said."]
    assert shown["session"]["message_count"] == 10
    assert "summary" in hermes("sessions", "show", compacted, **other).out


def test_doctor_recounts_conversations_of_earlier_releases(hermes: Hermes, compacted: str) -> None:
    with SessionDB() as db:
        wrong = "UPDATE sessions SET message_count = 17, tool_call_count = 6 WHERE id = ?"
        db.engine.write(lambda tx: tx.execute(wrong, (compacted,)))
    assert "is outdated for long" in hermes("doctor").out
    hermes("doctor", "--fix")
    assert counts(hermes, compacted) == (10, 3)


def test_undo_takes_what_there_is(compacted: str) -> None:
    with configured_models() as configure, stopping_daemon():
        configure("[]")
        client = DaemonClient()
        client.open("session.resume", session_id=compacted)
        result = client.call("command.dispatch", name="undo", arg="20")
        client.close()
    assert result["output"] == "Undid 6 messages. /redo restores them."


def test_a_branch_before_a_kept_prompt_ends_before_it(compacted: str) -> None:
    with configured_models() as configure, stopping_daemon():
        configure("[]")
        client = DaemonClient()
        client.open("session.resume", session_id=compacted)
        last = client.call("session.prompts")["prompts"][-1]["message_id"]
        branch = client.call("session.branch", message_id=last, stay=True)["stored_session_id"]
        client.close()
    with SessionDB() as db:
        shown = [row.content for row in db.messages.shown(branch)]
        context = [message["content"] for message in db.get_messages_as_conversation(branch)]
    assert shown == [*ALL[:-2], "What was said."]
    assert context == ["What was said.", *ALL[4:-2]]


def test_a_branch_before_a_summarized_prompt_has_the_context_of_then(compacted: str) -> None:
    with SessionDB() as db:
        second = db.messages.rows(compacted, include_inactive=True)[2]
        assert second.content == "question 1 walrus"
        branch = db.edits.branch(compacted, through_message_id=second.id - 1)
        context = [message["content"] for message in db.get_messages_as_conversation(branch)]
    assert context == ALL[:2]
