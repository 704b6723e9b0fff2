"""Adding an MCP server to config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.mcp.config import SECTION, SERVER_NAME, VARIABLE, parse_servers
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_core.config.file import ConfigFile
    from hermes_core.json_values import JsonObject


def check_server(name: str, fields: JsonObject) -> None:
    """Raise UsageError for a server that could never be used; a variable may be set later."""
    if not SERVER_NAME.fullmatch(name):
        raise UsageError("A name has at most 64 letters, digits, dots, _ and -.")
    variables = {match[0]: "x" for match in VARIABLE.findall(str(fields))}
    (server,) = parse_servers({name: fields}, variables, "{name}")
    if server.problem:
        raise UsageError(server.problem)


def require_new(config: ConfigFile, name: str) -> None:
    """Raise UsageError if config.yaml has a server with this name."""
    if name in config.block(SECTION):
        raise UsageError(f"{name} exists already. Run `hermes mcp remove {name}` first.")


def add_server(config: ConfigFile, name: str, fields: JsonObject) -> None:
    """Write a server into config.yaml; UsageError if it is invalid or exists."""
    check_server(name, fields)
    require_new(config, name)
    config.set_entry(SECTION, name, fields)


def remove_server(config: ConfigFile, name: str) -> None:
    """Remove a server from config.yaml; UsageError if it is not there."""
    if name not in config.block(SECTION):
        raise UsageError(f"No server {name!r} in {config.path}. See `hermes mcp list`.")
    config.set_entry(SECTION, name, None)
