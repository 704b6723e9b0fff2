"""Clients of the daemon of a test's Hermes folder, and its shutdown."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from hermes_core import background_process, paths
from hermes_core.instance_record import DAEMON
from support.command_line import DAEMON_MODULES, FORK_SERVER, needs_own_interpreter
from support.waiting import PATIENCE_SECONDS, wait_until
from tui_gateway import daemon, openrpc
from tui_gateway.methods import METHODS
from tui_gateway.protocol import ConnectionLost, payload_of, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.fork_server import ForkedProcess
    from tui_gateway.protocol import ClientEvent

ESTABLISHED, CLOSE_WAIT = "01", "08"  # states in /proc/net/tcp


@contextlib.contextmanager
def stopping_daemon(*, has_own_interpreter: bool = False) -> Iterator[None]:
    """Stop the daemon that a test started, if any.

    Daemons that this process starts are forks of the fork server, except for tests of the start.
    """
    processes = ForkedBackgroundProcesses()
    with pytest.MonkeyPatch.context() as patch:
        if not has_own_interpreter and not needs_own_interpreter({}):
            patch.setattr(background_process, "start", processes.start)
            patch.setattr(background_process, "exit_status", processes.exit_status)
        try:
            yield
        finally:
            record = DAEMON.find()
            if record is not None:
                os.kill(record.pid, signal.SIGTERM)
                wait_until(lambda: DAEMON.find() is None)
            processes.wait()


def daemon_connections() -> int:
    """The number of clients that the daemon has not given up."""
    record = DAEMON.find()
    assert record is not None
    port = f":{urlsplit(record.url).port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines())
    return sum(row[1].endswith(port) and row[3] in {ESTABLISHED, CLOSE_WAIT} for row in rows)


class ForkedBackgroundProcesses:
    """The functions of `background_process`, with forks of the fork server."""

    def __init__(self) -> None:
        self._processes: dict[int, ForkedProcess] = {}

    def start(self, log: Path, module: str, *arguments: str) -> int:
        paths.private_folder(log.parent)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, paths.FILE_MODE)
        try:
            process = FORK_SERVER.start(
                module,
                list(arguments),
                dict(paths.environment()),
                (output, output),
                DAEMON_MODULES,
                has_own_session=True,
            )
        finally:
            os.close(output)
        self._processes[process.pid] = process
        return process.pid

    def exit_status(self, process_id: int) -> int | None:
        return self._processes[process_id].poll()

    def wait(self) -> None:
        """Wait for the end of all processes."""
        for process in self._processes.values():
            process.wait(PATIENCE_SECONDS)


class DaemonClient:
    """A client of the daemon."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._client = daemon.connect_to_daemon(self._on_event)
        self.live = ""

    def _on_event(self, _session: str, event: ClientEvent) -> None:
        payload = json.loads(json.dumps(payload_of(event), default=to_json))
        if event.kind != ConnectionLost.kind:
            assert set(payload) == set(openrpc.fields_of_type(openrpc.EVENTS[event.kind])), (
                event.kind
            )
        self._events.put((event.kind, payload))

    def call(self, method: str, **params: Any) -> Any:
        if self.live:
            params.setdefault("session_id", self.live)
        result = self._client.call(method, **params)
        assert set(result) <= openrpc.result_fields(METHODS[method]), method
        return result

    def open(self, method: str = "session.create", **params: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.call(method, **params)
        self.live = result["session_id"]
        return result

    def wait_for(self, event_kind: str) -> dict[str, Any]:
        while True:
            kind, payload = self._events.get(timeout=PATIENCE_SECONDS)
            if kind == event_kind:
                return payload

    def text_until(self, word: str) -> str:
        text = ""
        while word not in text:
            text += self.wait_for("message.delta")["text"]
        return text

    def close(self) -> None:
        """Disconnect, as a closed window does."""
        self._client.close()
