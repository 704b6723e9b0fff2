"""A full disk: acknowledged messages stay, and the process continues once space is free."""

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
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        (folder / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


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
    stored, result = worker.reports("stored"), worker.reports("kept")
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    assert contents.missing([report["uid"] for report in (*stored, *result)]) == []
    assert contents.doubled() == 0
    numbers = [content.split()[0] for _id, _session, content in contents.rows]
    assert numbers == sorted(numbers)
    refused = {report["uid"] for report in worker.reports("refused")}
    assert not refused & contents.row_of.keys()
    assert {report["error"] for report in worker.reports("refused")} <= {"NotSavedError"}
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
    assert worker.wait() == 0, worker.error_output()
    recovered = worker.reports("recovered")[0]
    assert recovered["trouble"] is None
    after = [report for report in worker.reports()[:] if report["kind"] in {"stored", "kept"}][-30:]
    assert {report["kind"] for report in after} == {"stored"}
    figures(f"disk full, then room again ({wording(request)})", **check(worker, state_db))


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(size(1, 5)))
def test_a_process_killed_on_a_full_disk_loses_nothing(request, filled, small_disk, figures, turn):
    worker, state_db = filled
    worker.kill()
    (small_disk / "ballast").unlink()
    figures(f"disk full, then kill -9 ({wording(request)}, {turn + 1})", **check(worker, state_db))


@pytest.mark.slow
def test_the_user_is_notified(filled):
    worker, _state_db = filled
    assert all("journal" in report["trouble"] for report in worker.reports("kept"))
    for report in worker.reports("refused"):
        assert report["error"] == "NotSavedError"
        assert "Free some space" in report["text"]
