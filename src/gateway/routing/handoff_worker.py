"""Hand-off: a conversation goes on in a chat that was begun elsewhere.

Somebody asks for it at the terminal; the request is a row of the store. The gateway says
`/resume` in the place in the user's name, as a message of the inbox like any other, so that
nothing of it is lost and everything keeps its order.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from gateway.config import known_platform
from gateway.inbound import inbox_codec
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.platforms.base import Adapter
    from gateway.session import SessionStore
    from hermes_state import SessionDB

log = logging.getLogger(__name__)


class HandoffWorker:
    """Carries out the requests that wait."""

    def __init__(
        self, db: SessionDB, places: SessionStore, adapters: Mapping[str, Adapter]
    ) -> None:
        self._db = db
        self._places = places
        self._adapters = adapters
        self._has_looked = False

    def carry_out(self) -> int:
        """All that wait; how many."""
        waiting = self._db.list_pending_handoffs() if self._is_due() else []
        for row in waiting:
            if self._db.claim_handoff(row["id"]):
                step = Step("hand a conversation over", lambda row=row: self._carry_out(row))  # type: ignore[misc]
                failure = attempt(step)
                if failure is not None:
                    self._db.fail_handoff(row["id"], str(failure.error))
        return len(waiting)

    def _is_due(self) -> bool:
        """Whether to look: somebody has asked, or the gateway has just started."""
        is_first, self._has_looked = not self._has_looked, True
        if is_first:
            self._db.retry_handoffs()
        return self._db.is_handoff_asked() or is_first

    def _carry_out(self, row: dict[str, Any]) -> None:
        name = str(row.get("handoff_platform") or "")
        adapter, source = self._adapters.get(name), self._target(name)
        if adapter is None or source is None:
            error = f"no chat is known on {name or '?'}: write to the agent there first"
            log.warning("conversation %s is not handed over: %s", row["id"], error)
            self._db.fail_handoff(row["id"], error)
            return
        message_id = f"handoff:{self._db.ids.new()}"
        event = MessageEvent(
            f"/resume {row['id']}", source=source, message_id=message_id, internal=True
        )
        self._db.receive(
            platform=name,
            account=adapter.account,
            chat_id=source.chat_id,
            message_id=message_id,
            session_key=self._places.key_of(source),
            payload=inbox_codec.written(event),
        )
        self._db.complete_handoff(row["id"])

    def _target(self, name: str) -> SessionSource | None:
        """The home channel of a platform, or else the direct chat that was used last."""
        platform = known_platform(name)
        if platform is None:
            return None
        home = self._places.config.get_home_channel(platform)
        known = self._places.list_sessions()
        if home is not None:
            for entry in known:
                origin = entry.origin
                if origin and (origin.platform, origin.chat_id) == (platform, home.chat_id):
                    return origin
            return SessionSource(
                platform, home.chat_id, chat_name=home.name, thread_id=home.thread_id
            )
        for entry in known:
            if entry.platform is platform and entry.chat_type == "dm" and entry.origin:
                return entry.origin
        return None
