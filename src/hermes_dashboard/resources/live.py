"""Server-sent events about changes, for open pages: `/api/live`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations
from starlette.responses import StreamingResponse

from hermes_achievements.evaluation.records import SNAPSHOT_FILE
from hermes_core import __version__
from hermes_core.errors import StoreError
from hermes_core.isolate import attempt
from hermes_dashboard.auth.gate import wait_for_sign_out
from hermes_dashboard.routes import ResourceRouter
from hermes_state.files import ACHIEVEMENTS_FOLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from hermes_core.history_rows import HistoryPosition
    from hermes_dashboard.analytics.analysis import AnalysisState
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.metrics import DashboardMetrics
    from hermes_dashboard.resources.gateway import GatewayStatus
    from hermes_dashboard.server import ShutdownSignal

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.25
GATEWAY_POLL_INTERVAL: Final = 4  # in polls
MAX_NAMED_SESSIONS: Final = 50
FULL_RELOAD_SECONDS: Final = 2.0  # minimum interval between events that reload everything
MAX_QUEUED_EVENTS: Final = 32


class LiveEvent(NamedTuple):
    """An event for the page."""

    kind: str
    data: dict[str, Any]


FULL_RELOAD: Final = LiveEvent("change", {"sessions": []})


class LiveEvents:
    """Distributes events to open pages; only polling runs outside the event loop."""

    def __init__(self, context: DashboardContext) -> None:
        self._detector = ChangeDetector(context)
        self._listeners: set[asyncio.Queue[LiveEvent]] = set()
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def subscribe(self) -> AsyncIterator[asyncio.Queue[LiveEvent]]:
        """A queue of the events from now on."""
        queue: asyncio.Queue[LiveEvent] = asyncio.Queue(MAX_QUEUED_EVENTS)
        if self._task is None:
            await asyncio.to_thread(self._detector.begin)
        self._listeners.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._poll_forever(), name="hermes-watcher")
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _poll_forever(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(POLL_SECONDS)
            number += 1
            is_gateway_due = number % GATEWAY_POLL_INTERVAL == 0
            for event in await asyncio.to_thread(
                self._detector.poll, is_gateway_due=is_gateway_due
            ):
                self._publish(event)

    def _publish(self, event: LiveEvent) -> None:
        for queue in self._listeners:
            if queue.full():  # a slow reader: one reload replaces the missed events
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(FULL_RELOAD)
            queue.put_nowait(event)


class ChangeDetector:
    """The state at the last poll; used by one thread at a time."""

    def __init__(self, context: DashboardContext) -> None:
        self._history = context.db.ledger.history()
        self._engine = context.db.engine
        self._gateway = context.gateway
        self._analysis = context.analysis
        self._achievements = context.home / ACHIEVEMENTS_FOLDER / SNAPSHOT_FILE
        self._achievements_at = 0
        self._statistics: AnalysisState | None = None
        self._version = 0
        self._position: HistoryPosition | None = None
        self._state: GatewayStatus | None = None
        self._is_reload_pending = False
        self._reloaded_at = float("-inf")

    def begin(self) -> None:
        """Record the current state as the baseline."""
        attempt("poll the history", self._record_history)
        attempt("poll the gateway", self._gateway_changed)
        self._statistics = self._analysis.state()
        self._achievements_changed()

    def _record_history(self) -> None:
        version = self._engine.version()
        self._position, self._version = self._history.position(), version

    def poll(self, *, is_gateway_due: bool) -> list[LiveEvent]:
        """The events since the last poll; a poll that fails returns none."""
        events: list[LiveEvent] = []
        attempt("poll the history", lambda: events.extend(self._poll_history()))
        events += self._poll_statistics()
        if is_gateway_due:
            events += [LiveEvent("achievements", {})] * self._achievements_changed()
            attempt(
                "poll the gateway",
                lambda: events.extend([LiveEvent("gateway", {})] * self._gateway_changed()),
            )
        return events

    def _poll_history(self) -> list[LiveEvent]:
        try:
            version = self._engine.version()
        except StoreError:
            return []  # requests report the error
        if version != self._version:
            position = (
                self._history.position()
            )  # raises before the state changes, so it is tried again
            before, self._position, self._version = self._position, position, version
            session_ids = self._changed_sessions(before)
            if session_ids:
                return [LiveEvent("change", {"sessions": session_ids})]
            self._is_reload_pending = True
        return self._pending_reload()

    def _poll_statistics(self) -> list[LiveEvent]:
        """An event when the statistics have changed, or while the history is being counted."""
        state = self._analysis.state()
        if state == self._statistics:
            return []
        self._statistics = state
        done, total = state.progress or (0, 0)
        return [LiveEvent("statistics", {"done": done, "total": total})]

    def _changed_sessions(self, before: HistoryPosition | None) -> list[str]:
        """The sessions whose rows changed; empty if unknown or too many."""
        if before is None or not self._history.is_same_history(before):
            return []
        session_ids = sorted({row.session_id for row in self._history.changed_since(before)})
        return session_ids if len(session_ids) <= MAX_NAMED_SESSIONS else []

    def _pending_reload(self) -> list[LiveEvent]:
        """A reload of everything, at most once per interval."""
        now = time.monotonic()
        if not self._is_reload_pending or now - self._reloaded_at < FULL_RELOAD_SECONDS:
            return []
        self._is_reload_pending, self._reloaded_at = False, now
        return [FULL_RELOAD]

    def _achievements_changed(self) -> bool:
        """Whether a scan has ended; in a database its result is a change of the history."""
        try:
            changed_at = self._achievements.stat().st_mtime_ns
        except OSError:
            changed_at = 0  # no scan has ended yet
        has_changed, self._achievements_at = changed_at != self._achievements_at, changed_at
        return has_changed

    def _gateway_changed(self) -> bool:
        state = self._gateway.state()
        has_changed, self._state = state != self._state, state
        return has_changed


HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = ": keep-alive\n\n"
END_OF_EVENTS: Final = LiveEvent("", {})


def router(
    context: DashboardContext,
    access: Access,
    shutdown_signal: ShutdownSignal,
    metrics: DashboardMetrics,
) -> ResourceRouter:
    """The route of the stream."""
    routes = ResourceRouter(tag="live")
    live_events = LiveEvents(context)

    @routes.get(
        "/api/live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "a stream"}},
    )
    async def live(request: Request) -> StreamingResponse:
        """Server-sent events: changes, statistics, achievements, the gateway.

        The stream ends with the sign-in.
        """
        return StreamingResponse(
            _event_stream(
                live_events,
                shutdown_signal,
                metrics,
                functools.partial(wait_for_sign_out, request.scope, access),
            ),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


async def _event_stream(
    live_events: LiveEvents,
    shutdown_signal: ShutdownSignal,
    metrics: DashboardMetrics,
    signed_out: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncIterator[str]:
    async with live_events.subscribe() as queue:
        unsubscribe = shutdown_signal.subscribe(lambda: _end(queue))
        sign_out = asyncio.create_task(signed_out())
        sign_out.add_done_callback(functools.partial(_logged_out, queue))
        metrics.listeners.inc()
        try:
            yield _event(LiveEvent("hello", {"version": __version__}))
            while not (shutdown_signal.is_set or sign_out.done()):
                try:
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        event = await queue.get()
                except TimeoutError:
                    yield HEARTBEAT
                    continue
                if event is END_OF_EVENTS:
                    return
                yield _event(event)
        finally:
            sign_out.cancel()
            metrics.listeners.dec()
            unsubscribe()


def _logged_out(queue: asyncio.Queue[LiveEvent], sign_out: asyncio.Task[None]) -> None:
    if not sign_out.cancelled():
        if error := sign_out.exception():  # treated as signed out
            log.warning("sign-in check of a live page failed: %s", error)
        _end(queue)


def _end(queue: asyncio.Queue[LiveEvent]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(END_OF_EVENTS)


def _event(event: LiveEvent) -> str:
    return f"event: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
