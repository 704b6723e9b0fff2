"""The page talks to the agent, through the dashboard, with the real daemon and a scripted model."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hermes_core.instance_record import DAEMON
from hermes_dashboard.resources.chat import REFUSED
from support.daemons import ending, wait_until
from support.scripted import model, serving
from tui_gateway import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state import SessionDB
    from support.dashboards import Served

SLOW = "one two three four five six seven eight nine ten eleven twelve"


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with ending(), serving() as start:
        yield lambda steps: model(start(steps))


class Page:
    """A page's end of the socket."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.live = ""
        self._number = 0
        self._events: list[tuple[str, dict[str, Any]]] = []

    def send(self, method: str, **params: Any) -> int:
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.socket.send(json.dumps(frame))
        return self._number

    def error(self) -> dict[str, Any]:
        """The next error; events of the daemon may come before it."""
        while True:
            frame = self.receive()
            if "error" in frame:
                return dict(frame["error"])

    def receive(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.socket.recv(timeout=60))
        return found

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            frame = self.receive()
            if frame.get("id") == number:
                return frame
            self._events.append((frame["params"]["type"], frame["params"]["payload"]))

    def call(self, method: str, **params: Any) -> Any:
        if self.live:
            params.setdefault("session_id", self.live)
        found = self.answer(self.send(method, **params))
        assert "error" not in found, found
        return found["result"]

    def open(self, method: str = "session.create", **params: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.call(method, **params)
        self.live = found["session_id"]
        return found

    def until(self, wanted: str) -> dict[str, Any]:
        while True:
            if not self._events:
                params = self.receive()["params"]
                self._events.append((params["type"], params["payload"]))
            kind, payload = self._events.pop(0)
            if kind == wanted:
                return payload

    def shown_until(self, word: str) -> str:
        shown = ""
        while word not in shown:
            shown += self.until("message.delta")["text"]
        return shown


@contextmanager
def page(served: Served, **given: Any) -> Iterator[Page]:
    headers = given.pop("headers", served.headers)
    with connect(
        served.socket_url, additional_headers=headers, proxy=None, max_size=None, **given
    ) as socket:
        yield Page(socket)


def test_a_question_is_answered(served: Served, serve: Any, db: SessionDB) -> None:
    with page(served) as one:
        assert "prompt.submit" in one.until("gateway.ready")["methods"]
        opened = one.open(model=serve("[{say: Hello from the script.}]"), source="dashboard")
        one.call("prompt.submit", text="hi")
        assert one.until("message.complete")["text"] == "Hello from the script."
        stored = opened["stored_session_id"]
        said = [row["content"] for row in db.get_messages(stored)]
        assert said == ["hi", "Hello from the script."]


def test_a_browser_that_is_logged_in_may_talk(served: Served, serve: Any) -> None:
    serve("[]")
    word = served.access.cookies.make("")
    headers = {"Cookie": f"{served.access.doors.cookie}={word}"}
    with page(served, headers=headers, origin=served.url) as one:
        one.until("gateway.ready")


def test_a_page_that_is_lost_in_mid_answer_finds_it_going_on(served: Served, serve: Any) -> None:
    with page(served) as first:
        opened = first.open(model=serve(f"[{{say: {SLOW}, pause: 0.15}}]"))
        first.call("prompt.submit", text="count")
        shown = first.shown_until("three")
        first.socket.socket.close()  # without saying goodbye
    with page(served) as second:
        found = second.open("session.resume", session_id=opened["stored_session_id"])
        assert found["running"]
        assert found["inflight"]["text"].startswith(shown)
        assert second.until("message.complete")["text"] == SLOW


def test_what_is_not_for_pages_is_refused(served: Served, serve: Any) -> None:
    serve("[]")
    with page(served) as one:
        for method in sorted(REFUSED):
            found = one.answer(one.send(method, command="echo x", name="x"))
            assert found["error"]["code"] == frames.UNKNOWN_METHOD
            assert method in found["error"]["message"]
        hidden = '{"jsonrpc": "2.0", "id": 99, "method": "shell\\u002eexec", "params": {}}'
        one.socket.send(hidden)
        assert one.answer(99)["error"]["code"] == frames.UNKNOWN_METHOD
        twice = '{"jsonrpc": "2.0", "id": 98, "method": "x", "method": "shell.exec"}'
        one.socket.send(twice)
        assert "not for pages" in one.answer(98)["error"]["message"]
        one.socket.send('[{"jsonrpc": "2.0", "id": 97, "method": "shell.exec"}]')
        assert one.error()["code"] == frames.INVALID_REQUEST
        one.socket.send("no json")
        assert one.error()["code"] == frames.PARSE_ERROR


def test_a_frame_that_is_too_long_is_told_and_the_rest_goes_on(served: Served, serve: Any) -> None:
    serve("[]")
    with page(served) as one:
        one.until("gateway.ready")
        one.socket.send('{"x": "' + "x" * frames.MAX_FRAME_BYTES + '"}')
        assert one.error()["code"] == frames.PARSE_ERROR
        one.call("session.active_list")


def test_a_long_history_is_one_answer(served: Served, serve: Any, db: SessionDB) -> None:
    db.create_session("long", source="cli")
    for number in range(40):
        db.append_message("long", "user", f"{number} " + "x" * 100_000)
    with page(served) as one:
        found = one.open("session.resume", session_id="long", model=serve("[]"))
        assert sum(len(str(message)) for message in found["messages"]) > 3_000_000


def test_a_daemon_that_dies_closes_the_page_which_finds_another(served: Served, serve: Any) -> None:
    serve("[]")
    with page(served) as one:
        one.until("gateway.ready")
        place = DAEMON.find()
        assert place is not None
        os.kill(place.pid, signal.SIGKILL)
        with pytest.raises(ConnectionClosed) as caught:
            one.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
        assert "daemon" in caught.value.rcvd.reason
    wait_until(lambda: DAEMON.find() is None)
    with page(served) as other:
        other.until("gateway.ready")


def test_frames_are_text(served: Served, serve: Any) -> None:
    serve("[]")
    with page(served) as one:
        one.until("gateway.ready")
        one.socket.send(b"{}")
        with pytest.raises(ConnectionClosed) as caught:
            one.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1003


def test_the_end_of_the_dashboard_ends_the_socket_and_not_the_conversation(
    served: Served, serve: Any
) -> None:
    serve("[]")
    with page(served) as one:
        one.until("gateway.ready")
        assert served.app.meters.sockets._value.get() == 1
        served.app.farewell.say()
        with pytest.raises(ConnectionClosed) as caught:
            one.receive()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1012
    wait_until(lambda: served.app.meters.sockets._value.get() == 0)
    assert DAEMON.find() is not None
