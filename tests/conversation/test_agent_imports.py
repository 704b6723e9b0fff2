"""Following other agents in a long-running process: restarted, and taken over."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_conversation import agent_imports
from hermes_conversation.agent_imports import BackgroundFollower
from hermes_core.config.file import ConfigFile
from hermes_core.instance_record import hold_lock
from hermes_import.follower import Follower
from hermes_import.follower_status import LOCK_NAME, read_status
from hermes_state import SessionDB
from support.claude_files import ClaudeFile
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    ConfigFile.of_home().set("import.follow", "true")
    with SessionDB() as store:
        yield store


@pytest.fixture
def follower(db: SessionDB, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackgroundFollower]:
    monkeypatch.setattr(agent_imports, "TAKE_OVER_SECONDS", 0.1, raising=False)
    following = BackgroundFollower(db, ConfigFile.of_home().settings())
    yield following
    following.stop()


def test_following_that_fails_is_started_again(
    db: SessionDB, follower: BackgroundFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, failures = Follower.run, iter([OSError("no more watches")])

    def fail_once(each: Follower, *arguments: object) -> bool:
        for failure in failures:
            raise failure
        return run(each, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Follower, "run", fail_once)
    ClaudeFile(Path.home()).exchange("hello", "Hi.")
    follower.start()
    wait_until(lambda: len(db.lists.sessions()) == 1)
    status = read_status()
    assert status is not None
    assert (status.restarts, status.last_failure) == (1, "no more watches")
    assert status.is_running


def test_following_is_taken_over_from_a_process_that_has_ended(
    db: SessionDB, follower: BackgroundFollower, hermes_home: Path
) -> None:
    ClaudeFile(Path.home()).exchange("hello", "Hi.")
    with hold_lock(hermes_home / "run" / LOCK_NAME) as is_ours:
        assert is_ours
        follower.start()
        time.sleep(0.3)
        assert db.lists.sessions() == []
    wait_until(lambda: len(db.lists.sessions()) == 1)
