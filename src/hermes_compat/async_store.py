"""The store for asyncio programs: every call runs in a thread."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from hermes_compat.session_db import OriginalSessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class AsyncSessionDB:
    """SessionDB with awaitable methods: `await db.append_message(...)`.

    No call blocks the event loop. Methods that return iterators are not available; use the
    paged ones.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.blocking = OriginalSessionDB(*arguments, **options)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self.blocking, name)
        if not callable(method) or name.startswith(("_", "iter_")):
            raise AttributeError(f"AsyncSessionDB has no method {name!r}")

        @functools.wraps(method)
        async def call(*arguments: Any, **options: Any) -> Any:
            return await asyncio.to_thread(method, *arguments, **options)

        return call
