"""`hermes demo`: sample data in a separate folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from hermes_cli.commands.dashboard.demo_data import home
from hermes_cli.commands.dashboard.demo_data.generator import TopicNames, topics, write
from hermes_core.clock import ManualClock
from hermes_core.instance_record import DASHBOARD
from hermes_state import SessionDB
from support.command_line import command
from support.daemons import wait_until
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock


def demo_folder(hermes_home: Path) -> Path:
    return hermes_home.with_name(f"{hermes_home.name}-demo")


def test_the_demo_creates_a_year_of_conversations_and_leaves_the_own_history_alone(
    hermes: Hermes, hermes_home: Path
) -> None:
    result = hermes("demo", "--make", "--json")
    assert result.code == 0, result.err
    folder = demo_folder(hermes_home)
    assert json.loads(result.out) == {"folder": str(folder), "is_there": True}
    assert list(hermes_home.iterdir()) == []
    with SessionDB(folder / "state.db", read_only=True) as db:
        stats = db.statistics.stats()
        days = {int(row["started_at"] // 86_400) for row in db.list_sessions_rich(limit=-1)}
    assert stats.sessions > 300
    assert len(days) > 100
    assert {"cli", "tui", "web", "telegram", "matrix"} <= set(stats.by_source)
    assert home.is_demo(folder)


def test_the_sample_data_is_reused_and_can_be_removed(hermes: Hermes, hermes_home: Path) -> None:
    hermes("demo", "--make")
    folder = demo_folder(hermes_home)
    before = (folder / "state.db").stat().st_ino
    assert hermes("demo", "--make").code == 0
    assert (folder / "state.db").stat().st_ino == before
    removed = hermes("demo", "--remove")
    assert str(folder) in removed.out
    assert not folder.exists()
    assert "No sample data" in hermes("demo", "--remove").out


def test_a_directory_without_the_marker_is_neither_used_nor_removed(
    hermes: Hermes, hermes_home: Path
) -> None:
    folder = demo_folder(hermes_home)
    folder.mkdir()
    (folder / "state.db").write_bytes(b"mine")
    refused = hermes("demo", "--make")
    assert refused.code != 0
    assert "Move it elsewhere" in refused.err
    assert "No sample data" in hermes("demo", "--remove").out
    assert (folder / "state.db").read_bytes() == b"mine"


def test_partial_sample_data_is_created_again(hermes: Hermes, hermes_home: Path) -> None:
    folder = demo_folder(hermes_home)
    (folder / "half").mkdir(parents=True)
    (folder / "half" / "state.db").write_bytes(b"half")
    (folder / home.MARKER).touch()
    assert hermes("demo", "--make").code == 0
    assert not (folder / "half").exists()
    with SessionDB(folder / "state.db", read_only=True) as db:
        assert db.session_count() > 300


def test_it_shows_the_dashboard_on_it_and_is_not_removed_under_it(
    hermes: Hermes, hermes_home: Path
) -> None:
    hermes("demo", "--make")
    folder = demo_folder(hermes_home)
    with subprocess.Popen(
        command("demo", "--no-open", "--json", "--port", "0"),
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        link = json.loads(process.stdout.readline())["link"]
        try:
            assert "#token=" in link
            assert DASHBOARD.is_running(folder)
            refused = hermes("demo", "--remove")
            assert "Stop it first" in refused.err
        finally:
            os.killpg(process.pid, signal.SIGINT)
    wait_until(lambda: not DASHBOARD.is_running(folder))
    assert not (hermes_home / "state.db").exists()


def test_the_demo_daemon_stops_before_its_folder_is_removed(
    hermes: Hermes, hermes_home: Path
) -> None:
    hermes("demo", "--make")
    folder = demo_folder(hermes_home)
    daemon = start_daemon(folder)
    removed = hermes("demo", "--remove")
    assert removed.code == 0, removed.err
    assert daemon.wait(timeout=PATIENCE_SECONDS) == 0
    assert not folder.exists()


def test_the_daemon_is_stopped_before_the_data_is_created_again(
    hermes: Hermes, hermes_home: Path
) -> None:
    hermes("demo", "--make")
    folder = demo_folder(hermes_home)
    daemon = start_daemon(folder)
    for path in folder.glob("state.db*"):
        path.unlink()
    assert hermes("demo", "--make").code == 0
    assert daemon.wait(timeout=PATIENCE_SECONDS) == 0
    with SessionDB(folder / "state.db", read_only=True) as db:
        assert db.session_count() > 300


def start_daemon(folder: Path) -> subprocess.Popen[bytes]:
    """A daemon that listens."""
    environment = os.environ | {"HERMES_HOME": str(folder)}
    daemon = subprocess.Popen(command("serve"), env=environment, stdout=subprocess.DEVNULL)
    wait_until((folder / "run" / "serve.json").exists)
    return daemon


def test_the_conversations_are_the_same_on_every_day(tmp_path: Path) -> None:
    wednesday, sunday = (
        titles_of_demo(tmp_path / f"{day}.db", datetime(2026, 11, day, 12).astimezone())
        for day in (18, 22)
    )
    assert wednesday == sunday


def titles_of_demo(path: Path, now: datetime) -> list[str | None]:
    """The titles of a demo that is created at a time, newest first."""
    clock = ManualClock(now.timestamp())
    with SessionDB(path, clock=clock) as db:
        write(db, clock, now)
        return [row["title"] for row in db.list_sessions_rich(limit=50)]


def test_every_topic_can_be_filled_in() -> None:
    filling = TopicNames(dict.fromkeys(("project", "module", "person", "guests", "weekday"), "x"))
    for topic in topics():
        for turn in topic.turns:
            for tool in turn.tools:
                assert "{project}" not in filling.json(tool.arguments)
                json.loads(filling.json(tool.arguments))
