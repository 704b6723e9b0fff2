"""Models of MCP servers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import Text

VariableName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)
]
VariableValue = Annotated[str, StringConstraints(max_length=20_000)]


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
