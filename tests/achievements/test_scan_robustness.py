"""Scans of damaged, replaced, copied and odd histories give correct totals."""

from __future__ import annotations

import functools
import resource
from typing import TYPE_CHECKING, Any

import pytest

from achievements.history_builder import HOUR, HistoryBuilder
from hermes_achievements.classification.shell_commands import command_labels
from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan.history import ScannedMessage, ScannedSession
from hermes_achievements.scan.ledger_entries import collect_facts, read_facts
from hermes_achievements.scan.scanner import Scanner, ScanProgress
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history
from support.scaling import growth

if TYPE_CHECKING:
    from pathlib import Path


def scan(
    builder: HistoryBuilder, *, full: bool = False, name: str = "", **options: Any
) -> dict[str, int]:
    path = builder.db.db_path
    ledger = LedgerFile(path.with_name(name) if name else path)
    open_source = functools.partial(open_history, str(path))
    options.setdefault("processes", 0)
    return compute_values(Scanner(open_source, ledger, "UTC", **options).refresh(full=full).tally)


def sql(builder: HistoryBuilder, *statements: str) -> None:
    """Run SQL statements like another program."""
    for statement in statements:
        builder.db.engine.write(lambda tx, item=statement: tx.execute(item))


def two_sessions(builder: HistoryBuilder) -> HistoryBuilder:
    builder.send()
    builder.run_shell("git commit -m x")
    builder.start("other").send()
    builder.session = "s1"
    return builder


def test_rows_restored_under_new_ids_count_once(builder: HistoryBuilder) -> None:
    two_sessions(builder)
    before = scan(builder)
    sql(
        builder,
        "CREATE TEMP TABLE kept AS SELECT * FROM messages WHERE session_id = 's1'",
        "DELETE FROM messages WHERE session_id = 's1'",
        "UPDATE kept SET id = id + 1000",
        "INSERT INTO messages SELECT * FROM kept",
    )
    assert scan(builder)["total_commits"] == before["total_commits"] == 1
    assert scan(builder, full=True) == scan(builder, name="clean.db")


def test_messages_kept_by_a_context_replacement_count_once(builder: HistoryBuilder) -> None:
    builder.send("one")
    builder.run_shell("git commit -m 1")
    builder.send("two")
    builder.run_shell("git commit -m 2")
    results = [
        {
            key: item[key]
            for key in ("role", "content", "tool_calls", "tool_call_id")
            if item.get(key)
        }
        for item in builder.db.get_messages_as_conversation("s1")[3:]
    ]
    builder.db.replace_messages("s1", [{"role": "user", "content": "so far"}, *results])
    values = scan(builder)
    assert values["total_commits"] == 2
    assert values["total_messages_sent"] == 3  # the replacement message is new


def test_a_summary_is_not_a_user_message(builder: HistoryBuilder) -> None:
    builder.send("one")
    builder.run_shell("git commit -m 1")
    builder.send("two")
    plain = [{"role": "user", "content": "two"}]
    builder.db.archive_and_compact("s1", [{"role": "user", "content": "a summary"}, *plain])
    assert scan(builder)["total_messages_sent"] == 2


def test_a_restored_older_copy_is_detected(builder: HistoryBuilder, tmp_path: Path) -> None:
    two_sessions(builder)
    old = tmp_path / "old.db"
    copy = sqlite3.connect(old)
    source = sqlite3.connect(f"file:{builder.db.db_path}?mode=ro", uri=True)
    source.backup(copy)
    source.close()
    copy.close()
    for _ in range(30):
        builder.send("later")
    path = builder.db.db_path
    scan(builder)
    builder.close()
    for tail in ("-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
    path.write_bytes(old.read_bytes())
    restored = HistoryBuilder()
    restored.session = "s1"
    restored.run_shell("git push")
    assert scan(restored)["total_pushes"] == 1
    restored.close()


class KilledError(Exception):
    """Simulates a killed process."""


def test_messages_written_after_a_kill_are_counted(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_achievements.scan.scanner.REPORT_SECONDS", 0)
    for number in range(120):
        builder.start(f"n{number:03}").send()

    def fail_midway(progress: ScanProgress) -> None:
        if progress.sessions > 60:
            raise KilledError

    ledger = LedgerFile(builder.db.db_path)
    open_source = functools.partial(open_history, str(builder.db.db_path))
    with pytest.raises(KilledError):
        Scanner(open_source, ledger, "UTC", processes=0, save_seconds=0).refresh(
            on_progress=fail_midway
        )
    builder.run_shell("git push")  # into a session that the scan has already read
    assert scan(builder)["total_pushes"] == 1


def test_totals_survive_the_deletion_of_all_messages(builder: HistoryBuilder) -> None:
    builder.run_shell("git commit -m x")
    scan(builder)
    sql(builder, "DELETE FROM messages")
    assert scan(builder)["total_commits"] == 1
    assert scan(builder, full=True)["total_commits"] == 1


def test_a_row_changed_by_another_program_after_the_first_scan_is_found(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    scan(builder)
    sql(builder, "UPDATE sessions SET title = 't', cache_read_tokens = 5 WHERE id = 's1'")
    monkeypatch.setattr("hermes_achievements.scan.scanner.SIGNATURE_CHECK_SECONDS", 0)
    values = scan(builder)
    assert values["total_titled"] == 1
    assert values["total_cached_tokens"] == 5


def test_a_branch_remains_a_branch_after_its_parent_is_purged(builder: HistoryBuilder) -> None:
    builder.send("one")
    builder.run_shell("git commit -m x")
    rows = builder.db.get_messages("s1")
    builder.db.end_session("s1", "branched")
    builder.db.create_session("b", "cli", parent_session_id="s1", started_at=builder.now)
    for row in rows:
        columns = {name: row.get(name) for name in ("tool_name", "tool_calls", "tool_call_id")}
        builder.db.append_message(
            "b", row["role"], row["content"], timestamp=builder.now, **columns
        )
    assert scan(builder)["total_commits"] == 1
    builder.db.delete_session("s1")
    builder.db.trash.purge("s1")
    assert scan(builder)["total_commits"] == 1
    assert scan(builder, full=True)["total_commits"] == 1


def test_a_repeated_message_is_not_a_copy(builder: HistoryBuilder) -> None:
    builder.send("yes")
    builder.reply("ok")
    builder.db.end_session("s1", "compression")
    builder.db.create_session("next", "cli", parent_session_id="s1", started_at=builder.now)
    builder.session = "next"
    builder.wait(30).send("yes")
    builder.reply("ok")
    assert scan(builder)["total_messages_sent"] == 2


@pytest.mark.parametrize("at", [0, -1e18, 1.7e12, float("inf"), "soon", b"\x00"])
def test_an_implausible_timestamp_earns_nothing(builder: HistoryBuilder, at: Any) -> None:
    builder.send()
    row = builder.send()
    builder.send()
    builder.db.engine.write(
        lambda tx: tx.execute("UPDATE messages SET timestamp = ? WHERE id = ?", (at, row))
    )
    values = scan(builder)
    assert values["total_messages_sent"] == 3
    assert values["active_days"] == 1
    assert values.get("peak_hours_open", 0) == 0


INVALID_DATA = {
    "tool_name": "UPDATE messages SET tool_name = CAST(x'ff41' AS TEXT) WHERE role = 'tool'",
    "tool_call_id": "UPDATE messages SET tool_call_id = x'00ff' WHERE role = 'tool'",
    "role": "UPDATE messages SET role = CAST(x'ff' AS TEXT) WHERE role = 'assistant'",
    "model": "UPDATE sessions SET model = CAST(x'ff41' AS TEXT)",
    "source": "UPDATE sessions SET source = CAST(x'ff' AS TEXT)",
    "model_config": "UPDATE sessions SET model_config = CAST(x'7bff' AS TEXT)",
    "tokens": "UPDATE sessions SET input_tokens = 'many'",
    "infinite": "UPDATE sessions SET input_tokens = 9e999",
    "cost": "UPDATE sessions SET estimated_cost_usd = 1e30",
    "ended": "UPDATE sessions SET ended_at = 'yes', end_reason = x'00'",
}


@pytest.mark.parametrize("column", INVALID_DATA)
def test_invalid_data_of_a_session_does_not_stop_the_scan(
    builder: HistoryBuilder, column: str
) -> None:
    builder.send()
    builder.run_shell("git commit -m x")
    builder.start("good").send()
    builder.run_shell("git push")
    statement = INVALID_DATA[column]
    keyword = "AND" if "WHERE" in statement else "WHERE"
    id_column = "session_id" if "messages" in statement else "id"
    builder.db.engine.write(lambda tx: tx.execute(f"{statement} {keyword} {id_column} = 's1'"))
    assert scan(builder)["total_pushes"] == 1


def test_an_unreadable_session_is_reported_and_keeps_its_totals(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_sessions(builder)
    scan(builder)
    builder.send()
    builder.session = "other"
    builder.run_shell("git push")
    read = collect_facts

    def fail(history: Any, session_id: str, before: bytes | None = None) -> Any:
        if session_id == "s1":
            raise ValueError("odd")
        return read(history, session_id, before)

    monkeypatch.setattr("hermes_achievements.scan.scanner.collect_facts", fail)
    monkeypatch.setattr("hermes_achievements.scan.scanner.extend_facts", lambda *_: None)
    ledger = LedgerFile(builder.db.db_path)
    open_source = functools.partial(open_history, str(builder.db.db_path))
    result = Scanner(open_source, ledger, "UTC", processes=0).refresh()
    assert result.skipped == ("s1",)
    values = compute_values(result.tally)
    assert (values["total_commits"], values["total_pushes"]) == (1, 1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE book SET facts = x'00ff'",
        "UPDATE session SET contribution = x'00ff'",
        "UPDATE note SET value = x'00ff' WHERE name = 'mark'",
        "UPDATE note SET value = x'00ff' WHERE name = 'generation'",
        "UPDATE note SET value = x'00ff' WHERE name = 'tally'",
        "UPDATE note SET value = x'00ff' WHERE name = 'signatures'",
    ],
)
@pytest.mark.parametrize("full", [True, False])
def test_a_damaged_entry_is_rebuilt(builder: HistoryBuilder, damage: str, full: bool) -> None:
    two_sessions(builder)
    scan(builder)
    ledger = sqlite3.connect(LedgerFile(builder.db.db_path).path)
    ledger.execute(damage)
    ledger.commit()
    ledger.close()
    builder.run_shell("git push")
    assert scan(builder, full=full) == scan(builder, name="clean.db")


def test_damaged_facts_of_a_purged_session_do_not_stop_a_scan(builder: HistoryBuilder) -> None:
    two_sessions(builder)
    builder.db.delete_session("s1")
    builder.db.trash.purge("s1")
    sql(builder, "UPDATE hermes_kept SET facts = x'00ff'")
    assert scan(builder)["total_messages_sent"] == 1


def test_lone_surrogates_in_a_command_are_accepted(builder: HistoryBuilder) -> None:
    builder.call_tool("terminal", {"command": "npm run \ud800x; uv pip \ud800x"}, {"exit_code": 0})
    builder.call_tool("\ud800tool", {"action": "\ud800"}, "ok")
    assert scan(builder)["total_tool_calls"] == 2


@pytest.mark.parametrize(
    ("unit", "count"), [("{", 20_000), ("$((", 6_600), ("a=(", 6_600), ("(", 20_000), ("`", 20_000)]
)
def test_labelling_a_command_takes_linear_time(unit: str, count: int) -> None:
    assert growth(lambda size: command_labels(unit * size), count) < 2.5


def test_reading_facts_takes_linear_time() -> None:
    rows = [ScannedMessage(n, "tool", 1.7e9 + n, b"x", call_id=f"c{n}") for n in range(20_000)]
    session = ScannedSession("s", started_at=1.7e9)
    assert growth(lambda size: read_facts(session, rows[:size], ()), len(rows)) < 2.5


def test_memory_does_not_grow_with_a_session(builder: HistoryBuilder) -> None:
    text = "x" * 200_000
    for number in range(150):
        builder.call_tool(
            "terminal", {"command": "cat"}, {"output": text + str(number), "exit_code": 0}
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scan(builder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_values_do_not_depend_on_the_times_of_scans(builder: HistoryBuilder) -> None:
    builder.send()
    for _ in range(10):
        builder.run_shell("ls")
    builder.reply()
    first = scan(builder)
    builder.wait(HOUR).send()
    builder.run_shell("ls", 1)
    second = scan(builder)
    for name in ("one_shots", "clean_run", "flawless_sessions"):
        assert second.get(f"total_{name}", 0) >= first.get(f"total_{name}", 0)
    assert second == scan(builder, name="clean.db")


def test_titles_are_found_in_histories_of_the_original_program(shared_data: Path) -> None:
    history = open_history(str(shared_data / "state-schema16.db"))
    ids = [item for item, _ in history.session_sizes()]
    assert history.titles(ids)
    history.close()
