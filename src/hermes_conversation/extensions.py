"""Extensions of an agent: skills, plugin tools and MCP servers.

Unused extensions cost nothing: no import, no schema, no line in the prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_agent import skills, toolbox
from hermes_agent.project.files import FileKind
from hermes_agent.project.trust import assess_project
from hermes_agent.skills import skill_tool
from hermes_core.config.yaml_reader import is_set
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_agent.mcp.config import McpServerConfig
    from hermes_agent.mcp.connection import LimitServer
    from hermes_agent.mcp.server_pool import McpServers
    from hermes_agent.permissions.approvals import ReviewCall
    from hermes_agent.project.trust import ProjectTrust
    from hermes_agent.skills import Skill
    from hermes_agent.toolbox import ToolItem
    from hermes_agent.tools.base import Tool
    from hermes_conversation.plugin_tools import ProvidedTool
    from hermes_core.config.file import ConfigFile

    Environment = Callable[[], dict[str, str]]


class Extensions(NamedTuple):
    """Skills and MCP servers of one conversation; servers are connected on first use."""

    skills: list[Skill]  # including unusable ones
    servers: McpServers | None
    cwd: Path
    plugin_skills: tuple[Path, ...] = ()  # the folders of skills of plugins
    trust: ProjectTrust | None = None  # the files of the project that are used and ignored

    @classmethod
    def load(
        cls,
        config: ConfigFile,
        cwd: Path,
        environment: Environment,
        given: tuple[McpServerConfig, ...] = (),
    ) -> Extensions:
        """Load the extensions for a conversation in *cwd*, with the MCP servers of its client.

        *environment* returns the variables that servers of a project may use.
        """
        added, trust = plugin_skills(), assess_project(cwd)
        found = skills.find_skills(hermes_home(), trust.trusted, added)
        servers = _mcp_servers(config, trust, cwd, environment, given)
        return cls(found, servers, cwd, added, trust)

    def skill_lines(self, characters: int) -> str:
        """The lines about skills in the system prompt, at most *characters* of them."""
        return skills.prompt_lines(skills.usable_skills(self.skills), characters)

    @property
    def notices(self) -> list[str]:
        """What the user should know about ignored files of the project."""
        if self.trust is None:
            return []
        return [*filter(None, [self.trust.notice]), *self.trust.project.problems]

    def tools(self) -> list[Tool]:
        """The tools for skills and MCP servers, if any."""
        results: list[Tool] = []
        if skills.usable_skills(self.skills):
            results.append(skill_tool(self._current_skills))
        if self.servers is not None:
            from hermes_agent.mcp.tools import mcp_tools  # noqa: PLC0415 - most have none

            results += mcp_tools(self.servers)
        return results

    def _current_skills(self) -> list[Skill]:
        """The skills as they are now; changed files of a project need trust again."""
        trusted = assess_project(self.cwd).trusted
        return skills.find_skills(hermes_home(), trusted, self.plugin_skills)

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
    if not is_set("plugins.enabled"):
        return []
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins
    from hermes_conversation import plugin_tools  # noqa: PLC0415 - most have no plugins

    return plugin_tools.provided_tools(hermes_plugin_host.active(), [tool.name for tool in own])


def plugin_skills() -> tuple[Path, ...]:
    """The folders of skills of enabled plugins."""
    if not is_set("plugins.enabled"):
        return ()
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    plugins = hermes_plugin_host.active().plugins.values()
    return tuple(folder for plugin in plugins for folder in plugin.registered.skills)


def _mcp_servers(
    config: ConfigFile,
    trust: ProjectTrust,
    cwd: Path,
    environment: Environment,
    given: tuple[McpServerConfig, ...],
) -> McpServers | None:
    """The servers in config.yaml, and those in trusted files with other names."""
    files = [file for file in trust.trusted if file.kind is FileKind.MCP]
    if not files and not given and not is_set("mcp_servers"):
        return None
    from hermes_agent.mcp import config as description  # noqa: PLC0415 - most have none
    from hermes_agent.mcp.given_servers import with_given  # noqa: PLC0415 - as above
    from hermes_agent.mcp.server_pool import McpServers  # noqa: PLC0415 - as above

    result = description.parse_servers(config.block(description.SECTION), config.variables())
    names = {server.name for server in result}
    for file in reversed(files):  # the nearest folder takes precedence
        found = description.parse_project_servers(file.text, file.path, environment())
        result += [server for server in found if server.name not in names]
        names |= {server.name for server in found}
    result = with_given(result, given)
    return McpServers(result, cwd) if result else None
