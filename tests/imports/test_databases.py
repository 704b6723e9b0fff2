"""Databases of other agents: they grow, are being written, are damaged, and are never changed."""

from __future__ import annotations

import gc
import hashlib
import json
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from hermes_import.agents.opencode import ABANDONED_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB
    from support.command_line import Hermes

    Importing = Callable[[str, Path], SourceReport]
    Copying = Callable[[str], Path]

# The database of each agent in its sample.
OPENCODE = ".local/share/opencode/opencode.db"
OPENCLAW = ".openclaw/agents/main/agent/openclaw-agent.sqlite"
LLM = ".config/io.datasette.llm/logs.db"
SESSION = "ses_e1dfc25fcffeDjnnuGwVev0fdI"  # of opencode, with three prompts
TOKENS = {"input": 10, "output": 20, "reasoning": 3, "cache": {"read": 5, "write": 1}}
TITLE = "SELECT title FROM sessions WHERE id = ?"


class OpenCodeWriter:
    """Writes to a database as opencode does."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.now = int(time.time() * 1000)
        self._number = 0

    def next_id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}_{self._number:05}"

    def message(self, data: dict[str, Any], *parts: dict[str, Any]) -> str:
        self.now += 1000
        message_id = self.next_id("msg")
        data = {"time": {"created": self.now}, **data}
        self.connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            (message_id, SESSION, self.now, self.now, json.dumps(data)),
        )
        for part in parts:
            self.connection.execute(
                "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                (self.next_id("prt"), message_id, SESSION, self.now, self.now, json.dumps(part)),
            )
        return message_id

    def prompt(self, text: str) -> str:
        return self.message({"role": "user"}, {"type": "text", "text": text})

    def running_answer(self, text: str) -> str:
        data = {"role": "assistant", "modelID": "m"}
        return self.message(data, {"type": "text", "text": text})

    def complete(self, message_id: str, text: str) -> None:
        time_ = {"created": self.now, "completed": self.now}
        data = {"role": "assistant", "modelID": "m", "finish": "stop", "tokens": TOKENS}
        self.connection.execute(
            "UPDATE message SET data = ?, time_updated = ? WHERE id = ?",
            (json.dumps({**data, "time": time_}), self.now + 1, message_id),
        )
        self.connection.execute(
            "UPDATE part SET data = ? WHERE message_id = ?",
            (json.dumps({"type": "text", "text": text}), message_id),
        )

    def answer(self, text: str) -> None:
        self.complete(self.running_answer(text), text)


def texts(db: SessionDB, session_id: str = f"opencode-{SESSION}") -> list[str]:
    sql = "SELECT content FROM messages WHERE session_id = ? ORDER BY id"
    return [text for (text,) in db.engine.read(lambda reader: reader.rows(sql, (session_id,)))]


def spent(db: SessionDB) -> tuple[int, int, int]:
    sql = "SELECT input_tokens, output_tokens, api_call_count FROM sessions WHERE id = ?"
    row = db.engine.read(lambda reader: reader.row(sql, (f"opencode-{SESSION}",)))
    assert row is not None
    return row[0], row[1], row[2]


def test_a_conversation_that_grows_is_extended(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    first = import_from("opencode", home)
    before, tokens = texts(db), spent(db)
    writer = OpenCodeWriter(home / OPENCODE)
    writer.prompt("One more?")
    writer.answer("Yes.")
    report = import_from("opencode", home)
    assert (report.new, report.extended, report.messages) == (0, 1, 2)
    assert (report.units, report.unchanged) == (1, first.units - 1)
    assert texts(db) == [*before, "One more?", "Yes."]
    assert spent(db) == (tokens[0] + 10, tokens[1] + 23, tokens[2] + 1)


def test_an_answer_in_progress_is_imported_when_it_is_complete(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    import_from("opencode", home)
    before, tokens = texts(db), spent(db)
    writer = OpenCodeWriter(home / OPENCODE)
    writer.prompt("Think about it.")
    answer = writer.running_answer("I am thin")
    writer.prompt("Hurry up.")  # waits until the answer is complete
    import_from("opencode", home)
    assert texts(db) == [*before, "Think about it."]
    assert spent(db) == tokens
    writer.complete(answer, "I am thinking.")
    for _ in range(2):
        import_from("opencode", home)
        assert texts(db) == [*before, "Think about it.", "I am thinking.", "Hurry up."]
        assert spent(db) == (tokens[0] + 10, tokens[1] + 23, tokens[2] + 1)


def test_an_answer_that_was_given_up_is_interrupted_unless_it_is_completed_after_all(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    writer = OpenCodeWriter(home / OPENCODE)
    writer.now -= (ABANDONED_SECONDS + 60) * 1000
    writer.prompt("Think about it.")
    answer = writer.running_answer("I am thin")
    import_from("opencode", home)
    tokens = spent(db)
    sql = "SELECT content, finish_reason FROM messages WHERE session_id = ? ORDER BY id DESC"
    name = (f"opencode-{SESSION}",)
    assert db.engine.read(lambda reader: reader.row(sql, name)) == ("I am thin", "interrupted")
    writer.complete(answer, "I am thinking.")
    import_from("opencode", home)
    assert db.engine.read(lambda reader: reader.row(sql, name)) == ("I am thinking.", "stop")
    assert spent(db) == (tokens[0] + 10, tokens[1] + 23, tokens[2] + 1)


def test_a_database_is_read_while_a_write_is_not_committed(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    writer = OpenCodeWriter(home / OPENCODE)
    writer.connection.execute("BEGIN IMMEDIATE")
    writer.prompt("Not committed.")
    report = import_from("opencode", home)
    assert (report.new, report.failures) == (6, {})
    assert "Not committed." not in texts(db)
    writer.connection.execute("COMMIT")
    import_from("opencode", home)
    assert texts(db)[-1] == "Not committed."


def test_a_locked_database_is_read_when_it_is_released(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("llm")
    connection = sqlite3.connect(home / LLM, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(0.3, lambda: connection.execute("COMMIT"))
    timer.start()
    report = import_from("llm", home)
    timer.join()
    assert (report.new, report.failures) == (6, {})


def test_a_damaged_database_is_reported_and_the_others_are_imported(
    import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("openclaw")
    damaged = home / ".openclaw/agents/broken/agent/openclaw-agent.sqlite"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not a database" * 1000)
    for units in (3, 1):  # what failed is tried again
        report = import_from("openclaw", home)
        assert report.units == units
        assert list(report.failures) == [str(damaged)]
        assert "not a database" in report.failures[str(damaged)]


def test_a_damaged_page_is_reported(import_from: Importing, sample_copy: Copying) -> None:
    home = sample_copy("opencode")
    path = home / OPENCODE
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'part'"
        page, size = connection.execute(sql).fetchone()[0], 4096
        assert connection.execute("PRAGMA page_size").fetchone() == (size,)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    report = import_from("opencode", home)
    assert list(report.failures) == [str(path)]


def test_a_record_of_an_unknown_kind_is_counted(
    import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    writer = OpenCodeWriter(home / OPENCODE)
    writer.message({"role": "user"}, {"type": "hologram"}, {"type": "text", "text": "Look."})
    writer.message({"role": "oracle"})
    report = import_from("opencode", home)
    assert dict(report.unknown) == {"part hologram": 1, "message oracle": 1}
    assert report.failures == {}
    assert dict(import_from("opencode", home).unknown) == {}


def test_a_schema_without_a_column_is_read_and_one_without_a_table_is_reported(
    import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    with closing(sqlite3.connect(home / OPENCODE, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE session DROP COLUMN time_archived")
        connection.execute("ALTER TABLE session DROP COLUMN model")
    report = import_from("opencode", home)
    assert (report.new, report.failures, dict(report.unknown)) == (6, {}, {})
    with closing(sqlite3.connect(home / OPENCODE, isolation_level=None)) as connection:
        connection.execute("DROP TABLE part")
    report = import_from("opencode", home)
    assert (report.new, report.failures, dict(report.unknown)) == (0, {}, {"no table part": 1})


def test_a_title_is_taken_when_the_agent_has_found_one(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    writer = OpenCodeWriter(home / OPENCODE)
    sql = "UPDATE session SET title = ?, time_updated = time_updated + 1 WHERE id = ?"
    titles = ["New session - 2026-11-16T01:41:05.667Z", "Lamps"]
    for title, expected in zip(titles, [None, "Lamps"], strict=True):
        writer.connection.execute(sql, (title, SESSION))
        import_from("opencode", home)
        row = db.engine.read(lambda reader: reader.row(TITLE, (f"opencode-{SESSION}",)))
        assert row is not None
        assert row[0] == expected


def test_half_of_a_character_does_not_stop_an_import(
    db: SessionDB, import_from: Importing, sample_copy: Copying
) -> None:
    home = sample_copy("opencode")
    OpenCodeWriter(home / OPENCODE).prompt("cut \ud83d")  # as JavaScript writes it
    report = import_from("opencode", home)
    assert (report.failures, dict(report.unknown)) == ({}, {})
    assert "cut" in texts(db)[-1]


@pytest.mark.parametrize(
    ("agent", "path"), [("opencode", OPENCODE), ("openclaw", OPENCLAW), ("llm", LLM)]
)
def test_a_database_is_the_same_after_an_import(
    import_from: Importing, sample_copy: Copying, agent: str, path: str
) -> None:
    database = sample_copy(agent) / path
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    changed_at = database.stat().st_mtime_ns
    import_from(agent, database)
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert database.stat().st_mtime_ns == changed_at


@pytest.mark.parametrize(
    ("agent", "name"), [("opencode", OPENCODE), ("openclaw", OPENCLAW), ("llm", LLM)]
)
@pytest.mark.parametrize("has_log", [False, True], ids=["closed", "after a crash"])
def test_nothing_is_left_beside_a_database_that_was_imported(
    hermes: Hermes, sample_copy: Copying, agent: str, name: str, *, has_log: bool
) -> None:
    home = sample_copy(agent)
    database = home / name
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        connection.execute("CREATE TABLE written (number)")
        log = database.with_name(f"{database.name}-wal").read_bytes()
    if has_log:
        database.with_name(f"{database.name}-wal").write_bytes(log)
    before = contents(database.parent)
    assert "imported" in hermes("import", agent, str(home)).out
    assert contents(database.parent) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_database_in_a_read_only_folder_is_read_with_its_write_ahead_log(
    db: SessionDB,
    import_from: Importing,
    sample_copy: Copying,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = sample_copy("opencode")
    writer = OpenCodeWriter(home / OPENCODE)
    writer.prompt("In the log.")
    folder, copies = tmp_path / "read-only", tmp_path / "copies"
    for each in (folder, copies):
        each.mkdir()
    for name in ("opencode.db", "opencode.db-wal"):
        (folder / name).write_bytes((home / OPENCODE).with_name(name).read_bytes())
    assert (folder / "opencode.db-wal").stat().st_size
    folder.chmod(0o555)
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    report = import_from("opencode", folder)
    folder.chmod(0o755)
    assert (report.new, report.failures) == (6, {})
    assert texts(db)[-1] == "In the log."
    assert sorted(path.name for path in folder.iterdir()) == ["opencode.db", "opencode.db-wal"]
    gc.collect()
    assert list(copies.iterdir()) == []
