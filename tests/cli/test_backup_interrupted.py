"""Backups of a large history that are killed, stopped or run out of space, as real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from support.command_line import command, start_program
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Hermes

MEGABYTE = 1 << 20
LARGE_MEGABYTES = 64
OLD_BACKUP = Path(__file__).parent / "backups" / "backup-by-zlib-level-6.zip"
# Fills a small disk with a backup, and prints the exit code, the error and what is left.
BACK_UP_TO_SMALL_DISK = """
import json, os, subprocess, sys
disk, size, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", disk],
                         capture_output=True, text=True)
if mounted.returncode:
    print(json.dumps({"problem": mounted.stderr}))
    sys.exit()
done = subprocess.run(arguments, capture_output=True, text=True)
print(json.dumps({"code": done.returncode, "err": done.stderr, "left": os.listdir(disk)}))
"""


@pytest.fixture(scope="module")
def large_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history that a backup needs several parts for; half of each byte is random."""
    path = tmp_path_factory.mktemp("large") / "state.db"
    with SessionDB(path) as db:
        db.create_session("large", "cli")
        for _ in range(LARGE_MEGABYTES):
            db.append_message("large", "user", content=os.urandom(MEGABYTE // 2).hex())
    return path


@pytest.fixture
def large_history(large_store: Path, hermes_home: Path) -> Path:
    """The large history in the Hermes folder of this test; the last change is not recent."""
    shutil.copyfile(large_store, hermes_home / "state.db")
    past = time.time() - 60
    os.utime(hermes_home / "state.db", (past, past))
    return hermes_home


@pytest.fixture
def target_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def largest(folder: Path, pattern: str) -> int:
    sizes = [path.stat().st_size for path in folder.glob(f".hermes-backup-*/{pattern}")]
    return max(sizes, default=0)


def is_copying(folder: Path) -> bool:
    return largest(folder, "*.db") > 0


def is_packing(folder: Path) -> bool:
    return largest(folder, "archive") > 20 * MEGABYTE  # two parts or more


def interrupt(folder: Path, is_time: Callable[[Path], bool], number: signal.Signals) -> int:
    """Start a backup and send it a signal at a certain time; returns its exit code."""
    for _ in range(10):
        with Path(os.devnull).open("wb") as null:
            streams = (null.fileno(), null.fileno())
            backup = start_program("hermes_cli", "backup", "b.zip", streams=streams)
        while backup.poll() is None:
            try:
                if is_time(folder):
                    backup.send_signal(number)
                    break
            except FileNotFoundError:
                continue  # it ended meanwhile
            time.sleep(0.001)
        code = backup.wait(PATIENCE_SECONDS)
        if not (folder / "b.zip").exists():
            return code
        (folder / "b.zip").unlink()  # it ended before the signal: try again
    pytest.fail("every backup ended before the signal")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(store: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in connection.execute("SELECT content FROM messages ORDER BY id")]


def restored_contents(hermes: Hermes, folder: Path) -> list[str]:
    done = hermes("restore", "b.zip", "--to", "restored")
    assert done.code == 0, done.err
    return contents(folder / "restored" / "state.db")


def test_a_killed_backup_is_continued(
    hermes: Hermes, large_history: Path, target_folder: Path
) -> None:
    assert interrupt(target_folder, is_packing, signal.SIGKILL) == -signal.SIGKILL
    work = next(target_folder.glob(".hermes-backup-*"))
    # A mark in the snapshot proves that it is used again, and not taken again.
    with closing(sqlite3.connect(work / "snapshot.db")) as connection:
        connection.execute("UPDATE sessions SET model = 'from-the-snapshot'")
        connection.commit()
    done = hermes("backup", "b.zip", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["reused_bytes"] >= 16 * MEGABYTE
    assert names_in(target_folder) == ["b.zip"]
    assert restored_contents(hermes, target_folder) == contents(large_history / "state.db")
    with SessionDB(target_folder / "restored" / "state.db", read_only=True) as db:
        session = db.get_session("large")
    assert session is not None
    assert session["model"] == "from-the-snapshot"


def test_a_continued_backup_has_what_was_written_meanwhile(
    hermes: Hermes, large_history: Path, target_folder: Path
) -> None:
    interrupt(target_folder, is_packing, signal.SIGKILL)
    with SessionDB() as db:
        db.append_message("large", "user", content="after the kill")
    done = hermes("backup", "b.zip")
    assert done.code == 0, done.err
    assert names_in(target_folder) == ["b.zip"]
    result = restored_contents(hermes, target_folder)
    assert result[-1] == "after the kill"
    assert result == contents(large_history / "state.db")


def test_a_backup_killed_while_it_copies_starts_again(
    hermes: Hermes, large_history: Path, target_folder: Path
) -> None:
    interrupt(target_folder, is_copying, signal.SIGKILL)
    done = hermes("backup", "--json")
    assert done.code == 0, done.err
    assert names_in(target_folder) == [Path(json.loads(done.out)["path"]).name]


def test_a_part_damaged_by_a_power_failure_is_compressed_again(
    hermes: Hermes, large_history: Path, target_folder: Path
) -> None:
    interrupt(target_folder, is_packing, signal.SIGKILL)
    parts = sorted(target_folder.glob(".hermes-backup-*/parts/*"))
    for part in parts:
        part.write_bytes(bytes(part.stat().st_size))
    done = hermes("backup", "b.zip", "--json")
    assert (done.code, json.loads(done.out)["reused_bytes"]) == (0, 0)
    assert restored_contents(hermes, target_folder) == contents(large_history / "state.db")


def test_the_work_of_another_history_is_removed_not_used(
    hermes: Hermes, large_history: Path, target_folder: Path, tmp_path: Path
) -> None:
    interrupt(target_folder, is_packing, signal.SIGKILL)
    other = tmp_path / "other-home"
    with SessionDB(other / "state.db") as db:
        db.create_session("other", "cli")
    done = hermes("backup", "b.zip", "--json", HERMES_HOME=str(other))
    assert (done.code, json.loads(done.out)["reused_bytes"]) == (0, 0)
    assert names_in(target_folder) == ["b.zip"]


def test_two_backups_into_one_folder_at_the_same_time(
    large_history: Path, target_folder: Path
) -> None:
    backups = [subprocess.Popen(command("backup", f"{number}.zip")) for number in range(2)]
    assert [backup.wait(PATIENCE_SECONDS) for backup in backups] == [0, 0]
    assert names_in(target_folder) == ["0.zip", "1.zip"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("is_time", [is_copying, is_packing])
def test_a_stopped_backup_leaves_nothing(
    large_history: Path,
    target_folder: Path,
    number: signal.Signals,
    is_time: Callable[[Path], bool],
) -> None:
    assert interrupt(target_folder, is_time, number) == 128 + number
    assert names_in(target_folder) == []


@pytest.mark.parametrize("phase", ["copying", "packing"])
def test_a_backup_to_a_full_disk_says_so_and_leaves_nothing(
    large_history: Path, tmp_path: Path, phase: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = {"copying": LARGE_MEGABYTES // 2, "packing": LARGE_MEGABYTES * 3 // 2}[phase]
    arguments = json.dumps(command("backup", f"{disk}/b.zip"))
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", BACK_UP_TO_SMALL_DISK, disk, str(size),
         arguments],
        capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    result = json.loads(done.stdout) if done.stdout else {"problem": done.stderr}
    if "problem" in result:
        pytest.skip(f"nothing can be mounted here: {result['problem']}")
    assert (result["code"], result["left"]) == (1, [])
    assert f"The disk that holds {disk}/b.zip is full." in result["err"]


def test_the_fast_compression_level_is_applied(
    hermes: Hermes, hermes_home: Path, target_folder: Path
) -> None:
    words = Path(zipfile.__file__).read_text(encoding="utf-8").split()
    with SessionDB() as db:
        db.create_session("s", "cli")
        for start in range(0, len(words), 50):
            db.append_message("s", "user", content=" ".join(words[start : start + 500]))
    assert hermes("backup", "b.zip").code == 0
    with zipfile.ZipFile("b.zip") as archive:
        content = archive.read("state.db")
        size = archive.getinfo("state.db").compress_size
    fast, thorough = len(zlib.compress(content, 1)), len(zlib.compress(content, 6))
    assert abs(size - fast) < abs(size - thorough)


def test_a_backup_is_written_without_the_fast_library(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    program = (
        "import sys; sys.modules['isal'] = None; sys.path.pop(0); "
        "from hermes_cli.main import main; sys.exit(main(['backup', 'b.zip']))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert restored_contents(hermes, target_folder) == contents(history / "state.db")


def test_a_backup_of_an_earlier_release_is_restored(hermes: Hermes, target_folder: Path) -> None:
    shutil.copyfile(OLD_BACKUP, target_folder / "b.zip")
    result = restored_contents(hermes, target_folder)
    expected = [f"message {number} of session {i}" for i in range(3) for number in range(20)]
    assert result == expected
    assert (target_folder / "restored" / "config.yaml").read_text() == "display:\n  color: never\n"


def test_a_backup_from_within_the_hermes_folder_removes_its_copy(
    hermes: Hermes, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(history)
    left = history / ".hermes-backup-of-an-earlier-release"
    left.mkdir()
    (left / "state.db").write_text("a copy")
    done = hermes("backup", "b.zip")
    assert done.code == 0, done.err
    assert not list(history.glob(".hermes-backup-*"))
