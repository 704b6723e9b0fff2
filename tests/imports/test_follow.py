"""Following other agents while they work: what they write appears, and their conversations end."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config.file import ConfigFile
from hermes_import.agents.codex import Codex
from hermes_import.follower import Follower, FollowOptions
from hermes_import.registry import SourceRegistry
from hermes_state import SessionDB
from support.claude_files import ClaudeFile
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_import.sources import Unit
    from support.command_line import Hermes

IDLE_SECONDS = 600.0


class SetClock:
    """A clock that the test sets."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@pytest.fixture
def clock(tmp_path: Path) -> SetClock:
    return SetClock(ClaudeFile(tmp_path).now)


@pytest.fixture
def db(clock: SetClock, hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(clock=clock) as store:
        yield store


@contextmanager
def following(
    db: SessionDB,
    home: Path,
    registry: SourceRegistry | None = None,
    on_report: Callable[[SourceReport], object] = lambda _report: None,
) -> Iterator[Follower]:
    follower = Follower(db, registry or SourceRegistry(), FollowOptions(IDLE_SECONDS), on_report)
    thread = threading.Thread(target=follower.run, args=(home, {}))
    thread.start()
    try:
        yield follower
    finally:
        follower.stop()
        thread.join()


def session_of(db: SessionDB, file: ClaudeFile) -> dict[str, object]:
    return dict(db.get_session(f"claude-code-{file.session_id}") or {})


def events(db: SessionDB) -> list[str]:
    return [event.kind for event in reversed(db.boundaries.recent())]


def test_a_conversation_appears_grows_ends_when_idle_and_resumes(
    db: SessionDB, clock: SetClock, tmp_path: Path
) -> None:
    home = tmp_path / "ada"
    ClaudeFile(home, now=clock.now() - 2 * IDLE_SECONDS).exchange("long ago", "Yes.")
    with following(db, home):
        wait_until(lambda: len(db.lists.sessions()) == 1)
        file = ClaudeFile(home).exchange("hello", "Hi.")
        clock.time = file.now
        wait_until(lambda: session_of(db, file).get("message_count") == 2)
        assert session_of(db, file)["ended_at"] is None
        file.exchange("and now?", "More.")
        clock.time = file.now
        wait_until(lambda: session_of(db, file)["message_count"] == 4)
        assert events(db) == []
        clock.time += IDLE_SECONDS + 1
        wait_until(lambda: session_of(db, file)["ended_at"])
        assert session_of(db, file)["ended_at"] == pytest.approx(file.now)
        assert events(db) == ["idle"]
        file.now = clock.time
        file.exchange("I am back", "Welcome.")
        clock.time = file.now
        wait_until(lambda: session_of(db, file)["message_count"] == 6)
        assert session_of(db, file)["ended_at"] is None
        assert events(db) == ["idle", "resume"]


def test_an_agent_that_is_installed_later_is_found(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.FIND_SECONDS", 0.2)
    home = tmp_path / "ada"
    home.mkdir()
    with following(db, home):
        file = ClaudeFile(home).exchange("hello", "Hi.")
        wait_until(lambda: session_of(db, file).get("message_count") == 2)


def test_a_change_that_is_not_reported_is_found_by_polling(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.POLL_SECONDS", 0.2)
    monkeypatch.setattr(Follower, "_import_changes", lambda *_arguments: None)
    file = ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")
    with following(db, file.home):
        wait_until(lambda: session_of(db, file).get("message_count") == 2)
        file.exchange("and now?", "More.")
        wait_until(lambda: session_of(db, file)["message_count"] == 4)


def test_a_file_in_a_folder_that_is_not_watched_is_looked_at_every_second(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.POLL_SECONDS", 3600.0)
    file = tmp_path / "ada" / "project" / ".aider.chat.history.md"
    file.parent.mkdir(parents=True)
    file.write_text("\n# aider chat started at 2026-03-01 12:00:00\n\n#### hello  \n\nHi.\n")
    with following(db, tmp_path / "ada"):
        wait_until(lambda: len(db.lists.sessions()) == 1)
        with file.open("a") as writing:
            writing.write("\n# aider chat started at 2026-03-01 13:00:00\n\n#### again  \n\nYes.\n")
        wait_until(lambda: len(db.lists.sessions()) == 2)


def test_a_change_before_the_watcher_starts_is_found_when_it_does(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.POLL_SECONDS", 3600.0)
    monkeypatch.setattr("hermes_import.follower.FIND_SECONDS", 3600.0)
    file = ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")
    rest = ["and now?"]  # appended after the first import, when nothing is watched yet

    def append(_report: SourceReport) -> None:
        if rest:
            file.exchange(rest.pop(), "More.")

    with following(db, file.home, on_report=append):
        wait_until(lambda: session_of(db, file).get("message_count") == 4)


def test_only_one_process_follows(db: SessionDB, tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")
    with following(db, file.home):
        wait_until(lambda: session_of(db, file).get("message_count") == 2)
        second = Follower(db, SourceRegistry(), FollowOptions())
        assert second.run(file.home, {}) is False


def test_a_failure_is_shown_until_it_is_over(
    db: SessionDB, hermes: Hermes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.POLL_SECONDS", 0.2)
    monkeypatch.setattr("hermes_import.follower.FIND_SECONDS", 0.2)
    damaged = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not a database " * 100)
    file = ClaudeFile(tmp_path).exchange("hello", "Hi.")

    def status() -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(hermes("import", "--status", "--json").out)
        return shown

    assert (status()["running"], status()["enabled"]) == (False, False)
    with following(db, tmp_path):
        wait_until(lambda: "opencode" in status()["failing"])
        wait_until(lambda: session_of(db, file))  # the other agents are imported
        shown = hermes("import", "--status")
        assert shown.code == 1
        assert f"Process {os.getpid()} follows other agents; not imported: opencode:" in shown.out
        assert "not imported: opencode: " in hermes("doctor").out
        damaged.unlink()
        wait_until(lambda: not status()["failing"])
        assert hermes("import", "--status").code == 0
        assert "opencode" in status()["last_failure"]
    ConfigFile.of_home().set("import.follow", "true")
    shown = hermes("import", "--status")
    assert (shown.code, shown.out.split(";")[0]) == (1, "No process follows other agents")
    assert "no process follows other agents" in hermes("doctor").out


class UnwatchableAgent(Codex):
    """An agent of a plugin that fails in everything but reading."""

    name = "unwatchable"

    def watched(self, root: Path) -> list[Path]:
        raise ValueError("cannot watch")

    def root_at(self, path: Path) -> Path | None:
        return path

    def units(self, root: Path) -> Iterator[Unit]:
        raise LookupError("cannot list")


def test_an_agent_that_fails_does_not_end_following_of_others(
    db: SessionDB, tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path).exchange("hello", "Hi.")
    with following(db, tmp_path, SourceRegistry([UnwatchableAgent()])) as follower:
        wait_until(lambda: session_of(db, file))
        wait_until(lambda: "unwatchable" in follower.status.failing)
        file.exchange("and now?", "More.")
        wait_until(lambda: session_of(db, file)["message_count"] == 4)


def test_a_name_that_cannot_be_reported_does_not_end_following(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_import.follower.POLL_SECONDS", 0.2)
    first = ClaudeFile(tmp_path).exchange("hello", "Hi.")
    with following(db, tmp_path):
        wait_until(lambda: session_of(db, first))
        os.mkfifo(first.path.parent / "pipe.jsonl")
        odd = os.fsencode(first.path.parent) + b"/\xff.jsonl"
        os.close(os.open(odd, os.O_CREAT | os.O_WRONLY))
        second = ClaudeFile(tmp_path).exchange("later", "Yes.")
        wait_until(lambda: session_of(db, second))


def test_a_conversation_with_records_of_the_future_ends_when_idle(
    db: SessionDB, clock: SetClock, tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path, now=clock.now() + 1e8).exchange("hello", "Hi.")
    with following(db, tmp_path):
        wait_until(lambda: session_of(db, file).get("message_count") == 2)
        assert session_of(db, file)["ended_at"] is None
        clock.time += IDLE_SECONDS + 1
        wait_until(lambda: session_of(db, file)["ended_at"])


def test_the_text_of_an_answer_that_was_thought_about_appears(
    db: SessionDB, clock: SetClock, tmp_path: Path
) -> None:
    file = ClaudeFile(tmp_path)
    thought, text = file.answer("Forty-two.")
    file.write(file.prompt("why?"), thought)
    clock.time = file.now
    session_id = f"claude-code-{file.session_id}"
    with following(db, tmp_path):
        wait_until(lambda: session_of(db, file).get("message_count") == 2)
        file.write(text)
        wait_until(lambda: db.get_messages(session_id)[1]["content"] == "Forty-two.")
