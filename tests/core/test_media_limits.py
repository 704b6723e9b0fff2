"""The media folder keeps its limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gateway.process.media_limits import CHECK_SECONDS, MediaLimits, MediaPruning, prune
from hermes_core.media_store import MediaStore

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86400.0
NOW = 2_000_000_000.0


def store(folder: Path, content: bytes, days_ago: float) -> Path:
    path = MediaStore(folder).keep(content, "a.bin").path
    os.utime(path, (NOW - days_ago * DAY, NOW - days_ago * DAY))
    return path


def test_old_files_are_deleted_if_that_is_wanted(tmp_path: Path) -> None:
    old, new = store(tmp_path, b"old", 31), store(tmp_path, b"new", 29)
    assert prune(tmp_path, MediaLimits(0, 0), NOW) == 0
    assert prune(tmp_path, MediaLimits(0, 30 * DAY), NOW) == 1
    assert (old.exists(), new.exists()) == (False, True)


def test_the_oldest_files_make_room_but_no_file_of_today(tmp_path: Path) -> None:
    files = [store(tmp_path, bytes([day]) * 100, day) for day in range(6)]
    assert prune(tmp_path, MediaLimits(600, 0), NOW) == 0
    assert prune(tmp_path, MediaLimits(500, 0), NOW) == 2  # down to 450 bytes
    assert [file.exists() for file in files] == [True] * 4 + [False] * 2
    assert prune(tmp_path, MediaLimits(1, 0), NOW) == 3
    assert files[0].exists()


def test_copies_of_sent_files_are_deleted_after_a_week(tmp_path: Path) -> None:
    sent = tmp_path / "sent" / "abc" / "Report.pdf"
    sent.parent.mkdir(parents=True)
    sent.write_bytes(b"%PDF")
    os.utime(sent, (NOW - 8 * DAY, NOW - 8 * DAY))
    assert prune(tmp_path, MediaLimits(0, 0), NOW) == 1
    assert not sent.parent.exists()


def test_a_file_that_is_sent_again_is_new_again(tmp_path: Path) -> None:
    path = MediaStore(tmp_path).keep(b"content", "a.bin").path
    os.utime(path, (0, 0))
    MediaStore(tmp_path).keep(b"content", "b.bin")
    assert path.stat().st_mtime > 0


def test_the_folder_is_looked_at_once_an_hour_also_after_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    now = [NOW]
    pruning = MediaPruning(tmp_path, MediaLimits(0, DAY), lambda: now[0])
    for passed, deleted in ((0.0, 1), (CHECK_SECONDS / 2, 0), (CHECK_SECONDS, 1), (-5 * DAY, 1)):
        now[0] = NOW + passed
        path = store(tmp_path, b"x", 0)
        os.utime(path, (now[0] - 2 * DAY, now[0] - 2 * DAY))
        assert pruning.run_if_due() == deleted
