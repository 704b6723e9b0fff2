"""Every boundary reaches every plugin, also when dispatchers are killed with -9."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import pytest

from acceptance.campaign import Worker, size
from hermes_plugin_host.delivery import calls_for
from hermes_state import SessionDB
from hermes_state.delivery.boundaries import MAX_ATTEMPTS, BoundaryEvent
from support.plugin_folders import add_misbehaving_plugin

if TYPE_CHECKING:
    from pathlib import Path

DISPATCHER_COUNT = 2


class PluginCall(NamedTuple):
    """One call of a plugin, as recorded by the plugin."""

    plugin: str
    hook: str
    subject: str
    began: int
    ended: int
    process: str


def read_calls(path: Path) -> list[PluginCall]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split() for line in lines]
    return [PluginCall(*row[:3], int(row[3]), int(row[4]), row[5]) for row in rows]


def expected_calls(state_db: Path) -> Counter[tuple[str, str]]:
    """The calls each plugin must receive: (hook, event ID or session ID)."""
    with SessionDB(state_db) as db:
        events = db.boundaries.recent(limit=-1)
    return Counter(
        (call.hook, str(call.facts.get("event_id") or call.facts["session_id"]))
        for event in events
        for call in calls_for(event)
    )


def events(state_db: Path) -> list[BoundaryEvent]:
    with SessionDB(state_db) as db:
        return db.boundaries.recent(limit=-1)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_event_is_lost_when_dispatchers_are_killed(
    state_db: Path, reports: Path, tmp_path: Path, figures
) -> None:
    kills, notes = size(20, 1000), tmp_path / "notes"
    sessions = kills * 6
    left = kills
    busy = 0
    with Worker("announce.py", reports, state_db, sessions, 0.02) as writer:
        writer.wait_for("ended")
        while left:
            batch = [
                Worker("deliver.py", reports, state_db, notes, "slow,quick", "loop")
                for _ in range(min(DISPATCHER_COUNT, left))
            ]
            for worker in batch:
                worker.wait_for("ready")
            before = notes.stat().st_size if notes.exists() else 0
            for worker in batch:
                time.sleep(random.uniform(0.0, 0.08))
                worker.kill()
                left -= 1
            busy += notes.exists() and notes.stat().st_size > before
        assert writer.wait_for("done", seconds=600)
    with Worker("deliver.py", reports, state_db, notes, "slow,quick", "drain") as worker:
        assert worker.wait(120) == 0, worker.error_output()
    expected, result = expected_calls(state_db), read_calls(notes)
    doubles = 0
    for plugin in ("slow", "quick"):
        counter = Counter((call.hook, call.subject) for call in result if call.plugin == plugin)
        assert expected - counter == Counter()  # no call lost
        assert set(counter) == set(expected)  # no other calls: a repeated call has the same ID
        doubles += (counter - expected).total()
    finalized = {call.subject for call in result if call.hook == "on_session_finalize"}
    assert finalized >= {report["session"] for report in writer.reports("ended")}
    assert finalized == {event.session_id for event in events(state_db) if event.is_final}
    assert {event.state for event in events(state_db)} == {"delivered"}
    assert doubles <= kills  # at most the call in flight at each kill
    assert busy > 0
    figures(
        "kill -9 while delivering",
        kills=kills,
        events=len(events(state_db)),
        calls=expected.total() * 2,
        lost=0,
        doubles=doubles,
        kills_with_calls=busy,
        most_attempts=max(event.attempts for event in events(state_db)),
    )


def test_two_dispatchers_never_handle_the_same_event_at_once(
    state_db: Path, reports: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with Worker("announce.py", reports, state_db, 150, 0) as writer:
        writer.wait_for("done")
    arguments = ("deliver.py", reports, state_db, notes, "slow", "drain")
    with Worker(*arguments) as first, Worker(*arguments) as second:  # type: ignore[arg-type]
        assert first.wait() == 0, first.error_output()
        assert second.wait() == 0, second.error_output()
    result = read_calls(notes)
    calls = Counter((call.hook, call.subject) for call in result)
    assert calls == expected_calls(state_db)
    assert len({call.process for call in result}) == 2
    by_event: dict[str, set[str]] = defaultdict(set)
    for call in result:
        if call.hook == "on_session_boundary":
            by_event[call.subject].add(call.process)
    assert {len(processes) for processes in by_event.values()} == {1}


def test_a_plugin_that_kills_the_process_does_not_block_the_others(
    state_db: Path, reports: Path, tmp_path: Path, figures
) -> None:
    notes = tmp_path / "notes"
    with Worker("announce.py", reports, state_db, 2, 0) as writer:
        writer.wait_for("done")
    starts = 0
    while True:
        starts += 1
        assert starts < 100
        arguments = ("deliver.py", reports, state_db, notes, "early,killer,late", "drain")
        with Worker(*arguments) as worker:  # type: ignore[arg-type]
            if worker.wait() == 0:
                break
    result, expected = read_calls(notes), expected_calls(state_db)
    settled = events(state_db)
    assert {event.state for event in settled} == {"dead"}
    assert all("ended in the middle" in event.error for event in settled)
    assert {event.attempts for event in settled} == {MAX_ATTEMPTS}
    assert starts == MAX_ATTEMPTS * len(settled) + 1
    for plugin in ("early", "late"):
        counter = Counter((call.hook, call.subject) for call in result if call.plugin == plugin)
        assert counter == expected
    figures("a plugin that ends the process", events=len(settled), processes_killed=starts - 1)


def test_the_misbehaving_plugin_can_end_the_process(
    hermes, hermes_home: Path, state_db: Path
) -> None:
    with SessionDB() as db:
        db.create_session("one", "cli")
        db.create_session("second", "cli")
    add_misbehaving_plugin(hermes_home)
    for name in ("misbehaving", "boundary-log"):
        assert hermes("plugins", "enable", name).code == 0
    done = hermes("sessions", "delete", "one", "--yes", HERMES_MISBEHAVE="kill")
    assert done.code == 9
    event = next(event for event in events(state_db) if event.session_id == "one")
    assert event.state == "waiting"
    assert event.attempts == 1
    # The next command that announces an event delivers the waiting ones.
    assert hermes("sessions", "delete", "second", "--yes").code == 0
    text = (hermes_home / "logs" / "boundaries.jsonl").read_text()
    assert text.count('"on_session_boundary"') == 2
    assert {event.state for event in events(state_db)} == {"delivered"}
