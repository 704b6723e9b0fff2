"""Finding what was said, with the found words marked."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query

from hermes_core.isolate import Step, attempt
from hermes_dashboard.models.sessions import Hits
from hermes_dashboard.models.text import Moment, problems
from hermes_state.search.candidates import Patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB

READ_SECONDS: Final = 1.5  # what the index does not cover, in one search
FILL_SECONDS: Final = 0.1
PAUSE_SECONDS: Final = 0.3  # others are let through meanwhile

Text = Annotated[str, Query(max_length=500)]
Names = Annotated[list[str], Query(max_length=50)]


class SearchIndexUpdater:
    """Brings the search index up to date behind searches, in small steps."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Go on filling, unless that is being done."""
        with self._lock:
            if self._over.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(
                target=lambda: attempt(Step("fill the search index", self._fill)),
                name="hermes-search-filling",
                daemon=True,
            )
            self._thread.start()

    def _fill(self) -> None:
        before = None
        while not self._over.wait(PAUSE_SECONDS) and not self._db.fill_search(FILL_SECONDS):
            done = self._db.search_progress()
            if done == before:
                return  # the file cannot be used now
            before = done

    def close(self) -> None:
        """Fill no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()


def router(parts: DashboardContext) -> APIRouter:
    """The search."""
    db = parts.db
    filling = SearchIndexUpdater(db)

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        yield
        filling.close()

    routes = APIRouter(prefix="/api/search", tags=["sessions"], lifespan=lifespan)

    @routes.get("", response_model=Hits, responses=problems(400, 503))
    def search(
        q: Text,
        limit: Annotated[int, Query(ge=1, le=100)] = 30,
        offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
        source: Names = [],  # noqa: B006 - FastAPI copies it
        role: Names = [],  # noqa: B006
        since: Moment | None = None,
        until: Moment | None = None,
        with_tools: bool = False,
    ) -> dict[str, Any]:
        """Messages that match the query, newest first.

        Words, "phrases", prefix*, one OR two, -not. While the index is being filled,
        `progress` tells how far it is; the newest of the rest is read meanwhile. Tool
        output that the index does not cover is read for a moment; `is_partial` says that
        there was not time for all of it.
        """
        patience = Patience(READ_SECONDS)
        hits = db.search_messages(
            q,
            source_filter=source,
            role_filter=role,
            limit=limit + 1,
            offset=offset,
            since=since,
            until=until,
            with_tools=with_tools,
            patience=patience,
        )
        progress = db.search_progress()
        if progress is not None:
            filling.start()
        return {
            "items": _shown(db, hits[:limit]),
            "has_more": len(hits) > limit,
            "is_partial": patience.has_ended,
            "progress": progress and {"done": progress[0], "total": progress[1]},
        }

    return routes


def _shown(db: SessionDB, hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sessions = {one["session_id"] for one in hits}
    titles = {one: db.get_session_title(one) for one in sessions}
    return [
        {
            "session_id": one["session_id"],
            "session_title": titles[one["session_id"]],
            "source": one["source"],
            "message_id": one["id"],
            "role": one["role"],
            "timestamp": one["timestamp"],
            "snippet": one["snippet_text"],
            "marks": one["offsets"],
        }
        for one in hits
    ]
