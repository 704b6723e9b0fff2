"""Adding an MCP server to config.yaml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from hermes_agent.mcp.config import SECTION, SERVER_NAME, VARIABLE, parse_servers
from hermes_core.errors import FieldError, UsageError
from hermes_core.json_values import list_in, object_in, text_in

if TYPE_CHECKING:
    from hermes_core.config.file import ConfigFile
    from hermes_core.json_values import JsonObject

CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
VARIABLE_NAME: Final = re.compile(r"[^\x00-\x20\x7f=]+")
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_server(name: str, fields: JsonObject) -> None:
    """Raise UsageError for a server that could never be used; a variable may be set later."""
    if not SERVER_NAME.fullmatch(name):
        raise FieldError("name", "A name has at most 64 letters, digits, dots, _ and -.")
    _check_texts(fields)
    variables = {match[0]: "x" for match in VARIABLE.findall(str(fields))}
    (server,) = parse_servers({name: fields}, variables, "{name}")
    if server.problem:
        raise FieldError("url" if "url" in fields else "command", server.problem)


def _check_texts(fields: JsonObject) -> None:
    """Raise UsageError for texts that no program and no server can be started with."""
    url = text_in(fields, "url")
    words = [text_in(fields, "command"), *map(str, list_in(fields, "args"))]
    if any(CONTROL_CHARACTER.search(text) for text in words):
        raise FieldError("command", "The command has control characters.")
    if CONTROL_CHARACTER.search(url):
        raise FieldError("url", "The URL has control characters.")
    if url.startswith(("http://", "https://")) and not urlsplit(url).netloc:
        raise FieldError("url", "The URL has no host.")
    for kind, key, pattern in (("variable", "env", VARIABLE_NAME), ("header", "headers", HEADER)):
        for name in object_in(fields, key):
            if not pattern.fullmatch(name):
                raise FieldError("variables", f"{name!r} is not the name of a {kind}.")


def require_new(config: ConfigFile, name: str) -> None:
    """Raise UsageError if config.yaml has a server with this name."""
    if name in config.block(SECTION):
        advice = f"Run `hermes mcp remove {name}` first."
        raise FieldError("name", f"{name} already exists. {advice}")


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
