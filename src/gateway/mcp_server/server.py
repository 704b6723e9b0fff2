"""The MCP server: its tools, and over HTTP the check of the token of every request.

Over standard input and output the caller is the owner of the home. Over HTTP it is the key in
the `Authorization` header of the request that calls a tool.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from starlette.responses import JSONResponse

from gateway.mcp_server.tools import (  # the library reads annotations
    OWNER,
    AttachmentItem,
    ChannelItem,
    CitedAnswer,
    ConversationFacts,
    ConversationItem,
    ConversationMessages,
    EventPage,
    FixItem,
    GivenAnswer,
    LineAuthor,
    MatchingMessage,
    McpCaller,
    McpTools,
    MessageNews,
    QuestionItem,
    QuestionNews,
    SentMessage,
    bounded,
    described,
    find_caller,
)
from hermes_core import __version__, uvicorn_server
from hermes_core.errors import HermesError, UsageError
from hermes_core.roles import Right, may
from hermes_state.messages.pages import FeedPosition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

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


T = TypeVar("T")
READ: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SEND: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)
RESPOND: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
TOKEN_NEEDED: Final = (
    "Missing or invalid token. Send `Authorization: Bearer KEY` (`hermes api-keys`)."  # noqa: S105
)


class McpOptions(NamedTuple):
    """What callers may do besides reading, as far as their roles allow it."""

    may_send: bool = False
    may_approve: bool = False


class ServedTools:
    """The tools as the MCP library calls them."""

    def __init__(self, db: SessionDB, owner_key: str | None) -> None:
        self._db = db
        self._owner_key = owner_key
        self._tools = McpTools(db)
        self._events = McpEvents(db, self._tools)

    def _caller_of(self, context: Context[Any]) -> McpCaller:
        if self._owner_key is None:
            return OWNER
        shown = (context.headers or {}).get("authorization", "")
        caller = find_caller(self._db, shown, self._owner_key)
        if caller is None:  # removed since the request was checked
            raise ToolError(TOKEN_NEEDED)
        return caller

    async def _run(self, context: Context[Any], call: Callable[[McpCaller], T]) -> T:
        try:
            return await asyncio.to_thread(lambda: call(self._caller_of(context)))
        except HermesError as error:
            raise ToolError(str(error)) from error

    async def conversations_list(
        self, context: Context[Any], limit: int = 20, offset: int = 0, source: str = ""
    ) -> list[ConversationItem]:
        """List conversations, most recently used first. source: cli, tui, telegram, …"""
        return await self._run(
            context, lambda c: self._tools.conversations_list(c, limit, offset, source)
        )

    async def conversations_search(
        self, context: Context[Any], query: str, limit: int = 20
    ) -> list[MatchingMessage]:
        """Search messages: a question, "phrases", prefix*, one OR two, -not; best first."""
        return await self._run(context, lambda c: self._tools.conversations_search(c, query, limit))

    async def history_ask(
        self, context: Context[Any], question: str, use_model: bool = True
    ) -> CitedAnswer:
        """Answer a question from all conversations; each sentence cites a quotation.

        Without use_model, only the quotations are returned.
        """
        return await self._run(
            context, lambda c: self._tools.history_ask(c, question, with_model=use_model)
        )

    async def why_line(self, context: Context[Any], file: str, line: int) -> LineAuthor:
        """Name the conversation and the prompt that wrote a line of a file, given by full path."""
        return await self._run(context, lambda c: self._tools.why_line(c, file, line))

    async def history_fixes(
        self, context: Context[Any], error: str, limit: int = 10
    ) -> list[FixItem]:
        """Find what worked when a command failed with this error before; any agent's commands."""
        return await self._run(context, lambda c: self._tools.history_fixes(c, error, limit))

    async def conversation_get(self, context: Context[Any], conversation: str) -> ConversationFacts:
        """Describe a conversation, given by ID, title or `last`."""
        return await self._run(context, lambda c: self._tools.conversation_get(c, conversation))

    async def messages_read(
        self, context: Context[Any], conversation: str, after: int = 0, limit: int = 50
    ) -> ConversationMessages:
        """Read a conversation by ID, title or `last`; after: return only messages after this ID."""
        return await self._run(
            context, lambda c: self._tools.messages_read(c, conversation, after, limit)
        )

    async def attachments_fetch(
        self, context: Context[Any], conversation: str, message: int
    ) -> list[AttachmentItem]:
        """Fetch the pictures of a message as `data:` URLs; null if missing or above 10 MB."""
        return await self._run(
            context, lambda c: self._tools.attachments_fetch(c, conversation, message)
        )

    async def channels_list(self, context: Context[Any]) -> list[ChannelItem]:
        """List the known chats, most recently used first."""
        return await self._run(context, self._tools.channels_list)

    async def events_poll(
        self, context: Context[Any], cursor: str = "", limit: int = 50
    ) -> EventPage:
        """Get new messages and questions after a cursor; without one, only the current cursor."""
        caller = await self._run(context, lambda c: c)
        return await _with_tool_errors(self._events.poll(caller, cursor, limit))

    async def events_wait(
        self, context: Context[Any], cursor: str = "", timeout_seconds: float = 30, limit: int = 50
    ) -> EventPage:
        """Wait for new messages and questions after a cursor, at most 60 seconds."""
        caller = await self._run(context, lambda c: c)
        return await _with_tool_errors(self._events.wait(caller, cursor, timeout_seconds, limit))

    async def messages_send(
        self, context: Context[Any], channel: str, text: str, key: str = ""
    ) -> SentMessage:
        """Send a text to a chat, given by address or name. key: idempotency key, sent only once."""
        return await self._run(context, lambda c: self._tools.messages_send(c, channel, text, key))

    async def permissions_list_open(self, context: Context[Any]) -> list[QuestionItem]:
        """List the questions of running turns that wait for an answer."""
        return await self._run(context, self._tools.permissions_list_open)

    async def permissions_respond(
        self,
        context: Context[Any],
        question: str,
        decision: str,
        reason: str = "",
    ) -> GivenAnswer:
        """Answer a question. decision: once, session, always or deny; or the text of an answer."""
        return await self._run(
            context, lambda c: self._tools.permissions_respond(c, question, decision, reason)
        )


def build_server(
    db: SessionDB, options: McpOptions, owner_key: str | None = None
) -> MCPServer[Any]:
    """The MCP server of a store; with *owner_key* (which may be empty) for HTTP."""
    server: MCPServer[Any] = MCPServer("hermes", version=__version__, log_level="ERROR")
    tools = ServedTools(db, owner_key)
    for tool in (
        tools.conversations_list,
        tools.conversations_search,
        tools.history_ask,
        tools.why_line,
        tools.history_fixes,
        tools.conversation_get,
        tools.messages_read,
        tools.attachments_fetch,
        tools.channels_list,
        tools.events_poll,
        tools.events_wait,
        tools.permissions_list_open,
    ):
        server.add_tool(tool, annotations=READ)
    if options.may_send:
        server.add_tool(tools.messages_send, annotations=SEND)
    if options.may_approve:
        server.add_tool(tools.permissions_respond, annotations=RESPOND)
    return server


async def _with_tool_errors(work: Awaitable[T]) -> T:
    try:
        return await work
    except HermesError as error:
        raise ToolError(str(error)) from error


class TokenCheck:
    """An ASGI application that answers only requests with a valid token."""

    def __init__(self, app: ASGIApp, db: SessionDB, owner_key: str) -> None:
        self._app = app
        self._db = db
        self._owner_key = owner_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the token of a request."""
        if scope["type"] == "http":
            shown = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            caller = await asyncio.to_thread(find_caller, self._db, shown, self._owner_key)
            if caller is None:
                headers = {"WWW-Authenticate": "Bearer"}
                await JSONResponse({"error": TOKEN_NEEDED}, 401, headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def serve_http(
    db: SessionDB,
    options: McpOptions,
    address: tuple[str, int],
    owner_key: str,
    on_start: Callable[[str], object],
) -> None:
    """Serve over HTTP until the process is stopped; *on_start* gets the URL."""
    server = build_server(db, options, owner_key)
    host, port = address
    listener = uvicorn_server.listen(host, port)
    app = TokenCheck(server.streamable_http_app(host=host), db, owner_key)
    http = uvicorn_server.make_server(app, handles_signals=True, timeout_graceful_shutdown=2)
    shown = f"[{host}]" if ":" in host else host
    on_start(f"http://{shown}:{listener.getsockname()[1]}/mcp")
    asyncio.run(http.serve([listener]))
