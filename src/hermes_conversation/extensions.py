"""Extensions of an agent: skills, plugin tools and MCP servers.

Unused extensions cost nothing: no import, no schema, no line in the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_agent import skills, toolbox
from hermes_agent.skills import skill_tool
from hermes_core.config.probe import may_be_set
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.mcp.connection import LimitServer
    from hermes_agent.mcp.server_pool import McpServers
    from hermes_agent.permissions.approvals import ReviewCall
    from hermes_agent.skills import Skill
    from hermes_agent.toolbox import ToolItem
    from hermes_agent.tools.base import Tool
    from hermes_conversation.plugin_tools import ProvidedTool
    from hermes_core.config.file import ConfigFile


class Extensions(NamedTuple):
    """Skills and MCP servers of one conversation; servers are connected on first use."""

    skills: list[Skill]  # including unusable ones
    servers: McpServers | None
    cwd: Path
    plugin_skills: tuple[Path, ...] = ()  # the folders of skills of plugins

    @classmethod
    def load(
        cls, config: ConfigFile, cwd: Path, given: tuple[McpServerConfig, ...] = ()
    ) -> Extensions:
        """Load the extensions for a conversation in *cwd*, with the MCP servers of its client."""
        added = _plugin_skills()
        found = skills.find_skills(hermes_home(), cwd, added)
        return cls(found, _mcp_servers(config, cwd, given), cwd, added)

    @property
    def skill_lines(self) -> str:
        """The lines about skills in the system prompt."""
        return skills.prompt_lines(skills.usable_skills(self.skills))

    def tools(self) -> list[Tool]:
        """The tools for skills and MCP servers, if any."""
        results: list[Tool] = []
        if skills.usable_skills(self.skills):
            results.append(skill_tool(hermes_home(), self.cwd, self.plugin_skills))
        if self.servers is not None:
            from hermes_agent.mcp.tools import mcp_tools  # noqa: PLC0415 - most have none

            results += mcp_tools(self.servers)
        return results

    def reviews(self) -> dict[str, ReviewCall]:
        """Functions that decide whether a call needs approval, by tool name."""
        servers = self.servers
        if servers is None:
            return {}
        from hermes_agent.mcp.tools import CALL, assess_call  # noqa: PLC0415 - most have none

        return {CALL: lambda arguments, context: assess_call(servers, arguments, context)}

    def limit_servers(self, limit: LimitServer) -> None:
        """Set the sandbox limits of MCP servers that are programs."""
        if self.servers is not None:
            self.servers.limit = limit

    def close(self) -> None:
        """Stop every MCP server; may be called twice."""
        if self.servers is not None:
            self.servers.close()


class AgentTools(NamedTuple):
    """All tools of an agent in order, and the plugins that provide some of them."""

    tools: list[Tool]
    plugins: dict[str, str]

    def items(self) -> list[ToolItem]:
        """The tools for listings."""
        return toolbox.tool_items(self.tools, self.plugins)


def with_plugins(own: list[Tool]) -> AgentTools:
    """The standard tools and those of plugins; an overriding tool keeps the position."""
    provided = _plugin_tools(own)
    by_name = {tool.name: tool for tool in own}
    by_name.update({item.tool.name: item.tool for item in provided})
    return AgentTools(list(by_name.values()), {item.tool.name: item.plugin for item in provided})


def _plugin_tools(own: list[Tool]) -> list[ProvidedTool]:
    if not may_be_set("plugins.enabled"):
        return []
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins
    from hermes_conversation import plugin_tools  # noqa: PLC0415 - most have no plugins

    return plugin_tools.provided_tools(hermes_plugin_host.active(), [tool.name for tool in own])


def _plugin_skills() -> tuple[Path, ...]:
    if not may_be_set("plugins.enabled"):
        return ()
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    plugins = hermes_plugin_host.active().plugins.values()
    return tuple(folder for plugin in plugins for folder in plugin.registered.skills)


def _mcp_servers(
    config: ConfigFile, cwd: Path, given: tuple[McpServerConfig, ...]
) -> McpServers | None:
    if not given and not may_be_set("mcp_servers"):
        return None
    from hermes_agent.mcp import config as description  # noqa: PLC0415 - most have none
    from hermes_agent.mcp.given_servers import with_given  # noqa: PLC0415 - as above
    from hermes_agent.mcp.server_pool import McpServers  # noqa: PLC0415 - as above

    configured = description.parse_servers(config.block(description.SECTION), config.variables())
    result = with_given(configured, given)
    return McpServers(result, cwd) if result else None
