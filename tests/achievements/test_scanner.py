"""Incremental scans give the same result as a clean scan."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.campaign import size
from achievements.history_builder import DAY, HOUR, HistoryBuilder
from hermes_achievements.evaluation.standings import compute_values
from hermes_achievements.scan import scanner as scanner_module
from hermes_achievements.scan.scanner import ScanMode, Scanner, ScanOutcome, ScanProgress
from hermes_achievements.scan.workers import run_jobs_inline
from hermes_core.errors import ScanBusyError
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def scanner(builder: HistoryBuilder, name: str = "", zone: str = "UTC", **changes: Any) -> Scanner:
    """A scanner with the ledger of the store, or with another one."""
    path = builder.db.db_path
    ledger = LedgerFile(path.with_name(name) if name else path)
    changes.setdefault("processes", 0)
    return Scanner(functools.partial(open_history, str(path)), ledger, zone, **changes)


def clean_values(builder: HistoryBuilder) -> dict[str, int]:
    """The values of a scan with an empty ledger."""
    name = f"clean-{random.random()}.db"
    return compute_values(scanner(builder, name).refresh().tally)


def add_sessions(builder: HistoryBuilder, sessions: int = 40) -> HistoryBuilder:
    for number in range(sessions):
        builder.start(f"n{number:03}").wait(5 * HOUR).send(f"number {number}")
        for item in range(number % 7):
            builder.run_shell("pytest" if item % 2 else "ls", exit_code=int(item % 5 == 4))
        builder.reply()
    return builder


def test_the_second_scan_reads_only_changed_sessions(builder: HistoryBuilder) -> None:
    add_sessions(builder)
    first = scanner(builder).refresh()
    assert (first.mode, first.rescanned) == (ScanMode.FULL, 41)
    again = scanner(builder).refresh()
    assert (again.mode, again.rescanned) == (ScanMode.INCREMENTAL, 0)
    builder.session = "n003"
    builder.run_shell("git push")
    third = scanner(builder).refresh()
    assert (third.rescanned, third.changed) == (1, ("n003",))
    assert compute_values(third.tally) == clean_values(builder)


def test_the_version_changes_only_with_the_history(builder: HistoryBuilder) -> None:
    builder.send()
    history = open_history(str(builder.db.db_path))
    version = history.version()
    assert history.version() == version
    builder.send()
    assert history.version() != version
    history.close()


def test_only_new_rows_of_a_growing_session_are_read(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    scanner(builder).refresh()
    read_after: list[int] = []
    from hermes_state.ledger.history import StoreHistory  # noqa: PLC0415 - patched here

    read = StoreHistory.read_rows

    def watched(self: StoreHistory, session_id: str, consume: Any, after: int = 0) -> Any:
        read_after.append(after)
        return read(self, session_id, consume, after)

    monkeypatch.setattr(StoreHistory, "read_rows", watched)
    row = builder.send()
    scanner(builder).refresh()
    assert read_after == [row - 1]


def step_append(builder: HistoryBuilder, rng: random.Random) -> None:
    builder.wait(rng.choice([1, HOUR, DAY])).send("hello " * rng.randrange(1, 4))
    builder.run_shell(
        rng.choice(["ls", "pytest", "git commit -m x", "grep a b"]), rng.choice([0, 1])
    )


def step_new(builder: HistoryBuilder, rng: random.Random) -> None:
    builder.start(f"x{rng.random()}", rng.choice(["cli", "cron", "subagent"]))
    step_append(builder, rng)


def step_undo(builder: HistoryBuilder, _choose: random.Random) -> None:
    users = [
        message["id"]
        for message in builder.db.get_messages(builder.session)
        if message["role"] == "user"
    ]
    if users:
        builder.db.rewind_to_message(builder.session, users[-1])


def step_redo(builder: HistoryBuilder, _choose: random.Random) -> None:
    builder.db.restore_rewound(builder.session)


def step_compact(builder: HistoryBuilder, _choose: random.Random) -> None:
    messages = builder.db.get_messages(builder.session)[-2:]
    builder.db.archive_and_compact(
        builder.session, [{"role": "user", "content": "so far"}, *messages]
    )


def step_branch(builder: HistoryBuilder, _choose: random.Random) -> None:
    builder.session = builder.db.edits.branch(builder.session)


def step_title(builder: HistoryBuilder, rng: random.Random) -> None:
    builder.db.set_session_title(builder.session, f"t{rng.random()}")


def step_tokens(builder: HistoryBuilder, rng: random.Random) -> None:
    builder.db.update_token_counts(builder.session, input_tokens=rng.randrange(1000))


def step_end(builder: HistoryBuilder, _choose: random.Random) -> None:
    builder.db.end_session(builder.session, "cli_close")


def step_trash(builder: HistoryBuilder, rng: random.Random) -> None:
    rows = builder.db.list_sessions_rich(limit=-1)
    if len(rows) > 1:
        builder.db.delete_session(rng.choice(rows)["id"])
    step_new(builder, rng)


def step_restore(builder: HistoryBuilder, rng: random.Random) -> None:
    trash = builder.db.trash.content()
    if trash:
        builder.db.trash.restore(rng.choice(trash).session_id)


def step_purge(builder: HistoryBuilder, rng: random.Random) -> None:
    step_trash(builder, rng)
    builder.db.trash.purge_expired(older_than_days=0)


def step_replace(builder: HistoryBuilder, _choose: random.Random) -> None:
    rows = builder.db.get_messages_as_conversation(builder.session)
    builder.db.replace_messages(
        builder.session, [*rows[:1], {"role": "user", "content": "instead"}]
    )


STEPS: dict[str, Callable[[HistoryBuilder, random.Random], None]] = {
    name: value for name, value in dict(vars()).items() if name.startswith("step_")
}


@settings(
    max_examples=size(20, 40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=14),
    scans=st.sets(st.integers(0, 14), max_size=5),
    seed=st.integers(0, 1000),
)
def test_incremental_scans_equal_a_clean_scan_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], scans: set[int], seed: int
) -> None:
    builder = HistoryBuilder(tmp_path_factory.mktemp("history") / "state.db").start("s1")
    rng = random.Random(seed)
    try:
        step_append(builder, rng)
        for number, step in enumerate(steps):
            STEPS[step](builder, rng)
            if number in scans:
                scanner(builder).refresh()
        followed = compute_values(scanner(builder).refresh().tally)
        assert followed == clean_values(builder)
        assert followed == compute_values(scanner(builder).refresh(full=True).tally)
    finally:
        builder.close()


def test_rows_that_another_program_deleted_still_count(builder: HistoryBuilder) -> None:
    add_sessions(builder, 5)
    before = compute_values(scanner(builder).refresh().tally)
    outside = sqlite3.connect(builder.db.db_path.parent / "copy.db")
    outside.close()
    builder.db.engine.write(lambda tx: tx.execute("DELETE FROM messages WHERE session_id = 'n004'"))
    builder.session = "n003"
    builder.send()
    after = compute_values(scanner(builder).refresh(full=True).tally)
    assert after["total_tool_calls"] == before["total_tool_calls"]
    assert after["total_messages_sent"] == before["total_messages_sent"] + 1


def test_a_message_that_was_stored_again_under_another_id_counts_once(
    builder: HistoryBuilder,
) -> None:
    builder.send("one")
    builder.run_shell("ls")
    before = compute_values(scanner(builder).refresh().tally)
    builder.db.engine.write(
        lambda tx: tx.execute("UPDATE messages SET id = id + 1000 WHERE session_id = 's1'")
    )
    after = compute_values(scanner(builder).refresh(full=True).tally)
    assert after["total_tool_calls"] == before["total_tool_calls"] == 1
    assert after["total_messages_sent"] == 1


def test_an_unrecorded_change_is_found_by_the_signature_check(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.send()
    scanner(builder).refresh()
    scanner(builder).refresh()  # runs the signature check once
    builder.db.engine.write(
        lambda tx: tx.execute("UPDATE sessions SET title = 'x' WHERE id = 's1'")
    )
    assert compute_values(scanner(builder).refresh().tally).get("total_titled") is None
    monkeypatch.setattr("hermes_achievements.scan.scanner.SIGNATURE_CHECK_SECONDS", 0)
    assert compute_values(scanner(builder).refresh().tally)["total_titled"] == 1


def test_the_ledger_of_another_history_is_not_used(builder: HistoryBuilder, tmp_path: Path) -> None:
    add_sessions(builder)
    scanner(builder).refresh()
    other = HistoryBuilder(tmp_path / "other" / "state.db").start("s1")
    for _ in range(200):
        other.send("another life")
    ledger = LedgerFile(builder.db.db_path)
    result = Scanner(
        functools.partial(open_history, str(other.db.db_path)), ledger, "UTC", processes=0
    ).refresh()
    assert result.mode == ScanMode.FULL
    assert compute_values(result.tally)["total_messages_sent"] == 200
    other.close()


def test_a_changed_time_zone_does_not_reread_the_history(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.wait(11.5 * HOUR).send()  # 23:30 in London, 8:30 tomorrow in Tokyo
    builder.wait(HOUR).send()
    assert (
        compute_values(scanner(builder, zone="Europe/London").refresh().tally)["active_days"] == 2
    )
    monkeypatch.setattr("hermes_achievements.scan.workers.collect_facts", None)
    assert compute_values(scanner(builder, zone="Asia/Tokyo").refresh().tally)["active_days"] == 1


class KilledError(Exception):
    """Simulates a killed process."""


def test_an_interrupted_scan_is_resumed(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_achievements.scan.scanner.REPORT_SECONDS", 0)
    add_sessions(builder, 120)
    expected = clean_values(builder)

    def fail_midway(progress: ScanProgress) -> None:
        if progress.sessions > 60:
            raise KilledError

    with pytest.raises(KilledError):
        scanner(builder, save_seconds=0).refresh(on_progress=fail_midway)
    builder.session = "n001"
    rest = scanner(builder).refresh()
    assert rest.mode == ScanMode.FULL
    assert rest.reused > 30
    assert rest.reused + rest.rescanned == 121
    assert compute_values(rest.tally) == expected


def test_messages_written_during_a_scan_are_found_by_the_next(builder: HistoryBuilder) -> None:
    add_sessions(builder, 60)
    is_sent = False

    def send_during_scan(_progress: ScanProgress) -> None:
        nonlocal is_sent
        if not is_sent:
            is_sent = True
            builder.session = "n059"
            builder.send("in between")

    scanner(builder).refresh(on_progress=send_during_scan)
    assert is_sent
    assert compute_values(scanner(builder).refresh().tally) == clean_values(builder)


def test_partial_results_only_grow(
    builder: HistoryBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_achievements.scan.scanner.REPORT_SECONDS", 0)
    add_sessions(builder, 120)
    sessions: list[int] = []
    sent: list[int] = []

    def note(progress: ScanProgress) -> None:
        sessions.append(progress.sessions)
        sent.append(compute_values(progress.tally)["total_messages_sent"])

    scanner(builder).refresh(on_progress=note)
    assert len(sessions) >= 2
    assert sessions == sorted(sessions)
    assert sessions[-1] < 121
    # One prompt per session, but the first, which is empty: earlier jobs stay counted.
    assert all(known - 1 <= count <= known for known, count in zip(sessions, sent, strict=True))


def test_only_one_scan_runs_at_a_time(builder: HistoryBuilder) -> None:
    add_sessions(builder, 5)
    lock_program = """
import sys
from pathlib import Path
from hermes_state.ledger.file import LedgerFile
with LedgerFile(Path(sys.argv[1])).try_lock() as is_locked:
    print(is_locked, flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", lock_program, str(builder.db.db_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    with pytest.raises(ScanBusyError):
        scanner(builder).refresh()
    other.kill()
    other.communicate()
    assert scanner(builder).refresh().rescanned == 6


def test_a_scan_can_be_paused(builder: HistoryBuilder) -> None:
    add_sessions(builder, 30)
    running = threading.Event()
    results: list[ScanOutcome] = []
    thread = threading.Thread(
        target=lambda: results.append(scanner(builder, running=running).refresh()), daemon=True
    )
    thread.start()
    thread.join(timeout=0.5)
    assert thread.is_alive()
    running.set()
    thread.join(timeout=PATIENCE_SECONDS)
    assert results[0].rescanned == 31


def test_worker_processes_give_the_same_result(builder: HistoryBuilder) -> None:
    add_sessions(builder, 60)
    for _ in range(900):
        builder.run_shell("ls")
    parallel = scanner(builder, "parallel.db", processes=2)
    assert compute_values(parallel.refresh().tally) == clean_values(builder)


@pytest.mark.parametrize(
    ("messages", "cores", "workers"), [(19, 8, 1), (20, 8, 2), (41, 8, 3), (200, 8, 8), (41, 1, 1)]
)
def test_a_worker_is_started_only_for_enough_messages(
    builder: HistoryBuilder,
    monkeypatch: pytest.MonkeyPatch,
    messages: int,
    cores: int,
    workers: int,
) -> None:
    numbers: list[int] = []

    def run_inline(jobs: Any, opened: Any, zone: str, number: int) -> Any:
        numbers.append(number)
        return run_jobs_inline(jobs, opened, zone)

    monkeypatch.setattr(scanner_module, "SMALL_HISTORY_MESSAGES", 1)
    monkeypatch.setattr(scanner_module, "WORKER_MESSAGES", 20)
    monkeypatch.setattr(scanner_module, "count_free_cores", lambda: cores)
    monkeypatch.setattr(scanner_module.workers, "run_jobs", run_inline)
    for _ in range(messages):
        builder.send()
    scanner(builder, processes=None).refresh()
    assert numbers == [workers]


def test_workers_read_new_sessions_after_an_import(builder: HistoryBuilder) -> None:
    builder.send()
    scanner(builder).refresh()
    add_sessions(builder, 210)
    assert scanner(builder).refresh().rescanned == 210
    assert compute_values(scanner(builder).refresh().tally) == clean_values(builder)


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "another layout", "gone"])
def test_a_damaged_ledger_is_rebuilt(builder: HistoryBuilder, damage: str) -> None:
    add_sessions(builder, 50)
    expected = compute_values(scanner(builder).refresh().tally)
    path = LedgerFile(builder.db.db_path).path
    data = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(data[:2000] + bytes(range(256)) * 40 + data[12240:])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "another layout":
        path.unlink()
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        other.commit()
        other.close()
    else:
        path.unlink()
    assert compute_values(scanner(builder).refresh().tally) == expected
