"""Changes as they happen: whoever writes to the history, an open page hears of it."""

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
from support.dashboards import NoGateway, dashboard, parts_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from hermes_state import SessionDB
    from support.dashboards import Served

OTHER_PROCESS = """
import sys
from hermes_state.engine import driver
driver.install()
from hermes_state import SessionDB
with SessionDB() as db:
    db.create_session(sys.argv[1], source="cli")
    db.append_message(sys.argv[1], "user", "hello from another process")
"""

News = tuple[str, dict[str, Any]]


@contextmanager
def listening(served: Served) -> Iterator[Queue[News]]:
    """What a page hears, from the first word on."""
    heard: Queue[News] = Queue()

    def read() -> None:
        kind = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                heard.put((kind, json.loads(line.removeprefix("data: "))))

    with served.client.stream("GET", "/api/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert heard.get(timeout=30) == ("hello", {"version": __version__})
        yield heard
        served.app.farewell.say()
        thread.join(timeout=30)
        assert not thread.is_alive()


def wait_for(heard: Queue[News], session_id: str) -> None:
    """Wait until a session is named."""
    while True:
        kind, facts = heard.get(timeout=30)
        if kind == "change" and session_id in facts["sessions"]:
            return


def wait_for_everything(heard: Queue[News]) -> None:
    """Wait for the word that means to look again at everything."""
    while heard.get(timeout=30) != ("change", {"sessions": []}):
        pass


def test_a_session_that_another_process_writes_is_heard_of(served: Served) -> None:
    with listening(served) as heard:
        code = [sys.executable, "-P", "-c", OTHER_PROCESS, "20260101_000000_other"]
        subprocess.run(code, check=True, timeout=60)
        wait_for(heard, "20260101_000000_other")


def test_what_is_written_here_is_heard_of(served: Served, db: SessionDB) -> None:
    with listening(served) as heard:
        db.create_session("one", source="cli")
        wait_for_everything(heard)
        db.append_message("one", "user", "hello")
        wait_for(heard, "one")
        db.set_session_title("one", "A title")
        assert heard.get(timeout=30)[0] == "change"


def test_everybody_who_listens_hears(served: Served, db: SessionDB) -> None:
    with listening(served) as first, listening(served) as second:
        wait_until(lambda: listeners(served) == 2)
        db.create_session("one", source="cli")
        db.append_message("one", "user", "hello")
        wait_for(first, "one")
        wait_for(second, "one")
    wait_until(lambda: listeners(served) == 0)


def listeners(served: Served) -> float:
    return served.app.meters.listeners._value.get()


def test_who_leaves_is_noticed(served: Served) -> None:
    with served.client.stream("GET", "/api/live") as stream:
        lines = stream.iter_lines()  # one that is let go of leaves
        assert next(lines) == "event: hello"
        assert listeners(served) == 1
    wait_until(lambda: listeners(served) == 0)


def test_too_many_sessions_are_not_named(
    served: Served, db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_NAMED", 0)
    with listening(served) as heard:
        db.create_session("one", source="cli")
        db.append_message("one", "user", "hello")
        wait_for_everything(heard)


def test_a_change_of_the_gateway_is_heard_of(db: SessionDB) -> None:
    class Gateway(NoGateway):
        is_running = False

        def state(self) -> dict[str, Any]:
            return {**super().state(), "is_running": self.is_running}

    gateway = Gateway()
    with dashboard(parts_of(db, gateway=gateway)) as served, listening(served) as heard:
        gateway.is_running = True
        assert heard.get(timeout=30) == ("gateway", {})


def test_a_gateway_that_cannot_be_looked_at_stops_nothing(db: SessionDB) -> None:
    class Broken(NoGateway):
        def state(self) -> dict[str, Any]:
            raise RuntimeError("no")

    with dashboard(parts_of(db, gateway=Broken())) as served, listening(served) as heard:
        for number in range(6):
            db.create_session(f"session {number}", source="cli")
            db.append_message(f"session {number}", "user", "hello")
            wait_for(heard, f"session {number}")


def test_the_end_of_the_server_ends_the_stream(db: SessionDB) -> None:
    with dashboard(parts_of(db)) as served:
        stream = served.client.send(served.client.build_request("GET", "/api/live"), stream=True)
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        heard: Queue[list[str]] = Queue()
        threading.Thread(target=lambda: heard.put(list(lines)), daemon=True).start()
        served.app.farewell.say()
        heard.get(timeout=30)
        stream.close()


async def test_who_does_not_listen_keeps_nobody_waiting(db: SessionDB) -> None:
    found = live.Watcher(parts_of(db))
    async with found.listening() as queue:
        for number in range(200):
            found._tell(live.News("change", {"sessions": [str(number)]}))
        assert queue.qsize() <= live.MAX_WAITING
        assert queue.get_nowait() == live.EVERYTHING


def test_a_look_that_fails_half_way_is_made_again(db: SessionDB) -> None:
    db.create_session("one", source="cli")
    sight = live.Sight(parts_of(db))
    sight.begin()
    db.append_message("one", "user", "hello")
    history = sight._history
    sight._history = Forgetful(history)
    assert sight.news(is_gateway_due=False) == []
    sight._history = history
    assert sight.news(is_gateway_due=False) == [live.News("change", {"sessions": ["one"]})]


class Forgetful:
    """A history that cannot be read just now."""

    def __init__(self, history: Any) -> None:
        self.version = history.version

    def mark(self) -> Any:
        raise StoreError("the disk is busy")
