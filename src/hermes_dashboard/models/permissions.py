"""Models of permissions and MCP servers."""

from __future__ import annotations

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text


class PermissionState(BaseModel):
    """What the agent may do without asking in new conversations."""

    mode: Text
    sandbox: Text
    is_sandbox_available: bool
    problem: Text | None
    rules: list[Text]


class McpServerItem(BaseModel):
    """An MCP server; credentials in its command or URL are not shown."""

    name: Text
    kind: Text = Field(description="`command` or `url`")
    program: Text = Field(description="the program without its arguments, or the host")
    is_sandboxed: bool
    has_network: bool
    problem: Text


class McpServerList(BaseModel):
    """The enabled MCP servers of config.yaml."""

    has_library: bool
    items: list[McpServerItem]
