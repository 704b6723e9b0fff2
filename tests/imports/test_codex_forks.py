"""Forks of Codex, which hold only what is new, in any order with their origins."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.scanner import Scanner
from support.codex_files import CodexFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    ImportFrom = Callable[[str, Path], SourceReport]


def texts(db: SessionDB, file: CodexFile) -> list[object]:
    return [row["content"] for row in db.get_messages(file.session_id)]


def sent_messages(db: SessionDB) -> int:
    ledger = db.ledger.open()
    try:
        scan = Scanner(db.ledger.history, ledger, "UTC", processes=1).refresh()
    finally:
        ledger.close()
    return compute_values(scan.tally)["total_messages_sent"]


def without(file: CodexFile) -> Path:
    """Move a file away; returns where it is."""
    return file.path.rename(file.path.with_suffix(".away"))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_imports_does_not_matter(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path, order: tuple[int, ...]
) -> None:
    origin = CodexFile(tmp_path).exchange("one", "1")
    fork = CodexFile(tmp_path, origin).exchange("two", "2")
    origin.exchange("after the fork", "0")
    second = CodexFile(tmp_path, fork).exchange("three", "3")
    away = {file.path: without(file) for file in (origin, fork, second)}
    for number in order:
        path = list(away)[number]
        away[path].rename(path)
        import_from("codex", tmp_path)
        sent_messages(db)  # the statistics are up to date before the origin comes
    assert texts(db, fork) == ["one", "1", "two", "2"]
    assert texts(db, second) == ["one", "1", "two", "2", "three", "3"]
    assert sent_messages(db) == 4
    sessions = [db.get_session(file.session_id) or {} for file in (origin, fork, second)]
    assert [each["message_count"] for each in sessions] == [4, 4, 6]
    assert [each["input_tokens"] for each in sessions] == [20, 10, 10]
    assert [each["parent_session_id"] for each in sessions[1:]] == [
        origin.session_id,
        fork.session_id,
    ]
    assert import_from("codex", tmp_path).messages == 0
    second.exchange("four", "4")
    assert import_from("codex", tmp_path).messages == 2
    assert texts(db, second)[-3:] == ["3", "four", "4"]
    found = db.search_messages("three")
    assert [hit["session_id"] for hit in found] == [second.session_id]


def test_a_completed_fork_keeps_its_compaction_and_its_branch(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path
) -> None:
    origin = CodexFile(tmp_path).exchange("one", "1")
    fork = CodexFile(tmp_path, origin).exchange("two", "2")
    fork.write("compacted", {"message": "Summary."}).exchange("three", "3")
    away = without(origin)
    import_from("codex", tmp_path)
    branch = db.imports.continue_here(fork.session_id, "cli")
    away.rename(origin.path)
    import_from("codex", tmp_path)
    all_rows = db.get_messages(fork.session_id, include_inactive=True)
    assert [row["content"] for row in all_rows] == [
        "one", "1", "two", "2", "Summary.", "three", "3",
    ]  # fmt: skip
    assert texts(db, fork) == ["Summary.", "three", "3"]
    assert [row["content"] for row in db.get_messages(branch)] == ["Summary.", "three", "3"]
    assert sent_messages(db) == 3


@pytest.mark.parametrize("is_origin_last", [False, True])
def test_a_fork_has_the_context_that_its_origin_had_then(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path, is_origin_last: bool
) -> None:
    origin = CodexFile(tmp_path).exchange("one", "1")
    early = CodexFile(tmp_path, origin).exchange("two", "2")
    origin.write("compacted", {"message": "Summary."}).exchange("three", "3")
    between = CodexFile(tmp_path, origin).exchange("four", "4")
    origin.write("compacted", {"message": "Second summary."}).exchange("five", "5")
    late = CodexFile(tmp_path, origin).exchange("six", "6")
    if is_origin_last:
        away = without(origin)
        import_from("codex", tmp_path)
        away.rename(origin.path)
    import_from("codex", tmp_path)
    assert texts(db, early) == ["one", "1", "two", "2"]
    assert texts(db, between) == ["Summary.", "three", "3", "four", "4"]
    assert texts(db, late) == ["Second summary.", "five", "5", "six", "6"]
    assert texts(db, origin) == ["Second summary.", "five", "5"]
    every = db.get_messages(between.session_id, include_inactive=True)
    assert [row["content"] for row in every[:3]] == ["one", "1", "Summary."]


FIRST, LATER = "01a1e1f9-7cf7-7e31-ae25-0af28691f700", "01a1e1f9-bf55-7bf0-9ab0-8c50c2b5f0da"


@pytest.mark.parametrize(("origin_id", "fork_id"), [(FIRST, LATER), (LATER, FIRST)])
def test_a_fork_of_the_same_second_has_what_its_origin_got_since_the_last_import(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path, origin_id: str, fork_id: str
) -> None:
    origin = CodexFile(tmp_path, thread_id=origin_id).exchange("one", "1")
    import_from("codex", tmp_path)
    origin.exchange("two", "2")
    fork = CodexFile(tmp_path, origin, fork_id).exchange("three", "3")
    second = CodexFile(tmp_path, fork).exchange("four", "4")
    assert fork.path.name[:27] == origin.path.name[:27]
    import_from("codex", tmp_path)
    assert texts(db, fork) == ["one", "1", "two", "2", "three", "3"]
    assert texts(db, second) == ["one", "1", "two", "2", "three", "3", "four", "4"]
    assert sent_messages(db) == 4
    session = db.get_session(fork.session_id) or {}
    assert session["message_count"] == 6
    assert import_from("codex", tmp_path).messages == 0


def test_a_fork_is_completed_when_its_origin_is_read_in_a_later_import(
    db: SessionDB, import_from: ImportFrom, tmp_path: Path
) -> None:
    origin = CodexFile(tmp_path).exchange("one", "1")
    import_from("codex", tmp_path)
    before = origin.path.read_bytes()
    origin.exchange("two", "2")
    fork = CodexFile(tmp_path, origin).exchange("three", "3")
    after = origin.path.read_bytes()
    origin.path.write_bytes(before)  # its new records are not on the disk yet
    import_from("codex", tmp_path)
    assert texts(db, fork) == ["one", "1", "three", "3"]
    origin.path.write_bytes(after)
    import_from("codex", tmp_path)
    assert texts(db, fork) == ["one", "1", "two", "2", "three", "3"]
    assert sent_messages(db) == 3
