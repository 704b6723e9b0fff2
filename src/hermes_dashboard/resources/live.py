"""Changes as they happen, for pages that are open: `/api/live`."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from hermes_core import __version__
from hermes_core.errors import StoreError
from hermes_core.isolate import Step, attempt
from hermes_dashboard.auth.gate import let_out

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from hermes_core.history_rows import HistoryPosition
    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.metrics import DashboardMetrics
    from hermes_dashboard.server import ShutdownSignal

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.25
GATEWAY_LOOKS: Final = 4  # every so many looks
MAX_NAMED: Final = 50
CALM_SECONDS: Final = 2.0  # between two words that mean everything
MAX_WAITING: Final = 32


class News(NamedTuple):
    """Something to tell."""

    kind: str
    facts: dict[str, Any]


EVERYTHING: Final = News("change", {"sessions": []})


class Watcher:
    """One for an application; everything but the looking itself happens in the event loop."""

    def __init__(self, parts: DashboardContext) -> None:
        self._sight = Sight(parts)
        self._listeners: set[asyncio.Queue[News]] = set()
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Queue[News]]:
        """What happens from now on."""
        queue: asyncio.Queue[News] = asyncio.Queue(MAX_WAITING)
        if self._task is None:
            await asyncio.to_thread(self._sight.begin)
        self._listeners.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._look(), name="hermes-watcher")
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _look(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            number += 1
            is_gateway_due = number % GATEWAY_LOOKS == 0
            for news in await asyncio.to_thread(self._sight.news, is_gateway_due=is_gateway_due):
                self._tell(news)

    def _tell(self, news: News) -> None:
        for queue in self._listeners:
            if queue.full():  # it has not listened for long: one word stands for all it missed
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(EVERYTHING)
            queue.put_nowait(news)


class Sight:
    """What was seen last; used by one thread at a time."""

    def __init__(self, parts: DashboardContext) -> None:
        self._history = parts.db.history()
        self._gateway = parts.gateway
        self._version = 0
        self._position: HistoryPosition | None = None
        self._state = ""
        self._is_owed = False
        self._told_at = float("-inf")

    def begin(self) -> None:
        """Take what is there now as known."""
        attempt(Step("look at the history", self._settle))
        attempt(Step("look at the gateway", self._gateway_changed))

    def _settle(self) -> None:
        version = self._history.version()
        self._position, self._version = self._history.position(), version

    def news(self, *, is_gateway_due: bool) -> list[News]:
        """What happened since the last look; a look that fails sees nothing."""
        found: list[News] = []
        attempt(Step("look at the history", lambda: found.extend(self._history_news())))
        if is_gateway_due:
            attempt(
                Step(
                    "look at the gateway",
                    lambda: found.extend([News("gateway", {})] * self._gateway_changed()),
                )
            )
        return found

    def _history_news(self) -> list[News]:
        try:
            version = self._history.version()
        except StoreError:
            return []  # whoever asks for something is told why
        if version != self._version:
            position = self._history.position()  # one that fails is looked for again
            before, self._position, self._version = self._position, position, version
            named = self._named(before)
            if named:
                return [News("change", {"sessions": named})]
            self._is_owed = True
        return self._everything()

    def _named(self, before: HistoryPosition | None) -> list[str]:
        """The sessions whose rows changed; none where that cannot be said, or there are many."""
        if before is None or not self._history.is_same_history(before):
            return []
        found = sorted({one.session_id for one in self._history.changed_since(before)})
        return found if len(found) <= MAX_NAMED else []

    def _everything(self) -> list[News]:
        """The word that means everything; a draft that grows does not make it a flood."""
        now = time.monotonic()
        if not self._is_owed or now - self._told_at < CALM_SECONDS:
            return []
        self._is_owed, self._told_at = False, now
        return [EVERYTHING]

    def _gateway_changed(self) -> bool:
        state = json.dumps(self._gateway.state(), sort_keys=True, default=str)
        is_other, self._state = state != self._state, state
        return is_other


BEAT_SECONDS: Final = 15.0
BEAT: Final = ": still here\n\n"
END: Final = News("", {})


def router(
    parts: DashboardContext, access: Access, farewell: ShutdownSignal, meters: DashboardMetrics
) -> APIRouter:
    """The stream."""
    routes = APIRouter(tags=["live"])
    watcher = Watcher(parts)

    @routes.get(
        "/api/live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "a stream"}},
    )
    async def live(request: Request) -> StreamingResponse:
        """Server-sent events: `hello`, `change` and `gateway`; the stream ends with the sign-in."""
        return StreamingResponse(
            _told(watcher, farewell, meters, functools.partial(let_out, request.scope, access)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


async def _told(
    watcher: Watcher,
    farewell: ShutdownSignal,
    meters: DashboardMetrics,
    logout: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncIterator[str]:
    async with watcher.listening() as queue:
        forget = farewell.hear(lambda: _end(queue))
        login = asyncio.create_task(logout())
        login.add_done_callback(functools.partial(_logged_out, queue))
        meters.listeners.inc()
        try:
            yield _event(News("hello", {"version": __version__}))
            while not (farewell.is_said or login.done()):
                try:
                    news = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    yield BEAT
                    continue
                if news is END:
                    return
                yield _event(news)
        finally:
            login.cancel()
            meters.listeners.dec()
            forget()


def _logged_out(queue: asyncio.Queue[News], login: asyncio.Task[None]) -> None:
    if not login.cancelled():
        if error := login.exception():  # in doubt, nobody is logged in
            log.warning("whether a page is still logged in cannot be said: %s", error)
        _end(queue)


def _end(queue: asyncio.Queue[News]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(END)


def _event(news: News) -> str:
    return f"event: {news.kind}\ndata: {json.dumps(news.facts)}\n\n"
