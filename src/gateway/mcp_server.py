"""Hermes as an MCP server: other agents read conversations and, if allowed, send to chats.

The tools are read-only unless sending is enabled.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from gateway.outbound import direct_send
from gateway.process.config_loader import config_of_home
from hermes_core.errors import HermesError
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB

READ_ANNOTATIONS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SEND_ANNOTATIONS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, open_world_hint=True
)
MAX_RESULTS: Final = 200
MAX_TEXT_CHARS: Final = 20_000


class HistoryTools:
    """The tools that other agents can call."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def conversations_list(
        self, limit: int = 20, offset: int = 0, source: str = ""
    ) -> list[dict[str, Any]]:
        """List conversations, most recently used first. source: cli, tui, telegram, …"""
        rows = self._db.lists.sessions(
            source=source or None, limit=_bounded(limit), offset=offset, order_by_last_active=True
        )
        return [
            {
                "id": row.id,
                "title": row.session.title,
                "preview": row.preview,
                "source": row.session.source,
                "model": row.session.model,
                "message_count": row.session.message_count,
                "started_at": row.session.started_at,
                "last_active": row.last_active,
                "ended_at": row.session.ended_at,
                "end_reason": row.session.end_reason,
            }
            for row in rows
        ]

    def conversations_search(self, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """Search messages: words, "phrases", prefix*, one OR two, -not. Newest first."""
        hits = self._db.search.find(query, limit=_bounded(limit))
        return [
            {
                "conversation": hit.session_id,
                "message": hit.id,
                "role": hit.role,
                "at": hit.timestamp,
                "text": hit.snippet_text,
            }
            for hit in hits
        ]

    def conversation_read(
        self, conversation: str, after: int = 0, limit: int = 50
    ) -> dict[str, Any]:
        """Read a conversation by ID, title or `last`; after: return only messages after this ID."""
        session_id = self._db.lookup.resolve(conversation)
        rows = self._db.messages.rows(session_id, after_id=after, limit=_bounded(limit))
        messages = [
            {
                "message": row.id,
                "role": row.role,
                "at": row.timestamp,
                "text": plain_text(row.content)[:MAX_TEXT_CHARS],
                "tool": row.tool_name,
            }
            for row in rows
        ]
        last = rows[-1].id if len(rows) == _bounded(limit) else None
        title = self._db.get_session_title(session_id)
        return {"conversation": session_id, "title": title, "messages": messages, "next": last}

    def channels_list(self) -> list[dict[str, Any]]:
        """List the known chats, most recently used first."""
        channels = direct_send.list_channels(self._db, config_of_home())
        return [
            {
                "channel": channel.address,
                "name": channel.name,
                "kind": channel.kind,
                "used": channel.last_active,
            }
            for channel in channels
        ]

    def message_send(self, channel: str, text: str, key: str = "") -> dict[str, Any]:
        """Send a text to a chat, given by address or name. key: idempotency key, sent only once."""
        target = direct_send.find_channel(self._db, config_of_home(), channel)
        outbox_ids = direct_send.send(self._db, target, text, key)
        return {"channel": target.address, "kept_as": outbox_ids}


def build_server(db: SessionDB, *, may_send: bool) -> MCPServer:
    """The MCP server of a store."""
    server = MCPServer("hermes", log_level="ERROR")
    tools = HistoryTools(db)
    read_tools = (
        tools.conversations_list,
        tools.conversations_search,
        tools.conversation_read,
        tools.channels_list,
    )
    for tool in read_tools:
        server.add_tool(_with_tool_errors(tool), annotations=READ_ANNOTATIONS)
    if may_send:
        server.add_tool(_with_tool_errors(tools.message_send), annotations=SEND_ANNOTATIONS)
    return server


def _with_tool_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool whose errors are returned to the caller."""

    @functools.wraps(tool)
    def call(*values: Any, **names: Any) -> Any:
        try:
            return tool(*values, **names)
        except HermesError as error:
            raise ToolError(str(error)) from error

    return call


def _bounded(limit: int) -> int:
    return max(1, min(limit, MAX_RESULTS))
