"""Hand-offs: a conversation from another front end continues in a chat.

The user requests it at the terminal; the request is a row of the store. The gateway stores a
`/resume` message in the inbox of the chat, so it is durable and keeps its order.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from gateway.config import find_platform
from gateway.inbound import prompt_format
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.platforms.base import Adapter
    from gateway.routing.session_routes import SessionRoutes
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)


class HandoffWorker:
    """Runs the pending hand-off requests."""

    def __init__(
        self,
        db: SessionDB,
        routes: SessionRoutes,
        adapters: Mapping[str, Adapter],
        has_all_history: Callable[[SessionSource], bool],
    ) -> None:
        self._db = db
        self._routes = routes
        self._adapters = adapters
        self._has_all_history = has_all_history  # whether a chat may read any conversation
        self._has_started = False

    def run_pending(self) -> int:
        """Run all pending requests; how many there were."""
        pending = self._db.handoffs.pending() if self._is_due() else []
        for row in pending:
            if self._db.handoffs.claim_handoff(row.id):
                result = attempt("hand over conversation", functools.partial(self._run, row))
                if isinstance(result, Failure):
                    self._db.handoffs.fail_handoff(row.id, str(result.error))
        return len(pending)

    def _is_due(self) -> bool:
        """Whether to look: a request was made, or the gateway has just started."""
        is_first, self._has_started = not self._has_started, True
        if is_first:
            self._db.handoffs.retry()
        return self._db.handoffs.is_requested() or is_first

    def _run(self, row: SessionRow) -> None:
        name = row.handoff_platform or ""
        adapter, source = self._adapters.get(name), self._target(name)
        if adapter is None or source is None:
            error = (
                f"No direct chat of the owner on {name or '?'}. Send the agent a message there "
                "first, or set `home_channel`."
            )
            log.warning("hand-off of %s failed: %s", row.id, error)
            self._db.handoffs.fail_handoff(row.id, error)
            return
        message_id = f"handoff:{self._db.ids.new()}"
        event = MessageEvent(
            f"/resume {row.id}", source=source, message_id=message_id, internal=True
        )
        self._db.inbox.receive(
            platform=name,
            account=adapter.account,
            chat_id=source.chat_id,
            message_id=message_id,
            session_key=self._routes.key_of(source),
            payload=prompt_format.encode(event),
        )
        self._db.handoffs.complete_handoff(row.id)

    def _target(self, name: str) -> SessionSource | None:
        """The home channel of a platform, else the owner's most recently used direct chat."""
        platform = find_platform(name)
        if platform is None:
            return None
        home = self._routes.config.get_home_channel(platform)
        entries = self._routes.list_sessions()
        if home is not None:
            for entry in entries:
                origin = entry.origin
                if origin and (origin.platform, origin.chat_id) == (platform, home.chat_id):
                    return origin
            return SessionSource(
                platform, home.chat_id, chat_name=home.name, thread_id=home.thread_id
            )
        for entry in entries:
            origin = entry.origin
            if entry.platform is platform and origin and self._has_all_history(origin):
                return origin
        return None
