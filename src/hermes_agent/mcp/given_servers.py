"""MCP servers that a client gives with a conversation, as JSON: editors configure their own.

They get the limits of configured servers, and no setting of Hermes is put into them. A rule that
allows a tool permanently names the program or the URL, too: another server of the same name, of
another project, is asked about again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.config import SERVER_NAME, McpServerConfig
from hermes_core.errors import UsageError
from hermes_core.json_values import list_in, object_in, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.json_values import JsonObject

DIGEST_CHARACTERS: Final = 8
HTTP_SCHEMES: Final = ("http://", "https://")


def parse_given_servers(text: str) -> tuple[McpServerConfig, ...]:
    """The servers in a JSON list of `{name, command, args, env}` or `{name, url, headers}`."""
    if not text:
        return ()
    try:
        items = json.loads(text)
    except ValueError as error:
        raise UsageError("`mcp_servers` is not valid JSON.") from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UsageError("`mcp_servers` must be a JSON list of objects.")
    return tuple(_server(item) for item in items)


def _server(fields: JsonObject) -> McpServerConfig:
    name, command, url = (text_in(fields, key) for key in ("name", "command", "url"))
    name = "-".join(name.split())
    if not SERVER_NAME.fullmatch(name):
        raise UsageError(
            f"Invalid name of an MCP server: {name!r}. Use at most 64 letters, digits, dots, _ "
            "and -."
        )
    if bool(command) == bool(url):
        raise UsageError(f"The MCP server {name} needs either a command or a URL.")
    if url and not url.startswith(HTTP_SCHEMES):
        raise UsageError(f"The URL of the MCP server {name} must start with http:// or https://.")
    program = (command, *(str(item) for item in list_in(fields, "args"))) if command else ()
    return McpServerConfig(
        name,
        program,
        _pairs(object_in(fields, "env")),
        url=url,
        headers=_pairs(object_in(fields, "headers")),
        rule_name=f"{name}.{_digest((*program, url))}",
    )


def _pairs(values: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in values.items())


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:DIGEST_CHARACTERS]


def with_given(
    configured: Iterable[McpServerConfig], given: Iterable[McpServerConfig]
) -> list[McpServerConfig]:
    """All servers; a given one with the name of a configured one gets another name."""
    servers = {server.name: server for server in configured}
    for server in given:
        name = server.name if server.name not in servers else server.rule_name
        servers[name] = server._replace(name=name)
    return list(servers.values())
