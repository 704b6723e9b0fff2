"""Requests in, answers and events out: the same for a pipe, a socket and a test."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from hermes_cli import plugins
from hermes_cli.plugins.delivery import Delivery
from hermes_core.errors import HermesError
from hermes_core.isolate import Step, attempt
from hermes_core.mentions import is_mentioned
from tui_gateway import frames, server
from tui_gateway.frames import (
    BUSY,
    CRASHED,
    NO_SESSION,
    UNKNOWN_METHOD,
    Request,
    RpcError,
)
from tui_gateway.live import Live
from tui_gateway.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.talking import Wish
    from hermes_state import SessionDB

log = logging.getLogger(__name__)

SLOW_THREADS: Final = 4
GRACE_SECONDS: Final = 5.0


class Dispatcher:
    """The open sessions of one connection, and what can be asked of them."""

    def __init__(self, db: SessionDB, write: Callable[[bytes], object]) -> None:
        self.db = db
        self.is_leaving = False  # a plain flag, because signal handlers set it
        self._write = write
        self._writing = threading.Lock()
        self._lives: dict[str, Live] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="hermes-rpc")

    def greet(self) -> None:
        """The first frame: somebody is here."""
        self.event("gateway.ready", "", {"methods": sorted(METHODS)})

    def take(self, line: bytes) -> None:
        """Handle one line; whatever it is, nothing else breaks."""
        if not line.strip():
            return
        try:
            request = frames.parse(line)
        except RpcError as error:
            self.send(frames.error(frames.id_of(line), error.code, str(error)))
            return
        method = METHODS.get(request.method)
        if method is not None and method.is_slow:
            self._pool.submit(self._answer, request)
        else:
            self._answer(request)

    def _answer(self, request: Request) -> None:
        answers: list[dict[str, Any]] = []
        failure = attempt(
            Step(f"rpc {request.method}", lambda: answers.append(self._carried_out(request)))
        )
        if failure is not None:
            text = f"{type(failure.error).__name__}: {failure.error}"
            answers = [frames.error(request.id, CRASHED, text)]
        if request.id is not None:
            self.send(answers[0])

    def _carried_out(self, request: Request) -> dict[str, Any]:
        method = METHODS.get(request.method)
        try:
            if method is None:
                raise RpcError(UNKNOWN_METHOD, f"there is no method {request.method!r}")
            return frames.result(request.id, method.run(self, method.checked(request.params)))
        except RpcError as error:
            return frames.error(request.id, error.code, str(error))
        except HermesError as error:
            return frames.error(request.id, CRASHED, str(error))

    def event(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
        """Tell whoever is at the other end."""
        self.send(frames.event(kind, session_id, payload))

    def send(self, frame: dict[str, Any]) -> None:
        """Write a frame, whole, also while others write."""
        with self._writing:
            try:
                self._write(frames.encode(frame))
            except (BrokenPipeError, ConnectionError, ValueError):
                self.is_leaving = True  # nobody is there any more

    # Open sessions

    def open(self, wish: Wish) -> Live:
        """Open a conversation."""
        live = Live(self.db, wish, self.event)
        with self._lock:
            self._lives[live.id] = live
        self.event("session.info", live.id, live.info())
        return live

    def live(self, live_id: str) -> Live:
        """An open conversation by its live id."""
        with self._lock:
            found = self._lives.get(live_id)
        if found is None:
            raise RpcError(NO_SESSION, f"no conversation is open under {live_id!r}")
        return found

    def idle(self, live_id: str) -> Live:
        """An open conversation in which no turn is running."""
        live = self.live(live_id)
        if live.is_running:
            raise RpcError(BUSY, "a turn is running; wait for it or interrupt it")
        return live

    def live_of(self, session_id: str) -> Live | None:
        """The open conversation that is stored under *session_id*."""
        return next((one for one in self.all_live() if one.desk.session_id == session_id), None)

    def all_live(self) -> list[Live]:
        """All open conversations."""
        with self._lock:
            return list(self._lives.values())

    def close(self, live: Live, reason: str) -> None:
        """End an open conversation: its turn stopped, its words stored, its row closed."""
        live.interrupt()
        if not live.wait(GRACE_SECONDS):
            log.warning("a turn of %s did not end in time", live.desk.session_id)
        live.desk.stop()
        server._finalize_session(live.as_session(), end_reason=reason)  # noqa: SLF001 - the seam
        attempt(Step("tell plugins of boundaries", self._deliver))
        with self._lock:
            self._lives.pop(live.id, None)

    def _deliver(self) -> None:
        if is_mentioned("plugins.enabled"):
            Delivery(self.db, plugins.active()).deliver_due()

    def leave(self) -> None:
        """Ask for the end; it comes when the loop sees it."""
        self.is_leaving = True

    def close_all(self, reason: str) -> None:
        """End every open conversation, all at the same time."""
        lives = self.all_live()
        for live in lives:
            live.interrupt()
        for live in lives:
            attempt(Step("close a session", lambda live=live: self.close(live, reason)))  # type: ignore[misc]
        self._pool.shutdown(wait=False, cancel_futures=True)
