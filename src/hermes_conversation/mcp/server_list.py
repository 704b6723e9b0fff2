"""The MCP servers in config.yaml and in `.mcp.json` of a project, for listings."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.mcp.config import (
    SECTION,
    VARIABLE,
    McpServerConfig,
    parse_project_servers,
    parse_servers,
    project_servers,
)
from hermes_agent.project.files import FileKind
from hermes_agent.project.trust import assess_project
from hermes_conversation.command_environment import environment_without_secrets
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.json_values import list_in, text_in

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_core.json_values import JsonObject, JsonValue

HIDDEN: Final = "(hidden)"
SECRET_KEYS: Final = ("env", "headers")


class ListedServer(NamedTuple):
    """A server as it is written in a file, and what became of it."""

    name: str
    fields: JsonObject
    path: Path
    state: str  # enabled, disabled, not trusted, or the problem
    config: McpServerConfig | None = None  # of an enabled one

    @property
    def origin(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def target(self) -> str:
        """The command or the URL, without secrets."""
        words = [text_in(self.fields, "command"), *map(str, list_in(self.fields, "args"))]
        return text_in(self.fields, "url") or shlex.join(words)

    def shown_fields(self) -> JsonObject:
        """The fields; values of variables and headers are hidden unless they name a variable."""
        return {
            key: _shown_pairs(value) if key in SECRET_KEYS else value
            for key, value in self.fields.items()
        }

    def as_json(self) -> JsonObject:
        """The server for JSON output."""
        return {
            "name": self.name,
            "state": self.state,
            "file": str(self.path),
            "server": self.shown_fields(),
        }


def list_servers(cwd: Path) -> list[ListedServer]:
    """All servers by name; one in config.yaml takes precedence."""
    config = ConfigFile.of_home()
    found: dict[str, ListedServer] = {}
    block = config.block(SECTION)
    variables = config.variables()
    for name, value in sorted(block.items()):
        fields = _fields(value)
        parsed = parse_servers({name: value}, variables)
        found[name] = _listed(name, fields, config.path, parsed)
    trust = assess_project(cwd)
    for file in reversed([item for item in trust.trusted if item.kind is FileKind.MCP]):
        parsed = parse_project_servers(file.text, file.path, environment_without_secrets())
        for name, value in project_servers(file.text).items():
            mine = [server for server in parsed if server.name == name]
            found.setdefault(name, _listed(name, _fields(value), file.path, mine))
    for item in trust.pending:
        if item.file.kind is FileKind.MCP:
            for name, value in project_servers(item.file.text).items():
                server = ListedServer(name, _fields(value), item.file.path, "not trusted")
                found.setdefault(name, server)
    return sorted(found.values(), key=lambda server: server.name)


def find_server(name: str, cwd: Path) -> ListedServer:
    """The server called *name*."""
    for server in list_servers(cwd):
        if server.name == name:
            return server
    raise UsageError(f"No MCP server {name!r}. See `hermes mcp list`.")


def _listed(
    name: str, fields: JsonObject, path: Path, parsed: list[McpServerConfig]
) -> ListedServer:
    if not parsed:
        return ListedServer(name, fields, path, "disabled")
    state = f"invalid: {parsed[0].problem}" if parsed[0].problem else "enabled"
    return ListedServer(name, fields, path, state, parsed[0])


def _fields(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _shown_pairs(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    return {
        name: item if re.search(VARIABLE, str(item)) else HIDDEN for name, item in value.items()
    }
