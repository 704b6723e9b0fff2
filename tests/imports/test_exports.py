"""Exports of web services and of hermes-agent, built as their documentation describes them."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.errors import UsageError
from hermes_import.agents.web_exports import items_of
from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

CLAUDE_AI = {
    "uuid": "c1",
    "name": "Tea",
    "created_at": "2026-01-02T10:00:00Z",
    "chat_messages": [
        {
            "uuid": "m1",
            "sender": "human",
            "created_at": "2026-01-02T10:00:01Z",
            "content": [{"type": "text", "text": "Green or black?"}],
            "attachments": [{"file_name": "teas.txt", "extracted_content": "sencha"}],
        },
        {
            "uuid": "m2",
            "sender": "assistant",
            "created_at": "2026-01-02T10:00:05Z",
            "content": [
                {"type": "thinking", "thinking": "Sencha is green."},
                {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "tea"}},
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"text": "found"}]},
                {"type": "text", "text": "Green."},
            ],
        },
    ],
}


def gpt_node(name: str, parent: str | None, role: str = "", text: str = "") -> dict[str, Any]:
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": 1_767_348_000.0,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"id": name, "parent": parent, "message": message if role else None}


CHATGPT = {
    "conversation_id": "g1",
    "title": "Tea",
    "create_time": 1_767_348_000.0,
    "current_node": "a2",
    "default_model_slug": "gpt-x",
    "mapping": {
        "root": gpt_node("root", None),
        "u1": gpt_node("u1", "root", "user", "Green or black?"),
        "a1": gpt_node("a1", "u1", "assistant", "Black."),
        "a2": gpt_node("a2", "u1", "assistant", "Green."),
    },
}
OPEN_WEBUI = {
    "id": "w1",
    "title": "Tea",
    "created_at": 1_767_348_000,
    "chat": {
        "models": ["llama"],
        "history": {
            "currentId": "b",
            "messages": {
                "a": {"id": "a", "parentId": None, "role": "user", "content": "Green or black?"},
                "b": {
                    "id": "b",
                    "parentId": "a",
                    "role": "assistant",
                    "content": "Green.",
                    "model": "llama",
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
                },
            },
        },
    },
}
HERMES = {
    "id": "20260101_120000_abcdef",
    "source": "telegram",
    "started_at": 1_767_348_000.0,
    "ended_at": 1_767_348_060.0,
    "title": "Tea",
    "model": "m",
    "input_tokens": 7,
    "messages": [
        {"id": 1, "role": "user", "content": "Green or black?", "timestamp": 1_767_348_001.0},
        {"id": 2, "role": "assistant", "content": "Green.", "timestamp": 1_767_348_002.0},
    ],
}


def import_file(db: SessionDB, path: Path) -> SourceReport:
    found = SourceRegistry().recognize(str(path))
    return AgentImport(db, found.source).run(found.units())


def contents(db: SessionDB, session_id: str) -> list[str]:
    return [row["content"] for row in db.get_messages(session_id)]


@pytest.mark.parametrize("is_archive", [False, True])
@pytest.mark.parametrize(
    ("conversation", "session_id"),
    [(CLAUDE_AI, "claude-ai-c1"), (CHATGPT, "chatgpt-g1"), (OPEN_WEBUI, "open-webui-w1")],
)
def test_an_export_of_a_web_service_is_recognized_and_imported(
    db: SessionDB,
    tmp_path: Path,
    conversation: dict[str, Any],
    session_id: str,
    *,
    is_archive: bool,
) -> None:
    path = tmp_path / ("export.zip" if is_archive else "conversations.json")
    text = json.dumps([conversation])
    if is_archive:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("user.json", "{}")
            archive.writestr("conversations.json", text)
    else:
        path.write_text(text)
    assert import_file(db, path).new == 1
    texts = contents(db, session_id)
    assert (texts[0].splitlines()[0], texts[1]) == ("Green or black?", "Green.")
    row = db.get_session(session_id)
    assert row is not None
    assert row["title"] == "Tea"
    assert import_file(db, path).units == 0


def test_thinking_tools_and_attachments_of_claude_ai_are_kept(
    db: SessionDB, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([CLAUDE_AI]))
    import_file(db, path)
    user, answer, result = db.get_messages("claude-ai-c1")
    assert "[teas.txt]\nsencha" in user["content"]
    assert answer["reasoning"] == "Sencha is green."
    assert answer["tool_calls"][0]["function"]["name"] == "search"
    assert (result["tool_name"], result["content"]) == ("search", "found")


def test_messages_of_other_branches_are_reported(db: SessionDB, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([CHATGPT]))
    report = import_file(db, path)
    assert dict(report.unknown) == {"message of another branch": 1}


def test_an_export_of_hermes_agent_keeps_ids_and_sources(db: SessionDB, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(HERMES) + "\n")
    assert import_file(db, path).new == 1
    row = db.get_session("20260101_120000_abcdef")
    assert row is not None
    assert (row["source"], row["title"], row["input_tokens"]) == ("telegram", "Tea", 7)
    assert contents(db, "20260101_120000_abcdef") == ["Green or black?", "Green."]


def test_a_session_that_is_here_already_is_not_overwritten(db: SessionDB, tmp_path: Path) -> None:
    db.create_session("20260101_120000_abcdef", "cli")
    db.append_message("20260101_120000_abcdef", "user", content="mine")
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(HERMES) + "\n")
    report = import_file(db, path)
    assert (report.new, report.taken) == (0, 1)
    assert contents(db, "20260101_120000_abcdef") == ["mine"]


def test_a_folder_of_an_export_is_imported_file_by_file(db: SessionDB, tmp_path: Path) -> None:
    second = {**CHATGPT, "conversation_id": "g2"}
    for number, item in enumerate([CHATGPT, second]):
        (tmp_path / f"conversations-00{number}.json").write_text(json.dumps([item]))
    report = import_file(db, tmp_path)
    assert (report.new, report.units) == (2, 2)
    assert import_file(db, tmp_path).units == 0


def test_what_precedes_damage_is_imported_and_the_damage_is_reported(
    db: SessionDB, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    items = [{**CLAUDE_AI, "uuid": f"c{n}", "chat_messages": []} for n in range(5)]
    text = json.dumps([*items[:3], 7, {"chat_messages": []}, *items[3:]])
    path.write_text(f"\ufeff{text}"[:-40])
    report = import_file(db, path)
    assert report.new == 4
    assert dict(report.unknown) == {"(not a conversation)": 2}
    (reason,) = report.failures.values()
    assert reason.startswith("not complete JSON after character ")


def test_a_message_without_a_time_has_that_of_the_one_before(db: SessionDB, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    nodes = json.loads(json.dumps(CHATGPT["mapping"]))
    nodes["u1"]["message"]["create_time"] = None
    nodes["a2"]["message"]["content"] = {"content_type": "new_kind", "payload": 1}
    path.write_text(json.dumps([{**CHATGPT, "mapping": nodes, "current_node": None}]))
    report = import_file(db, path)
    (row,) = db.get_messages("chatgpt-g1")
    assert (row["content"], row["timestamp"]) == ("Green or black?", 1_767_348_000.0)
    assert report.unknown["content/new_kind"] == 1


def test_an_archive_that_is_cut_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([CHATGPT]))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UsageError, match="Download it again"):
        SourceRegistry().found_at("chatgpt", path)


def test_a_large_export_is_read_one_conversation_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    item = {**CLAUDE_AI, "name": "é" * 2000}
    path.write_text(json.dumps([item] * 4000, indent=1, ensure_ascii=False))
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            assert sum(value == item for value in items_of(file)) == 4000
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 3
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("content", ["", "[]", "{}", "no JSON", '[{"a": 1}]'])
def test_another_file_is_refused_with_a_reason(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="not a history of a known agent"):
        SourceRegistry().recognize(str(path))
