"""The disk is full: what was acknowledged stays, and the process goes on when there is room."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import Contents, Worker, assert_healthy, size
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BALLAST_BYTES = 3 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB, partly filled with a file that can be removed."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        (place / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(params=["journal on the same disk", "journal on another disk"])
def filled(
    request: pytest.FixtureRequest, small_disk: Path, tmp_path: Path
) -> Iterator[tuple[Worker, Path]]:
    """A worker that has filled the disk and waits."""
    state_db = small_disk / "home" / "state.db"
    if request.param == "journal on another disk":
        state_db.parent.mkdir()
        (tmp_path / "spool").mkdir()
        (state_db.parent / "spool").symlink_to(tmp_path / "spool")
    with Worker("fill_disk.py", tmp_path, state_db, "one", tmp_path / "go") as worker:
        worker.wait_for("full", 120)
        yield worker, state_db


def wording(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["filled"])


def check(worker: Worker, state_db: Path) -> dict[str, int]:
    SessionDB(state_db).close()
    stored, result = worker.said("stored"), worker.said("kept")
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    assert contents.missing([fact["uid"] for fact in (*stored, *result)]) == []
    assert contents.doubled() == 0
    numbers = [content.split()[0] for _id, _session, content in contents.rows]
    assert numbers == sorted(numbers)
    refused = {fact["uid"] for fact in worker.said("refused")}
    assert not refused & contents.row_of.keys()
    assert {fact["error"] for fact in worker.said("refused")} <= {"NotSavedError"}
    assert refused or result
    assert_healthy(state_db)
    return {
        "stored": len(stored),
        "kept_in_journal": len(result),
        "refused": len(refused),
        "missing": 0,
        "doubled": 0,
    }


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_needs_no_restart(
    request, filled, small_disk, tmp_path, figures
):
    worker, state_db = filled
    (small_disk / "ballast").unlink()
    (tmp_path / "go").touch()
    assert worker.wait() == 0, worker.complaints()
    recovered = worker.said("recovered")[0]
    assert recovered["trouble"] is None
    after = [fact for fact in worker.said()[:] if fact["kind"] in {"stored", "kept"}][-30:]
    assert {fact["kind"] for fact in after} == {"stored"}
    figures(f"disk full, then room again ({wording(request)})", **check(worker, state_db))


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(size(1, 5)))
def test_a_process_killed_on_a_full_disk_loses_nothing(request, filled, small_disk, figures, turn):
    worker, state_db = filled
    worker.kill()
    (small_disk / "ballast").unlink()
    figures(f"disk full, then kill -9 ({wording(request)}, {turn + 1})", **check(worker, state_db))


@pytest.mark.slow
def test_the_user_is_told(filled):
    worker, _state_db = filled
    assert all("journal" in fact["trouble"] for fact in worker.said("kept"))
    for fact in worker.said("refused"):
        assert fact["error"] == "NotSavedError"
        assert "Free some space" in fact["text"]
