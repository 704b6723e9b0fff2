"""Files of other agents: growing, cut, replaced, compressed, damaged, gone."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from hermes_import.importer import AgentImport, ImportOptions
from hermes_import.json_lines import JsonLines
from hermes_import.registry import SourceRegistry
from hermes_import.zstd import zstd
from hermes_state import SessionDB
from hermes_state.imports.rows import UnitState
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_import.importer import SourceReport


@pytest.fixture
def file(tmp_path: Path) -> ClaudeFile:
    return ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")


def import_from(db: SessionDB, home: Path, options: ImportOptions | None = None) -> SourceReport:
    found = SourceRegistry().found_at("claude-code", home)
    return AgentImport(db, found.source, options).run(found.units())


def texts(db: SessionDB, file: ClaudeFile) -> list[str]:
    rows = db.get_messages(f"claude-code-{file.session_id}")
    return [row["content"] for row in rows]


def test_a_file_that_grows_extends_its_conversation(db: SessionDB, file: ClaudeFile) -> None:
    import_from(db, file.home)
    file.exchange("and now?", "More.")
    report = import_from(db, file.home)
    assert (report.new, report.extended, report.messages) == (0, 1, 2)
    assert texts(db, file) == ["hello", "Hi.", "and now?", "More."]
    row = db.get_session(f"claude-code-{file.session_id}")
    assert row is not None
    assert (row["input_tokens"], row["output_tokens"], row["message_count"]) == (20, 10, 4)


def test_only_what_is_new_of_a_file_is_read(db: SessionDB, file: ClaudeFile) -> None:
    import_from(db, file.home)
    size = file.path.stat().st_size
    file.exchange("and now?", "More.")
    import_from(db, file.home)
    (state,) = db.imports.units("claude-code").values()
    assert state.position == size


def test_an_extended_conversation_resumes_and_ends_with_one_event_each(
    db: SessionDB, file: ClaudeFile
) -> None:
    import_from(db, file.home)
    assert db.boundaries.recent() == []  # it had ended before it came here
    file.exchange("and now?", "More.")
    import_from(db, file.home)
    assert [event.kind for event in db.boundaries.recent()] == ["idle", "resume"]


def test_a_cut_last_line_is_read_when_it_is_complete(db: SessionDB, file: ClaudeFile) -> None:
    line = json.dumps(file.prompt("a long question"))
    with file.path.open("a") as writing:
        writing.write(line[:40])
    report = import_from(db, file.home)
    assert (report.failures, dict(report.unknown)) == ({}, {})
    assert texts(db, file) == ["hello", "Hi."]
    with file.path.open("a") as writing:
        writing.write(line[40:])  # the end of the line is still missing
    import_from(db, file.home)
    assert texts(db, file) == ["hello", "Hi.", "a long question"]


def test_a_file_that_was_replaced_is_read_from_its_beginning(
    db: SessionDB, file: ClaudeFile
) -> None:
    import_from(db, file.home)
    file.path.unlink()
    file.exchange("another start", "Yes.").exchange("and on", "So it is.")
    import_from(db, file.home)
    assert texts(db, file) == ["hello", "Hi.", "another start", "Yes.", "and on", "So it is."]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_file_is_the_same_conversation(
    db: SessionDB, file: ClaudeFile, ending: str
) -> None:
    import_from(db, file.home)
    content = file.exchange("and now?", "More.").path.read_bytes()
    compress = gzip.compress if ending == ".gz" else zstd.compress
    file.path.with_name(file.path.name + ending).write_bytes(compress(content))
    file.path.unlink()
    assert import_from(db, file.home).extended == 1
    assert texts(db, file) == ["hello", "Hi.", "and now?", "More."]


def test_records_that_are_not_understood_are_counted_once(db: SessionDB, file: ClaudeFile) -> None:
    file.write({"type": "telepathy"}, {"type": "telepathy"})
    with file.path.open("a") as writing:
        writing.write("no JSON at all\n")
    assert dict(import_from(db, file.home).unknown) == {"telepathy": 2, "(not JSON)": 1}
    file.exchange("and now?", "More.").write({"type": "telepathy"})
    assert dict(import_from(db, file.home).unknown)["telepathy"] >= 1


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_imported(
    db: SessionDB, file: ClaudeFile
) -> None:
    broken = ClaudeFile(file.home)
    broken.path.with_suffix(".jsonl.gz").write_bytes(b"not gzip")
    report = import_from(db, file.home)
    assert list(report.failures) == [str(broken.path.with_suffix(".jsonl.gz"))]
    assert report.new == 1


def test_a_file_that_is_gone_removes_nothing(db: SessionDB, file: ClaudeFile) -> None:
    import_from(db, file.home)
    file.path.unlink()
    import_from(db, file.home)
    assert texts(db, file) == ["hello", "Hi."]


@pytest.mark.parametrize("is_purged", [False, True])
def test_what_was_deleted_here_stays_deleted(
    db: SessionDB, file: ClaudeFile, *, is_purged: bool
) -> None:
    import_from(db, file.home)
    session_id = f"claude-code-{file.session_id}"
    db.delete_session(session_id)
    if is_purged:
        db.trash.purge(session_id)
    file.exchange("and now?", "More.")
    report = import_from(db, file.home)
    assert (report.deleted, report.messages) == (1, 0)
    assert db.lists.sessions() == []


def test_a_fork_has_the_history_of_its_origin_and_counts_only_its_own(
    db: SessionDB, file: ClaudeFile
) -> None:
    fork = ClaudeFile(file.home, now=file.now + 60)
    fork.path.write_text(file.path.read_text().replace(file.session_id, fork.session_id))
    fork.exchange("another way", "Fine.")
    report = import_from(db, file.home)
    assert (report.new, report.messages, report.copies) == (2, 4, 2)
    assert texts(db, fork) == ["hello", "Hi.", "another way", "Fine."]
    row = db.get_session(f"claude-code-{fork.session_id}")
    assert row is not None
    assert row["parent_session_id"] == f"claude-code-{file.session_id}"
    assert row["input_tokens"] == 10


def test_only_conversations_of_a_project_are_imported(db: SessionDB, file: ClaudeFile) -> None:
    other = ClaudeFile(file.home, cwd="/home/ada/other/part").exchange("elsewhere", "Yes.")
    from pathlib import Path  # noqa: PLC0415 - only here

    report = import_from(db, file.home, ImportOptions(project=Path("/home/ada/other")))
    assert (report.new, report.other_project) == (1, 1)
    assert texts(db, other) == ["elsewhere", "Yes."]
    assert import_from(db, file.home).new == 1


def test_a_dry_run_counts_and_stores_nothing(db: SessionDB, file: ClaudeFile) -> None:
    report = import_from(db, file.home, ImportOptions(is_dry_run=True))
    assert (report.new, report.messages) == (1, 2)
    assert db.lists.sessions() == []
    assert db.imports.units("claude-code") == {}


def test_two_imports_at_once_store_each_message_once(
    db: SessionDB, file: ClaudeFile, tmp_path: Path
) -> None:
    for number in range(20):
        ClaudeFile(file.home).exchange(f"question {number}", "Answer.")

    def run() -> None:
        with SessionDB() as another:
            import_from(another, file.home)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(db.lists.sessions(limit=100)) == 21
    assert db.engine.read(lambda r: r.value("SELECT count(*) FROM messages")) == 42
    assert db.engine.read(lambda r: r.value("SELECT sum(input_tokens) FROM sessions")) == 210


def test_a_long_conversation_that_had_ended_is_imported_without_an_event(
    db: SessionDB, tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path / "ada")
    for number in range(600):
        file.exchange(f"question {number}", "Answer.")
    import_from(db, file.home)
    row = db.get_session(f"claude-code-{file.session_id}")
    assert row is not None
    assert (row["message_count"], row["ended_at"]) == (1200, pytest.approx(file.now))
    assert db.boundaries.recent() == []


def test_a_long_line_is_in_memory_once_while_it_is_read(tmp_path: Path) -> None:
    path, size = tmp_path / "long.jsonl", 16 << 20
    path.write_bytes(b'{"a": "' + b"x" * size + b'"}\n{}\n')
    tracemalloc.start()
    try:
        lines = JsonLines(path, Counter(), UnitState("")).raw()
        assert len(next(lines)) > size
        assert tracemalloc.get_traced_memory()[0] < size / 2  # the reader has kept nothing of it
        assert tracemalloc.get_traced_memory()[1] < size * 1.5
        assert next(lines) == b"{}"
    finally:
        tracemalloc.stop()


def test_a_linked_folder_is_read_once_and_a_loop_of_links_is_not_followed(
    db: SessionDB, file: ClaudeFile, tmp_path: Path
) -> None:
    elsewhere = ClaudeFile(tmp_path / "disk", cwd="/big").exchange("on the disk", "Yes.")
    projects = file.path.parent.parent
    for name in ("-big", "-again"):
        (projects / name).symlink_to(elsewhere.path.parent)
    (projects / "-loop").symlink_to(projects)
    (projects / "-self").symlink_to("-self")
    report = import_from(db, file.home)
    assert (report.new, report.units, report.failures) == (2, 2, {})
    assert texts(db, elsewhere) == ["on the disk", "Yes."]


def test_a_byte_order_mark_and_other_line_ends_are_read(db: SessionDB, file: ClaudeFile) -> None:
    lines = file.path.read_bytes().replace(b"\n", b"\r\n")
    file.path.write_bytes(b"\xef\xbb\xbf" + lines + b"\r\n")
    report = import_from(db, file.home)
    assert dict(report.unknown) == {}
    assert texts(db, file) == ["hello", "Hi."]
