"""MCP servers that an editor configures for a conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from acp.schema import HttpMcpServer, McpServerStdio

from hermes_acp.prompt_content import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp.schema import AcpMcpServer, SseMcpServer

    from hermes_core.json_values import JsonObject

    EditorMcpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


def servers_json(servers: Sequence[EditorMcpServer] | None) -> str:
    """The servers as the daemon reads them; empty for none."""
    return json.dumps([_server(server) for server in servers]) if servers else ""


def _server(server: EditorMcpServer) -> JsonObject:
    if isinstance(server, McpServerStdio):
        return {
            "name": server.name,
            "command": server.command,
            "args": list(server.args),
            "env": {variable.name: variable.value for variable in server.env},
        }
    if isinstance(server, HttpMcpServer):
        headers: JsonObject = {header.name: header.value for header in server.headers}
        return {"name": server.name, "url": server.url, "headers": headers}
    raise invalid(f"The MCP server {server.name} has an unsupported transport; use stdio or HTTP.")
