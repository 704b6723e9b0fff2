"""Atomic writes, folder locks, and damaged JSON files."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from hermes_core import atomic_files
from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.clock import ManualClock
from hermes_core.json_files import read_json, write_json
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.clock

CLOCK = ManualClock(now=1_750_000_000.0)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "files"
    path.mkdir()
    return path


def test_content_is_replaced_and_private(folder):
    path = folder / "a"
    path.write_text("old")
    path.chmod(0o644)
    write_atomically(path, "nëw")
    assert path.read_bytes() == "nëw".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_atomically(path, b"\xff")
    assert path.read_bytes() == b"\xff"


def test_missing_folders_are_created_private(folder):
    write_atomically(folder / "x" / "y", "z")
    assert stat.S_IMODE((folder / "x").stat().st_mode) == 0o700


def test_a_failed_write_leaves_the_old_file_and_nothing_else(folder, monkeypatch):
    path = folder / "a"
    write_atomically(path, "old")

    def disk_full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in folder.iterdir()] == ["a"]


def test_file_and_folder_are_synced_in_order(folder, monkeypatch):
    events = []
    real_sync, real_replace = os.fsync, type(folder).replace

    def sync(handle):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        events.append(f"sync {kind}")
        real_sync(handle)

    def replace(self, target):
        events.append("replace")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(type(folder), "replace", replace)
    write_atomically(folder / "a", "x")
    assert events == ["sync file", "replace", "sync folder"]


def test_abandoned_temporary_files_are_deleted_but_not_those_in_use(folder):
    old, fresh, other = folder / ".a.1-x.tmp", folder / ".a.2-y.tmp", folder / ".b.1-x.tmp"
    for path in (old, fresh, other):
        path.write_text("part")
    now = fresh.stat().st_mtime  # the clock of the file system
    for path, at in ((old, now - 7200), (fresh, now), (other, now - 7200)):
        os.utime(path, (at, at))
    write_atomically(folder / "a", "x")
    assert not old.exists()
    assert fresh.exists()
    assert other.exists()


def test_a_folder_lock_blocks_others_until_it_is_released(folder):
    entered = threading.Event()

    def other():
        with folder_locked(folder):
            entered.set()

    thread = threading.Thread(target=other)
    with folder_locked(folder):
        thread.start()
        assert not entered.wait(0.1)
    assert entered.wait(PATIENCE_SECONDS)
    thread.join()


def test_json_is_read_back_unchanged(folder):
    value = {"a": [1, None, "é\ud800\x00"], "b": {"c": True}}
    write_json(folder / "a.json", value)
    assert read_json(folder / "a.json", None, CLOCK) == (value, None)
    assert (folder / "a.json").read_text().isascii()


def test_numbers_that_json_does_not_have_are_refused(folder):
    with pytest.raises(ValueError, match="JSON"):
        write_json(folder / "a.json", float("nan"))
    assert list(folder.iterdir()) == []


def test_a_missing_file_gives_the_default(folder):
    assert read_json(folder / "a.json", {"x": 1}, CLOCK) == ({"x": 1}, None)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"\0" * 4096, b"[" * 100_000])
def test_a_damaged_file_is_renamed_and_reported(folder, data, caplog):
    path = folder / "a.json"
    path.write_bytes(data)
    read = read_json(path, [], CLOCK)
    assert read.value == []
    assert read.set_aside == folder / "a.json.damaged-20250615T150640Z"
    assert read.set_aside.read_bytes() == data
    assert not path.exists()
    assert "a.json" in caplog.text


def test_several_damaged_files_of_one_second_are_all_kept(folder):
    for number in range(3):
        (folder / "a.json").write_text(f"damage {number}")
        read_json(folder / "a.json", None, CLOCK)
    results = sorted(path.read_text() for path in folder.iterdir())
    assert results == ["damage 0", "damage 1", "damage 2"]


def test_a_file_repaired_by_another_process_is_not_renamed(folder, monkeypatch):
    path = folder / "a.json"
    path.write_text("{")
    real = json.loads

    def loads_during_repair(data):
        if data == b"{":
            write_json(path, "good")
        return real(data)

    monkeypatch.setattr(json, "loads", loads_during_repair)
    assert read_json(path, None, CLOCK) == ("good", None)


def test_a_file_that_cannot_be_read_is_an_error_not_a_default(folder):
    (folder / "a.json").mkdir()
    with pytest.raises(IsADirectoryError):
        read_json(folder / "a.json", None, CLOCK)


WRITER = """
import sys
from pathlib import Path
from hermes_core.json_files import write_json
number = 0
while True:
    number += 1
    write_json(Path(sys.argv[1]), {"number": number, "filling": [number] * 20_000})
"""


def test_a_writer_killed_at_any_time_leaves_a_complete_file(folder):
    path = folder / "a.json"
    write_json(path, {"number": 0, "filling": [0] * 20_000})
    seen = set()
    for _ in range(12):
        before = path.stat().st_ino
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while path.stat().st_ino == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        assert writer.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        value = json.loads(path.read_bytes())
        assert value["filling"] == [value["number"]] * 20_000
        seen.add(value["number"])
    assert seen != {0}


def test_the_age_limit_of_temporary_files_exceeds_any_write():
    assert atomic_files._ABANDONED_SECONDS >= 600
