"""Changes as they happen, for pages that are open: `/api/live`."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from hermes_core import __version__
from hermes_dashboard.auth.gate import let_out
from hermes_dashboard.watcher import News, Watcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from hermes_dashboard.auth.access import Access
    from hermes_dashboard.context import Parts
    from hermes_dashboard.metrics import Meters
    from hermes_dashboard.shutdown import Farewell

log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 15.0
BEAT: Final = ": still here\n\n"
END: Final = News("", {})


def router(parts: Parts, access: Access, farewell: Farewell, meters: Meters) -> APIRouter:
    """The stream."""
    routes = APIRouter(tags=["live"])
    watcher = Watcher(parts)

    @routes.get(
        "/api/live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "a stream"}},
    )
    async def live(request: Request) -> StreamingResponse:
        """Server-sent events: `hello`, `change` and `gateway`; it ends with the login."""
        return StreamingResponse(
            _told(watcher, farewell, meters, functools.partial(let_out, request.scope, access)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


async def _told(
    watcher: Watcher,
    farewell: Farewell,
    meters: Meters,
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
