"""The disk returns errors: nothing acknowledged is missing, nothing is stored twice."""

from __future__ import annotations

import random
import shutil
import time

import pytest

from acceptance.campaign import Contents, Worker, assert_healthy, size
from hermes_state import SessionDB

WRITE = "posix/io/rw/pwrite"
SYNC = "posix/io/sync/fdatasync"  # of SQLite
JOURNAL_SYNC = "posix/io/sync/fsync"
JOURNAL = "posix/io/rw/write"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        shutil.which("fiu-run") is None, reason="no fiu-run (Debian package fiu-utils)"
    ),
]


def suffer(folder, state_db, points, probability):
    arguments = (state_db, "one", ",".join(points), probability, size(50, 500))
    return Worker("io_errors.py", folder, *arguments, prefix=("fiu-run", "-x"))


def check(worker, state_db):
    SessionDB(state_db).close()
    acknowledged = [*worker.reports("stored"), *worker.reports("kept")]
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    missing = contents.missing([report["uid"] for report in acknowledged])
    assert missing == []
    assert contents.doubled() == 0
    numbers = [content.split()[0] for _id, _s, content in contents.rows if content[0] != "<"]
    assert numbers == sorted(numbers)
    assert_healthy(state_db)
    return {
        "acknowledged": len(acknowledged),
        "of_them_journaled": len(worker.reports("kept")),
        "refused": len(worker.reports("refused")),
        "missing": len(missing),
        "doubled": contents.doubled(),
    }


@pytest.mark.parametrize(
    ("points", "probability"),
    [
        ((WRITE,), 0.02),
        ((WRITE,), 0.1),
        ((SYNC,), 0.05),
        ((SYNC,), 0.5),
        ((WRITE, SYNC, JOURNAL, JOURNAL_SYNC), 0.2),
    ],
    ids=["write 2 %", "write 10 %", "sync 5 %", "sync 50 %", "everything 20 %"],
)
def test_errors_lose_nothing_and_pass(request, state_db, tmp_path, figures, points, probability):
    with suffer(tmp_path, state_db, points, probability) as worker:
        assert worker.wait(900) == 0, worker.error_output()
        recovered = worker.reports("recovered")[0]
        # The errors were really there, the process lived through them and stores again.
        assert sum(recovered["injected"].values()) > 0
        assert recovered["row"] > 0
        assert recovered["trouble"] is None
        assert {report["error"] for report in worker.reports("refused")} <= {"NotSavedError"}
        name = request.node.callspec.id
        figures(f"I/O errors, {name}", **recovered["injected"], **check(worker, state_db))


def test_a_kill_among_errors_loses_nothing(state_db, tmp_path, figures):
    kills = size(4, 40)
    injected = acknowledged = 0
    for number in range(kills):
        mount_point = state_db.parent / f"home{number}" / "state.db"
        with suffer(tmp_path, mount_point, (WRITE, SYNC, JOURNAL, JOURNAL_SYNC), 0.2) as worker:
            worker.wait_for("ready")
            time.sleep(random.uniform(0.2, 2.0))
            worker.kill()
            injected += "disk I/O error" in worker.error_output()
            acknowledged += check(worker, mount_point)["acknowledged"]
    figures("I/O errors, then kill -9", kills=kills, acknowledged=acknowledged, missing=0)
    assert injected
