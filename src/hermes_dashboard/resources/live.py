"""Changes as they happen, for pages that are open: `/api/live`."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from hermes_cli import __version__
from hermes_dashboard.watcher import News, Watcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_dashboard.farewell import Farewell
    from hermes_dashboard.meters import Meters
    from hermes_dashboard.parts import Parts

BEAT_SECONDS: Final = 15.0
BEAT: Final = ": still here\n\n"
END: Final = News("", {})


def router(parts: Parts, farewell: Farewell, meters: Meters) -> APIRouter:
    """The stream."""
    routes = APIRouter(tags=["live"])
    watcher = Watcher(parts)

    @routes.get(
        "/api/live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "a stream"}},
    )
    async def live() -> StreamingResponse:
        """Server-sent events: `hello`, `change` and `gateway`."""
        return StreamingResponse(
            _told(watcher, farewell, meters),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


async def _told(watcher: Watcher, farewell: Farewell, meters: Meters) -> AsyncIterator[str]:
    async with watcher.listening() as queue:
        forget = farewell.hear(lambda: _end(queue))
        meters.listeners.inc()
        try:
            yield _event(News("hello", {"version": __version__}))
            while not farewell.is_said:
                try:
                    news = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    yield BEAT
                    continue
                if news is END:
                    return
                yield _event(news)
        finally:
            meters.listeners.dec()
            forget()


def _end(queue: asyncio.Queue[News]) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(END)


def _event(news: News) -> str:
    return f"event: {news.kind}\ndata: {json.dumps(news.facts)}\n\n"
