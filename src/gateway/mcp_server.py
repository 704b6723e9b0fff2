"""Hermes as an MCP server: other agents look into conversations, and send to chats if they may.

It reads the store as it is; nothing is changed, unless sending was switched on.
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

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SENDS: Final = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
MOST: Final = 200
LONGEST_TEXT: Final = 20_000


class Tools:
    """What other agents can ask."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def conversations_list(
        self, limit: int = 20, offset: int = 0, source: str = ""
    ) -> list[dict[str, Any]]:
        """List conversations, the one used last first. source: cli, tui, telegram, …"""
        rows = self._db.list_sessions_rich(
            source=source or None, limit=_bounded(limit), offset=offset, order_by_last_active=True
        )
        names = ("id", "title", "preview", "source", "model", "message_count")
        more = ("started_at", "last_active", "ended_at", "end_reason")
        return [{name: row.get(name) for name in (*names, *more)} for row in rows]

    def conversations_search(self, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """Find what was said: words, "phrases", beginn*, one OR two, -not. The newest first."""
        hits = self._db.search_messages(query, limit=_bounded(limit))
        return [
            {
                "conversation": hit["session_id"],
                "message": hit["id"],
                "role": hit["role"],
                "at": hit["timestamp"],
                "text": hit["snippet_text"],
            }
            for hit in hits
        ]

    def conversation_read(
        self, conversation: str, after: int = 0, limit: int = 50
    ) -> dict[str, Any]:
        """Read a conversation by id, title or `last`; after is the number of a message."""
        session_id = self._db.resolve(conversation)
        rows = self._db.get_messages(session_id, after_id=after, limit=_bounded(limit))
        messages = [
            {
                "message": row["id"],
                "role": row["role"],
                "at": row["timestamp"],
                "text": plain_text(row["content"])[:LONGEST_TEXT],
                "tool": row["tool_name"],
            }
            for row in rows
        ]
        last = messages[-1]["message"] if len(messages) == _bounded(limit) else None
        title = self._db.get_session_title(session_id)
        return {"conversation": session_id, "title": title, "messages": messages, "next": last}

    def channels_list(self) -> list[dict[str, Any]]:
        """List the chats the gateway knows, the one used last first."""
        found = direct_send.channels(self._db, config_of_home())
        return [
            {"channel": one.address, "name": one.name, "kind": one.kind, "used": one.last_active}
            for one in found
        ]

    def message_send(self, channel: str, text: str, key: str = "") -> dict[str, Any]:
        """Send a text to a chat: its address or name. What has the same key is sent once."""
        target = direct_send.find(self._db, config_of_home(), channel)
        numbers = direct_send.send(self._db, target, text, key)
        return {"channel": target.address, "kept_as": numbers}


def made(db: SessionDB, *, may_send: bool) -> MCPServer:
    """The server over a store."""
    server = MCPServer("hermes", log_level="ERROR")
    tools = Tools(db)
    reading = (
        tools.conversations_list,
        tools.conversations_search,
        tools.conversation_read,
        tools.channels_list,
    )
    for tool in reading:
        server.add_tool(_told(tool), annotations=READS)
    if may_send:
        server.add_tool(_told(tools.message_send), annotations=SENDS)
    return server


def _told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """A tool whose errors are for the one who asked."""

    @functools.wraps(tool)
    def asked(*values: Any, **names: Any) -> Any:
        try:
            return tool(*values, **names)
        except HermesError as error:
            raise ToolError(str(error)) from error

    return asked


def _bounded(limit: int) -> int:
    return max(1, min(limit, MOST))
