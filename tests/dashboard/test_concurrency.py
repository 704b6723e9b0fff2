"""The server responds while long operations run."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

# Routes that wait without a thread: streams, and bodies written while they arrive.
ASYNC_ROUTES = {
    "/api/live", "/api/uploads", "/api/import", "/api/export", "/api/transcriptions",
    "/openapi.json",
}  # fmt: skip
PATHS = ("/api/sessions", "/api/overview", "/api/search?q=hello", "/api/analytics", "/api/health")


def fill(db: SessionDB, count: int) -> list[str]:
    names = [f"session{number:03}" for number in range(count)]
    for name in names:
        db.create_session(name, "cli", is_owned=False)
        db.append_message(name, "user", f"hello from {name}")
    return names


def check_responses(served: RunningDashboard) -> None:
    for path in PATHS:
        assert served.client.get(path).status_code == 200, path
    assert served.client.patch("/api/sessions/session000", json={"pinned": True}).status_code == 200


def test_requests_are_answered_while_a_backup_runs(
    served: RunningDashboard, db: SessionDB, tmp_path: Path
) -> None:
    fill(db, 20)
    started, proceed = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        started.set()
        assert proceed.wait(60)

    path = tmp_path / "backup.tar.gz"
    backup = threading.Thread(target=lambda: db.portable.backup_to(path, progress=wait))
    backup.start()
    assert started.wait(60)
    check_responses(served)
    assert backup.is_alive()
    proceed.set()
    backup.join(60)
    assert path.exists()


def test_requests_are_answered_while_the_trash_is_emptied(
    served: RunningDashboard, db: SessionDB
) -> None:
    names = fill(db, 60)
    db.delete_sessions(names[1:])
    purge = threading.Thread(target=lambda: served.client.delete("/api/trash"))
    purge.start()
    check_responses(served)
    purge.join(60)
    assert served.client.get("/api/sessions", params={"state": "all"}).json()["total"] == 1


def test_requests_are_answered_while_a_scan_runs(served: RunningDashboard, db: SessionDB) -> None:
    fill(db, 40)
    statuses: list[int] = []

    def rescan() -> None:
        path = "/api/plugins/hermes-achievements/rescan?full=true"
        statuses.append(served.client.post(path, timeout=PATIENCE_SECONDS).status_code)

    scan = threading.Thread(target=rescan)
    scan.start()
    check_responses(served)
    scan.join(60)
    assert statuses == [200]


def test_blocking_handlers_do_not_run_in_the_event_loop(served: RunningDashboard) -> None:
    waiting = {
        route.path
        for route in served.app.routes
        if isinstance(route, Route) and inspect.iscoroutinefunction(route.endpoint)
    }
    assert waiting <= ASYNC_ROUTES
