"""The history of aider: sections that grow, and where its files are searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_import.agents.aider import FILE, Aider

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    Importing = Callable[[str, Path], SourceReport]

FIRST = """
# aider chat started at 2026-03-01 10:00:00

> Aider v0.86.2\x20\x20
> Main model: gpt-test with diff edit format\x20\x20

#### /add notes.md\x20\x20
> Added notes.md to the chat\x20\x20

#### Fix the notes,\x20\x20
#### please.\x20\x20

I do this:

> a quote of the model

#### a heading of the model

> Tokens: 2.1k sent, 84 received. Cost: $0.01 message, $0.02 session.\x20\x20
> Applied edit to notes.md\x20\x20
"""
MORE = """
#### Thanks.\x20\x20

You are wel

> ^C KeyboardInterrupt\x20\x20

# aider chat started at 2026-03-01 11:00:00

#### Again.\x20\x20
"""
ANSWER = "I do this:\n\n> a quote of the model\n\n#### a heading of the model"


def rows(db: SessionDB) -> list[tuple[str, str, str | None]]:
    sql = "SELECT role, content, finish_reason FROM messages ORDER BY id"
    return [(row[0], row[1], row[2]) for row in db.engine.read(lambda reader: reader.rows(sql))]


def test_a_file_that_grows_is_extended(
    db: SessionDB, import_from: Importing, tmp_path: Path
) -> None:
    path = tmp_path / FILE
    path.write_text(FIRST)
    assert import_from("aider", tmp_path).new == 1
    first = [("user", "Fix the notes,\nplease.", None), ("assistant", ANSWER, "stop")]
    assert rows(db) == first
    sql = "SELECT cwd, model, input_tokens, api_call_count, actual_cost_usd FROM sessions"
    facts = db.engine.read(lambda reader: reader.row(sql))
    assert facts is not None
    assert tuple(facts) == (str(tmp_path), "gpt-test", 0, 0, 0.01)
    path.write_text(FIRST + MORE)
    report = import_from("aider", tmp_path)
    assert (report.new, report.extended, report.messages) == (1, 1, 3)
    assert rows(db) == [
        *first,
        ("user", "Thanks.", None),
        ("assistant", "You are wel", "interrupted"),
        ("user", "Again.", None),
    ]
    facts = db.engine.read(lambda reader: reader.row(f"{sql} ORDER BY started_at"))
    assert facts is not None
    assert facts[4] == 0.01


def test_files_are_searched_below_the_home_folder_within_bounds(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    found = [home, home / "a", home / "a/b/c/d"]
    for folder in (*found, home / "a/b/c/d/e", home / ".hidden", home / "node_modules", elsewhere):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(FIRST)
    assert Aider().roots(home, {}) == [folder / FILE for folder in found]
    assert Aider().roots(home, {"PWD": str(elsewhere)})[0] == elsewhere / FILE
    assert Aider().root_at(elsewhere) == elsewhere / FILE


def test_the_conversations_of_a_file_are_counted_for_the_list(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(FIRST + MORE)
    (unit,) = Aider().units(path)
    assert unit.conversations == 2
