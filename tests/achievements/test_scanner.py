"""The ledger follows the history: whatever happens, it says what a clean scan would say."""

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
from achievements.life import DAY, HOUR, Life
from hermes_achievements.evaluation.values import values_of
from hermes_achievements.scan.scanner import Mode, Scan, Scanner, ScanProgress
from hermes_core.errors import ScanBusyError
from hermes_state.engine.driver import sqlite3
from hermes_state.ledger.file import LedgerFile
from hermes_state.ledger.history import open_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def scanner(life: Life, name: str = "", zone: str = "UTC", **changes: Any) -> Scanner:
    """A scanner with the store's own ledger, or with another one."""
    path = life.db.db_path
    ledger = LedgerFile(path.with_name(name) if name else path)
    changes.setdefault("processes", 0)
    return Scanner(functools.partial(open_history, str(path)), ledger, zone, **changes)


def clean_values(life: Life) -> dict[str, int]:
    """What a scanner finds that has never seen the history before."""
    name = f"clean-{random.random()}.db"
    return values_of(scanner(life, name).refresh().tally)


def filled(life: Life, sessions: int = 40) -> Life:
    for number in range(sessions):
        life.begin(f"n{number:03}").wait(5 * HOUR).say(f"number {number}")
        for item in range(number % 7):
            life.shell("pytest" if item % 2 else "ls", exit_code=int(item % 5 == 4))
        life.answer()
    return life


def test_the_second_scan_reads_only_what_is_new(life: Life) -> None:
    filled(life)
    first = scanner(life).refresh()
    assert (first.mode, first.rescanned) == (Mode.FULL, 41)
    again = scanner(life).refresh()
    assert (again.mode, again.rescanned) == (Mode.INCREMENTAL, 0)
    life.session = "n003"
    life.shell("git push")
    third = scanner(life).refresh()
    assert (third.rescanned, third.changed) == (1, ("n003",))
    assert values_of(third.tally) == clean_values(life)


def test_an_unchanged_history_is_known_by_one_number(life: Life) -> None:
    life.say()
    history = open_history(str(life.db.db_path))
    version = history.version()
    assert history.version() == version
    life.say()
    assert history.version() != version
    history.close()


def test_only_new_rows_of_a_growing_session_are_read(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.say()
    scanner(life).refresh()
    asked: list[int] = []
    from hermes_state.ledger.history import StoreHistory  # noqa: PLC0415 - to watch it

    read = StoreHistory.each_row

    def watched(self: StoreHistory, session_id: str, take: Any, after: int = 0) -> None:
        asked.append(after)
        read(self, session_id, take, after)

    monkeypatch.setattr(StoreHistory, "each_row", watched)
    row = life.say()
    scanner(life).refresh()
    assert asked == [row - 1]


def step_append(life: Life, choose: random.Random) -> None:
    life.wait(choose.choice([1, HOUR, DAY])).say("hello " * choose.randrange(1, 4))
    life.shell(
        choose.choice(["ls", "pytest", "git commit -m x", "grep a b"]), choose.choice([0, 1])
    )


def step_new(life: Life, choose: random.Random) -> None:
    life.begin(f"x{choose.random()}", choose.choice(["cli", "cron", "subagent"]))
    step_append(life, choose)


def step_undo(life: Life, _choose: random.Random) -> None:
    users = [
        message["id"] for message in life.db.get_messages(life.session) if message["role"] == "user"
    ]
    if users:
        life.db.rewind_to_message(life.session, users[-1])


def step_redo(life: Life, _choose: random.Random) -> None:
    life.db.restore_rewound(life.session)


def step_compact(life: Life, _choose: random.Random) -> None:
    messages = life.db.get_messages(life.session)[-2:]
    life.db.archive_and_compact(life.session, [{"role": "user", "content": "so far"}, *messages])


def step_branch(life: Life, _choose: random.Random) -> None:
    life.session = life.db.branch_session(life.session)


def step_title(life: Life, choose: random.Random) -> None:
    life.db.set_session_title(life.session, f"t{choose.random()}")


def step_tokens(life: Life, choose: random.Random) -> None:
    life.db.update_token_counts(life.session, input_tokens=choose.randrange(1000))


def step_end(life: Life, _choose: random.Random) -> None:
    life.db.end_session(life.session, "cli_close")


def step_trash(life: Life, choose: random.Random) -> None:
    rows = life.db.list_sessions_rich(limit=-1)
    if len(rows) > 1:
        life.db.delete_session(choose.choice(rows)["id"])
    step_new(life, choose)


def step_restore(life: Life, choose: random.Random) -> None:
    trash = life.db.list_trash()
    if trash:
        life.db.restore_session(choose.choice(trash)["session_id"])


def step_purge(life: Life, choose: random.Random) -> None:
    step_trash(life, choose)
    life.db.purge_trash(older_than_days=0)


def step_replace(life: Life, _choose: random.Random) -> None:
    rows = life.db.get_messages_as_conversation(life.session)
    life.db.replace_messages(life.session, [*rows[:1], {"role": "user", "content": "instead"}])


STEPS: dict[str, Callable[[Life, random.Random], None]] = {
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
def test_following_equals_a_clean_scan_whatever_was_done(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], scans: set[int], seed: int
) -> None:
    life = Life(tmp_path_factory.mktemp("life") / "state.db").begin("s1")
    choose = random.Random(seed)
    try:
        step_append(life, choose)
        for number, step in enumerate(steps):
            STEPS[step](life, choose)
            if number in scans:
                scanner(life).refresh()
        followed = values_of(scanner(life).refresh().tally)
        assert followed == clean_values(life)
        assert followed == values_of(scanner(life).refresh(full=True).tally)
    finally:
        life.close()


def test_rows_that_another_program_deleted_still_count(life: Life) -> None:
    filled(life, 5)
    before = values_of(scanner(life).refresh().tally)
    outside = sqlite3.connect(life.db.db_path.parent / "copy.db")
    outside.close()
    life.db.engine.write(lambda tx: tx.execute("DELETE FROM messages WHERE session_id = 'n004'"))
    life.session = "n003"
    life.say()
    after = values_of(scanner(life).refresh(full=True).tally)
    assert after["total_tool_calls"] == before["total_tool_calls"]
    assert after["total_messages_sent"] == before["total_messages_sent"] + 1


def test_a_message_that_was_stored_again_under_another_id_counts_once(life: Life) -> None:
    life.say("one")
    life.shell("ls")
    before = values_of(scanner(life).refresh().tally)
    life.db.engine.write(
        lambda tx: tx.execute("UPDATE messages SET id = id + 1000 WHERE session_id = 's1'")
    )
    after = values_of(scanner(life).refresh(full=True).tally)
    assert after["total_tool_calls"] == before["total_tool_calls"] == 1
    assert after["total_messages_sent"] == 1


def test_what_another_program_changed_silently_is_found_after_a_while(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.say()
    scanner(life).refresh()
    scanner(life).refresh()  # looks over all rows once
    life.db.engine.write(lambda tx: tx.execute("UPDATE sessions SET title = 'x' WHERE id = 's1'"))
    assert values_of(scanner(life).refresh().tally).get("total_titled") is None
    monkeypatch.setattr("hermes_achievements.scan.scanner.LOOK_OVER_SECONDS", 0)
    assert values_of(scanner(life).refresh().tally)["total_titled"] == 1


def test_the_ledger_of_another_history_is_not_believed(life: Life, tmp_path: Path) -> None:
    filled(life)
    scanner(life).refresh()
    other = Life(tmp_path / "other" / "state.db").begin("s1")
    for _ in range(200):
        other.say("another life")
    ledger = LedgerFile(life.db.db_path)
    result = Scanner(
        functools.partial(open_history, str(other.db.db_path)), ledger, "UTC", processes=0
    ).refresh()
    assert result.mode == Mode.FULL
    assert values_of(result.tally)["total_messages_sent"] == 200
    other.close()


def test_days_follow_the_users_time_zone_without_reading_the_history_again(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.wait(11.5 * HOUR).say()  # 23:30 in London, 8:30 tomorrow in Tokyo
    life.wait(HOUR).say()
    assert values_of(scanner(life, zone="Europe/London").refresh().tally)["active_days"] == 2
    monkeypatch.setattr("hermes_achievements.scan.workers.book_of", None)
    assert values_of(scanner(life, zone="Asia/Tokyo").refresh().tally)["active_days"] == 1


class KilledError(Exception):
    """Stands for a process that ended."""


def test_a_scan_that_was_cut_short_goes_on_where_it_was(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_achievements.scan.scanner.REPORT_SECONDS", 0)
    filled(life, 120)
    expected = clean_values(life)

    def die(progress: ScanProgress) -> None:
        if progress.sessions > 60:
            raise KilledError

    with pytest.raises(KilledError):
        scanner(life, save_seconds=0).refresh(on_progress=die)
    life.session = "n001"
    rest = scanner(life).refresh()
    assert rest.mode == Mode.FULL
    assert rest.reused > 30
    assert rest.reused + rest.rescanned == 121
    assert values_of(rest.tally) == expected


def test_what_was_written_during_a_scan_is_found_by_the_next(life: Life) -> None:
    filled(life, 60)
    is_told = False

    def talk(_progress: ScanProgress) -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            life.session = "n059"
            life.say("in between")

    scanner(life).refresh(on_progress=talk)
    assert is_told
    assert values_of(scanner(life).refresh().tally) == clean_values(life)


def test_partial_results_only_grow(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_achievements.scan.scanner.REPORT_SECONDS", 0)
    filled(life, 120)
    seen: list[tuple[int, int]] = []
    scanner(life).refresh(
        on_progress=lambda p: seen.append((p.sessions, values_of(p.tally)["total_messages_sent"]))
    )
    assert len(seen) >= 2
    assert seen == sorted(seen)
    assert seen[-1][0] < 121


def test_only_one_scan_runs_at_a_time(life: Life) -> None:
    filled(life, 5)
    holding = """
import sys
from pathlib import Path
from hermes_state.ledger.file import LedgerFile
with LedgerFile(Path(sys.argv[1])).alone() as is_alone:
    print(is_alone, flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", holding, str(life.db.db_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    with pytest.raises(ScanBusyError):
        scanner(life).refresh()
    other.kill()
    other.communicate()
    assert scanner(life).refresh().rescanned == 6


def test_a_scan_can_be_paused(life: Life) -> None:
    filled(life, 30)
    running = threading.Event()
    results: list[Scan] = []
    thread = threading.Thread(
        target=lambda: results.append(scanner(life, running=running).refresh()), daemon=True
    )
    thread.start()
    thread.join(timeout=0.5)
    assert thread.is_alive()
    running.set()
    thread.join(timeout=30)
    assert results[0].rescanned == 31


def test_worker_processes_find_the_same(life: Life) -> None:
    filled(life, 60)
    for _ in range(900):
        life.shell("ls")
    parallel = scanner(life, "parallel.db", processes=2)
    assert values_of(parallel.refresh().tally) == clean_values(life)


def test_after_an_import_the_workers_read_what_is_new(life: Life) -> None:
    life.say()
    scanner(life).refresh()
    filled(life, 210)
    assert scanner(life).refresh().rescanned == 210
    assert values_of(scanner(life).refresh().tally) == clean_values(life)


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "another layout", "gone"])
def test_a_damaged_ledger_is_made_anew(life: Life, damage: str) -> None:
    filled(life, 50)
    expected = values_of(scanner(life).refresh().tally)
    path = LedgerFile(life.db.db_path).path
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
    assert values_of(scanner(life).refresh().tally) == expected
