"""MCP servers: list, test, request a new one, remove.

A new server is a program that runs on this machine, or a service that gets data: it is written
after `hermes dashboard confirm CODE`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from hermes_agent.mcp.connection import SDK
from hermes_conversation.mcp.server_list import (
    check_server,
    connect,
    list_servers,
    remove_server,
    require_new,
)
from hermes_core.config.file import ConfigFile
from hermes_core.errors import FieldError, UsageError
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.pending_changes import RequestedServer
from hermes_dashboard.resources.pending_changes import PendingChangeItem, request_change
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_conversation.mcp.server_list import ListedServer
    from hermes_core.json_values import JsonObject
    from hermes_dashboard.context import DashboardContext

VariableName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)
]
VariableValue = Annotated[str, StringConstraints(max_length=20_000)]


TEST_SECONDS: Final = 30.0


class McpServerItem(BaseModel):
    """An MCP server; credentials in its command or URL are not shown."""

    name: Text
    kind: Text = Field(description="`command` or `url`")
    program: Text = Field(description="the program without its arguments, or the host")
    is_sandboxed: bool
    has_network: bool
    state: Text = Field(description="`enabled`, `disabled`, `invalid` or `not trusted`")
    origin: Text = Field(description="the name of the file that defines it")
    can_remove: bool
    problem: Text


class McpServerList(BaseModel):
    """The MCP servers, and whether the library that they need is installed."""

    has_library: bool
    items: list[McpServerItem]


class NewMcpServer(BaseModel):
    """A server: a command with its arguments, or a URL."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]
    command: Annotated[str, StringConstraints(max_length=20_000)] = ""
    url: Annotated[str, StringConstraints(max_length=2000)] = ""
    variables: dict[VariableName, VariableValue] = Field(
        default_factory=dict,
        description="environment variables of the command, or HTTP headers of the URL",
    )


class McpToolView(BaseModel):
    """A tool of a server."""

    name: Text
    description: Text


class McpTestView(BaseModel):
    """The result of a connection test."""

    is_ok: bool
    problem: Text
    tools: list[McpToolView]


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of MCP servers."""
    routes = ResourceRouter("/api/mcp-servers", tag="permissions")
    config_name = ConfigFile.of_home().path.name

    def find(name: str) -> ListedServer:
        for server in list_servers(context.start_folder):
            if server.name == name:
                return server
        raise HTTPException(404, f"No MCP server {name!r}.")

    @routes.get("", responses=problems(400))
    def list_all() -> McpServerList:
        """The MCP servers of config.yaml and of the dashboard's folder, and their state."""
        return McpServerList(
            has_library=SDK.is_usable(),
            items=[_item(server, config_name) for server in list_servers(context.start_folder)],
        )

    @routes.post("", status_code=202, response_model=PendingChangeItem, responses=problems(400))
    def request_server(server: NewMcpServer) -> Any:
        """Request a server; it is written into config.yaml after a confirmation."""
        fields = _fields(server)
        check_server(server.name, fields)
        require_new(ConfigFile.of_home(), server.name)
        text = RequestedServer(fields).to_text()
        return request_change(context.home, "mcp_server", server.name, text)

    @routes.post("/{name}/test", responses=problems(400, 404))
    def test_server(name: Identifier) -> McpTestView:
        """Connect to a server as a conversation would, in the sandbox, and list its tools."""
        result = connect(find(name), context.start_folder, TEST_SECONDS)
        tools = [
            McpToolView(name=tool.name.partition("/")[2], description=tool.description)
            for tool in result.tools
        ]
        return McpTestView(is_ok=not result.problem, problem=result.problem, tools=tools)

    @routes.remove("/{name}", 400, 404)
    def remove(name: Identifier) -> None:
        """Remove a server from config.yaml."""
        server = find(name)
        if server.origin != config_name:
            raise UsageError(f"{name} is in {server.path}. Edit that file to remove it.")
        remove_server(ConfigFile.of_home(), name)

    return routes


def _item(server: ListedServer, config_name: str) -> McpServerItem:
    config = server.config
    if config is None:
        url, words = str(server.fields.get("url") or ""), [str(server.fields.get("command") or "")]
    else:
        url, words = config.url, list(config.command)
    return McpServerItem(
        name=server.name,
        kind="url" if url else "command",
        program=urlsplit(url).hostname or "" if url else (words[0] if words else ""),
        is_sandboxed=config is None or config.is_sandboxed,
        has_network=config is None or config.has_network,
        state=server.state.partition(":")[0],
        origin=server.origin,
        can_remove=server.origin == config_name,
        problem=config.problem if config is not None else "",
    )


def _fields(server: NewMcpServer) -> JsonObject:
    """The entry of config.yaml."""
    try:
        words = shlex.split(server.command)
    except ValueError as error:
        reason = f"The command cannot be split into words: {error}."
        raise FieldError("command", reason) from error
    if bool(words) == bool(server.url.strip()):
        raise UsageError("Enter either a command or a URL.")
    if not words:
        headers: JsonObject = dict(server.variables)
        return {"url": server.url.strip(), **({"headers": headers} if headers else {})}
    env: JsonObject = dict(server.variables)
    return {
        "command": words[0],
        **({"args": [*words[1:]]} if words[1:] else {}),
        **({"env": env} if env else {}),
    }
