"""Events for other agents: new messages and questions after a cursor, each at least once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.mcp_server.models import EventPage, MessageNews, QuestionNews
from gateway.mcp_server.tools import bounded, described
from hermes_core.errors import UsageError
from hermes_core.roles import Right, may
from hermes_state.messages.feed import FeedPosition

if TYPE_CHECKING:
    from gateway.mcp_server.callers import McpCaller
    from gateway.mcp_server.tools import McpTools
    from hermes_state.store import SessionDB

MAX_WAIT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.5


class EventCursor(NamedTuple):
    """What a caller has received: messages and questions."""

    messages: FeedPosition
    question: int

    def __str__(self) -> str:
        missing = ",".join(map(str, self.messages.missing))
        return f"{self.messages.newest}-{self.question}-{self.messages.horizon}-{missing}"

    @classmethod
    def parse(cls, text: str) -> EventCursor:
        """Read a cursor."""
        try:
            newest, question, horizon, missing = text.split("-")
            ids = tuple(int(number) for number in missing.split(",") if number)
            return cls(FeedPosition(int(newest), ids, int(horizon)), int(question))
        except ValueError as error:
            raise UsageError("the cursor is not one that events_poll has returned") from error


class McpEvents:
    """The events of a store."""

    def __init__(self, db: SessionDB, tools: McpTools) -> None:
        self._db = db
        self._tools = tools

    async def poll(self, caller: McpCaller, cursor: str, limit: int) -> EventPage:
        """The events after a cursor; without one, none and the cursor of now."""
        return await asyncio.to_thread(self._poll, caller, cursor, limit)

    async def wait(self, caller: McpCaller, cursor: str, seconds: float, limit: int) -> EventPage:
        """Like `poll`, but wait for an event; without any in time, the list is empty."""
        end = time.monotonic() + max(0.0, min(seconds, MAX_WAIT_SECONDS))
        if not cursor:
            cursor = (await self.poll(caller, "", limit)).cursor
        while True:
            result = await self.poll(caller, cursor, limit)
            left = end - time.monotonic()
            if result.events or left <= 0:
                return result
            cursor = result.cursor
            await asyncio.sleep(min(POLL_SECONDS, left))

    def _poll(self, caller: McpCaller, text: str, limit: int) -> EventPage:
        if not caller.sees_all:
            caller.require(Right.CHAT_HISTORY, "The history")
        questions = self._db.open_questions.all()
        newest = max((item.number for item in questions), default=0)
        if not text:
            cursor = EventCursor(self._db.feed.end(), newest)
            return EventPage(events=[], cursor=str(cursor))
        before = EventCursor.parse(text)
        found = self._db.feed.after(before.messages, bounded(limit))
        events: list[MessageNews | QuestionNews] = [
            MessageNews(conversation=row.session_id, **vars(described(row)))
            for row in found.rows
            if self._tools.may_see(caller, row.session_id)
        ]
        if may(caller.role, Right.APPROVE):
            events += [
                QuestionNews(
                    question=item.question_id, conversation=item.session_id, text=item.text
                )
                for item in questions
                if item.number > before.question
            ]
        cursor = EventCursor(found.position, max(newest, before.question))
        return EventPage(events=events, cursor=str(cursor))
