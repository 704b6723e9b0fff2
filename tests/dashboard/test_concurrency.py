"""Whatever else goes on, the page is answered."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import Served

# What waits without a thread: streams, and bodies that are written as they come.
WAITING = {"/api/live", "/api/uploads", "/api/import", "/api/export", "/openapi.json"}
ASKED = ("/api/sessions", "/api/overview", "/api/search?q=hello", "/api/analytics", "/api/health")


def fill(db: SessionDB, count: int) -> list[str]:
    names = [f"talk{number:03}" for number in range(count)]
    for name in names:
        db.create_session(name, "cli", is_owned=False)
        db.append_message(name, "user", f"hello from {name}")
    return names


def is_answered(served: Served) -> None:
    for path in ASKED:
        assert served.client.get(path).status_code == 200, path
    assert served.client.patch("/api/sessions/talk000", json={"pinned": True}).status_code == 200


def test_the_page_is_answered_while_a_backup_runs(
    served: Served, db: SessionDB, tmp_path: Path
) -> None:
    fill(db, 20)
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        begun.set()
        assert go_on.wait(60)

    path = tmp_path / "backup.tar.gz"
    backup = threading.Thread(target=lambda: db.backup_to(path, progress=wait))
    backup.start()
    assert begun.wait(60)
    is_answered(served)
    assert backup.is_alive()
    go_on.set()
    backup.join(60)
    assert path.exists()


def test_the_page_is_answered_while_old_sessions_are_removed_for_good(
    served: Served, db: SessionDB
) -> None:
    names = fill(db, 60)
    db.delete_sessions(names[1:])
    purge = threading.Thread(target=lambda: served.client.delete("/api/trash"))
    purge.start()
    is_answered(served)
    purge.join(60)
    assert served.client.get("/api/sessions", params={"state": "all"}).json()["total"] == 1


def test_the_page_is_answered_while_a_scan_runs(served: Served, db: SessionDB) -> None:
    fill(db, 40)
    answers: list[int] = []

    def rescan() -> None:
        path = "/api/plugins/hermes-achievements/rescan?full=true"
        answers.append(served.client.post(path, timeout=60).status_code)

    scan = threading.Thread(target=rescan)
    scan.start()
    is_answered(served)
    scan.join(60)
    assert answers == [200]


def test_nothing_that_takes_long_is_done_in_the_event_loop(served: Served) -> None:
    waiting = {
        route.path
        for route in served.app.routes
        if isinstance(route, Route) and inspect.iscoroutinefunction(route.endpoint)
    }
    assert waiting <= WAITING
