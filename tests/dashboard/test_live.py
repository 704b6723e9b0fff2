"""Live events: open pages receive every change of the history."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from queue import Queue
from typing import TYPE_CHECKING, Any

from hermes_core import __version__
from hermes_core.errors import StoreError
from hermes_dashboard.resources import live
from hermes_dashboard.resources.gateway import GatewayStatus
from support.dashboards import NoGateway, dashboard, dashboard_context, wait_until
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

OTHER_PROCESS = """
import sys
from hermes_state.engine.sqlite import driver
driver.install()
from hermes_state import SessionDB
with SessionDB() as db:
    db.create_session(sys.argv[1], source="cli")
    db.append_message(sys.argv[1], "user", "hello from another process")
"""

LiveEvent = tuple[str, dict[str, Any]]


@contextmanager
def connected(served: RunningDashboard) -> Iterator[Queue[LiveEvent]]:
    """The events that a page receives."""
    events: Queue[LiveEvent] = Queue()

    def read() -> None:
        kind = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.put((kind, json.loads(line.removeprefix("data: "))))

    with served.client.stream("GET", "/api/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert events.get(timeout=PATIENCE_SECONDS) == ("hello", {"version": __version__})
        yield events
        served.app.shutdown_signal.send()
        thread.join(timeout=PATIENCE_SECONDS)
        assert not thread.is_alive()


def wait_for(events: Queue[LiveEvent], session_id: str) -> None:
    """Wait until a session is named."""
    while True:
        kind, data = events.get(timeout=PATIENCE_SECONDS)
        if kind == "change" and session_id in data["sessions"]:
            return


def wait_for_reload(events: Queue[LiveEvent]) -> None:
    """Wait for the event that reloads everything."""
    while events.get(timeout=PATIENCE_SECONDS) != ("change", {"sessions": []}):
        pass


def test_a_session_written_by_another_process_is_announced(served: RunningDashboard) -> None:
    with connected(served) as events:
        code = [sys.executable, "-P", "-c", OTHER_PROCESS, "20260101_000000_other"]
        subprocess.run(code, check=True, timeout=PATIENCE_SECONDS)
        wait_for(events, "20260101_000000_other")


def test_a_session_written_by_this_process_is_announced(
    served: RunningDashboard, db: SessionDB
) -> None:
    with connected(served) as events:
        db.create_session("one", source="cli")
        wait_for_reload(events)
        db.append_message("one", "user", "hello")
        wait_for(events, "one")
        db.set_session_title("one", "A title")
        assert events.get(timeout=PATIENCE_SECONDS)[0] == "change"


def test_the_end_of_a_scan_for_achievements_is_announced(
    served: RunningDashboard, hermes_home: Path
) -> None:
    snapshot = hermes_home / "plugins" / "hermes-achievements" / "scan_snapshot.json"
    snapshot.parent.mkdir(parents=True)
    with connected(served) as events:
        snapshot.write_text("{}")
        while events.get(timeout=PATIENCE_SECONDS) != ("achievements", {}):
            pass


def test_every_open_page_receives_events(served: RunningDashboard, db: SessionDB) -> None:
    with connected(served) as first, connected(served) as second:
        wait_until(lambda: listeners(served) == 2)
        db.create_session("one", source="cli")
        db.append_message("one", "user", "hello")
        wait_for(first, "one")
        wait_for(second, "one")
    wait_until(lambda: listeners(served) == 0)


def listeners(served: RunningDashboard) -> float:
    return served.app.metrics.listeners._value.get()


def test_a_closed_page_is_unsubscribed(served: RunningDashboard) -> None:
    with served.client.stream("GET", "/api/live") as stream:
        lines = stream.iter_lines()  # garbage collection would close it
        assert next(lines) == "event: hello"
        assert listeners(served) == 1
    wait_until(lambda: listeners(served) == 0)


def test_too_many_sessions_are_not_named(
    served: RunningDashboard, db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_NAMED_SESSIONS", 0)
    with connected(served) as events:
        db.create_session("one", source="cli")
        db.append_message("one", "user", "hello")
        wait_for_reload(events)


def test_a_gateway_change_is_announced(db: SessionDB) -> None:
    class Gateway(NoGateway):
        is_running = False

        def state(self) -> GatewayStatus:
            return GatewayStatus(is_running=self.is_running)

    gateway = Gateway(db)
    with dashboard(dashboard_context(db, gateway=gateway)) as served, connected(served) as events:
        gateway.is_running = True
        assert events.get(timeout=PATIENCE_SECONDS) == ("gateway", {})


def test_a_failing_gateway_does_not_stop_history_events(db: SessionDB) -> None:
    class Broken(NoGateway):
        def state(self) -> GatewayStatus:
            raise RuntimeError("no")

    with (
        dashboard(dashboard_context(db, gateway=Broken(db))) as served,
        connected(served) as events,
    ):
        for number in range(6):
            db.create_session(f"session {number}", source="cli")
            db.append_message(f"session {number}", "user", "hello")
            wait_for(events, f"session {number}")


def test_shutdown_ends_the_stream(db: SessionDB) -> None:
    with dashboard(dashboard_context(db)) as served:
        stream = served.client.send(served.client.build_request("GET", "/api/live"), stream=True)
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        events: Queue[list[str]] = Queue()
        threading.Thread(target=lambda: events.put(list(lines)), daemon=True).start()
        served.app.shutdown_signal.send()
        events.get(timeout=PATIENCE_SECONDS)
        stream.close()


async def test_a_slow_page_gets_a_reload_instead_of_a_backlog(db: SessionDB) -> None:
    live_events = live.LiveEvents(dashboard_context(db))
    async with live_events.subscribe() as queue:
        for number in range(200):
            live_events._publish(live.LiveEvent("change", {"sessions": [str(number)]}))
        assert queue.qsize() <= live.MAX_QUEUED_EVENTS
        assert queue.get_nowait() == live.FULL_RELOAD


def test_a_failed_poll_is_repeated(db: SessionDB) -> None:
    db.create_session("one", source="cli")
    detector = live.ChangeDetector(dashboard_context(db))
    detector.begin()
    db.append_message("one", "user", "hello")
    history = detector._history
    detector._history = FailingHistory(history)
    assert detector.poll(is_gateway_due=False) == []
    detector._history = history
    assert detector.poll(is_gateway_due=False) == [live.LiveEvent("change", {"sessions": ["one"]})]


class FailingHistory:
    """A history that temporarily fails to read."""

    def __init__(self, history: Any) -> None:
        self.version = history.version

    def mark(self) -> Any:
        raise StoreError("the disk is busy")
