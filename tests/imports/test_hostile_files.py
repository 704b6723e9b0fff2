"""Files that no agent writes: one of them does not keep the others from being imported."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_import.json_lines import CHUNK_BYTES
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB
    from support.command_line import Hermes

HALF = "\ud800"


def answer(file: ClaudeFile, **fields: Any) -> dict[str, Any]:
    record = file.answer("Yes.")[1]
    return {**record, "message": {**record["message"], **fields}}


def halves_of_characters(file: ClaudeFile) -> None:
    call = {"type": "tool_use", "id": HALF, "name": HALF, "input": {HALF: HALF}}
    file.write(answer(file, model=HALF, content=[call], stop_reason=HALF))


def huge_numbers(file: ClaudeFile) -> None:
    file.write(answer(file, usage={"input_tokens": 10**30, "output_tokens": -5}))


def times_that_are_none(file: ClaudeFile) -> None:
    for time in (float("nan"), float("inf"), 10**40, "0001-01-01T00:00:00+14:00", []):
        file.write({**file.prompt("when?"), "timestamp": time})


def fields_of_wrong_types(file: ClaudeFile) -> None:
    for value in (None, 1, [1], {"a": 1}, True):
        for name in ("type", "message", "uuid", "cwd", "requestId"):
            file.write({**file.prompt("odd"), name: value})
            file.write({**answer(file), name: value})
        block = {"type": value, "text": value, "id": value, "name": value}
        file.write(answer(file, content=[block, value]))


def deep_json(file: ClaudeFile) -> None:
    with file.path.open("a") as lines:
        lines.write('{"type":"user","x":' + "[" * 100_000 + "]" * 100_000 + "}\n")


def names_that_are_not_utf_8(file: ClaudeFile) -> None:
    record = json.dumps(file.prompt("odd name")) + "\n"
    Path(os.fsdecode(os.fsencode(file.path.parent) + b"/\xff.jsonl")).write_text(record)


def links_in_a_circle(file: ClaudeFile) -> None:
    (file.path.parent / "circle.jsonl").symlink_to("circle.jsonl")
    (file.path.parent / "folder").symlink_to(file.path.parent)


def a_start_that_is_not_utf_8(file: ClaudeFile) -> None:
    start = b'{"type":"queue-operation","timestamp":"\xff"}\n'
    file.path.write_bytes(start + file.path.read_bytes())


def a_subagent_with_odd_facts(file: ClaudeFile) -> None:
    folder = file.path.parent / file.session_id / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text(json.dumps(file.prompt("task")) + "\n")
    (folder / "agent-1.meta.json").write_text("[1]")


@pytest.mark.parametrize(
    "damage",
    [
        halves_of_characters,
        huge_numbers,
        times_that_are_none,
        fields_of_wrong_types,
        deep_json,
        names_that_are_not_utf_8,
        links_in_a_circle,
        a_start_that_is_not_utf_8,
        a_subagent_with_odd_facts,
    ],
)
def test_what_can_be_read_is_imported(
    db: SessionDB, hermes: Hermes, tmp_path: Path, damage: Callable[[ClaudeFile], None]
) -> None:
    file = ClaudeFile(tmp_path / "ada").exchange("before", "Yes.")
    damage(file)
    file.exchange("after", "Yes.")
    other = ClaudeFile(tmp_path / "ada", cwd="/elsewhere").exchange("hello", "Hi.")
    finished = hermes("import", "claude-code", str(file.home))
    assert finished.code == 0, finished.err
    assert "Traceback" not in finished.err
    texts = [row["content"] for row in db.get_messages(f"claude-code-{file.session_id}")]
    assert (texts[0], texts[-2:]) == ("before", ["after", "Yes."])
    assert len(db.get_messages(f"claude-code-{other.session_id}")) == 2


def test_a_conversation_that_cannot_be_stored_is_reported_and_the_others_are_imported(
    db: SessionDB, hermes: Hermes, tmp_path: Path
) -> None:
    folder = tmp_path / "ada" / ".codex" / "sessions"
    folder.mkdir(parents=True)
    for number, name in enumerate(("first", HALF, "last")):
        meta = {"type": "session_meta", "payload": {"id": name}, "timestamp": 1_700_000_000}
        event = {"type": "event_msg", "payload": {"type": "user_message", "message": "hello"}}
        lines = [json.dumps(record) + "\n" for record in (meta, event)]
        (folder / f"rollout-{number}.jsonl").write_text("".join(lines))
    for _ in range(2):  # it is not taken for read
        finished = hermes("import", "codex", str(tmp_path / "ada"))
        assert finished.code == 1
        assert "rollout-1.jsonl" in finished.err
        assert "Traceback" not in finished.err
    assert {each.session_id for each in db.imports.all()} == {"codex-first", "codex-last"}


def test_records_without_an_identity_are_all_imported(
    db: SessionDB, import_from: Callable[[str, Path], SourceReport], tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path / "ada")
    for text in ("one", "two"):
        prompt, reply = file.prompt(text), answer(file)
        del prompt["uuid"], reply["message"]["id"]
        file.write(prompt, reply)
    assert import_from("claude-code", file.home).messages == 4
    assert import_from("claude-code", file.home).messages == 0


def test_a_file_that_was_rewritten_behind_the_same_start_is_read_from_its_beginning(
    db: SessionDB, import_from: Callable[[str, Path], SourceReport], tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path / "ada").write({"type": "mode", "text": "m" * 300})
    start = file.path.read_bytes()
    for _ in range(3):
        file.exchange("old", "Yes.")
    import_from("claude-code", file.home)
    file.path.write_bytes(start)
    for _ in range(5):
        file.exchange("a new one", "No.")
    assert import_from("claude-code", file.home).messages == 10


def test_a_line_longer_than_what_is_read_at_once_is_read(
    import_from: Callable[[str, Path], SourceReport], db: SessionDB, tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path / "ada").exchange("x" * CHUNK_BYTES * 3, "Long.")
    file.exchange("short", "Yes.")
    import_from("claude-code", file.home)
    rows = db.get_messages(f"claude-code-{file.session_id}")
    assert [len(row["content"] or "") for row in rows] == [CHUNK_BYTES * 3, 5, 5, 4]


def test_a_codex_record_is_stored_once_when_its_line_is_ended_later(
    import_from: Callable[[str, Path], SourceReport], tmp_path: Path
) -> None:
    folder = tmp_path / "ada" / ".codex" / "sessions"
    folder.mkdir(parents=True)
    meta = {"type": "session_meta", "payload": {"id": "one"}, "timestamp": 1_700_000_000}
    event = {"type": "event_msg", "payload": {"type": "user_message", "message": "hello"}}
    file = folder / "rollout-1.jsonl"
    file.write_text(f"{json.dumps(meta)}\n{json.dumps(event)}")
    assert import_from("codex", tmp_path / "ada").messages == 1
    file.write_text(f"{json.dumps(meta)}\n{json.dumps(event)}\n")
    assert import_from("codex", tmp_path / "ada").messages == 0
