"""The MCP servers in config.yaml (`mcp_servers: {name: {…}}`) and in `.mcp.json` of a project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import ConfigError
from hermes_core.json_values import object_in, parse_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.json_values import JsonObject

SECTION: Final = "mcp_servers"
KEYS: Final = (
    "command", "args", "env", "cwd", "url", "headers", "enabled", "timeout", "connect_timeout",
    "sandbox", "network", "writable",
)  # fmt: skip
SERVER_NAME: Final = re.compile(r"[\w.-]{1,64}")
VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")  # also `${NAME:-default}`
PROJECT_SECTION: Final = "mcpServers"
# A project cannot lift the limits of its servers; the user can, in config.yaml.
USER_KEYS: Final = ("sandbox", "writable")
CALL_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 20.0


class McpServerConfig(NamedTuple):
    """A server: a command or a URL; one with a problem is never connected."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: Path | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    call_seconds: float = CALL_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    problem: str = ""
    is_sandboxed: bool = True  # of a command
    has_network: bool = True
    writable: tuple[Path, ...] = ()  # besides the working folder
    rule_name: str = ""  # in permission rules, instead of its name


def parse_servers(
    block: Mapping[str, Any],
    variables: Mapping[str, str],
    where: str = "{name} in config.yaml",
) -> list[McpServerConfig]:
    """The enabled servers by name; *variables* replace `${NAME}`."""
    servers = []
    for name, fields in sorted(block.items()):
        try:
            if not isinstance(fields, dict):
                raise ConfigError("it must be a mapping with command or url")
            if fields.get("enabled", True) is not False:
                servers.append(_server(name, fields, variables))
        except ConfigError as error:
            servers.append(
                McpServerConfig(name, problem=f"{where.format(name=f'{SECTION}.{name}')}: {error}")
            )
    return servers


def parse_project_servers(
    text: str, path: Path, variables: Mapping[str, str]
) -> list[McpServerConfig]:
    """The servers in a `.mcp.json`; *variables* should have no secrets."""
    servers = []
    for name, fields in sorted(project_servers(text).items()):
        if isinstance(fields, dict) and (lifted := [key for key in USER_KEYS if key in fields]):
            problem = f"{name} in {path}: {lifted[0]} can be set in config.yaml only"
            servers.append(McpServerConfig(name, problem=problem))
        else:
            where = f"{name} in {path}".replace("{", "{{").replace("}", "}}")
            servers += parse_servers({name: fields}, variables, where)
    return servers


def project_servers(text: str) -> JsonObject:
    """The servers in the text of a `.mcp.json` by name; empty if it cannot be parsed."""
    return object_in(parse_object(text) or {}, PROJECT_SECTION)


def _server(name: str, fields: JsonObject, variables: Mapping[str, str]) -> McpServerConfig:
    if not SERVER_NAME.fullmatch(name):
        raise ConfigError("a name has at most 64 letters, digits, dots, _ and -")
    command, url = _text(fields, "command", variables), _text(fields, "url", variables)
    if bool(command) == bool(url):
        raise ConfigError("it needs either command or url")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError("url must start with http:// or https://")
    args = fields.get("args") or []
    if not isinstance(args, list):
        raise ConfigError("args must be a list")
    cwd = _text(fields, "cwd", variables)
    return McpServerConfig(
        name,
        (command, *(_substitute(str(arg), variables) for arg in args)) if command else (),
        _pairs(fields, "env", variables),
        Path(cwd).expanduser() if cwd else None,
        url,
        _pairs(fields, "headers", variables),
        _seconds(fields, "timeout", CALL_SECONDS),
        _seconds(fields, "connect_timeout", CONNECT_SECONDS),
        is_sandboxed=_flag(fields, "sandbox"),
        has_network=_flag(fields, "network"),
        writable=_folders(fields, "writable", variables),
    )


def _text(fields: JsonObject, key: str, variables: Mapping[str, str]) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a string")
    return _substitute(value, variables)


def _pairs(
    fields: JsonObject, key: str, variables: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    value = fields.get(key) or {}
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a mapping of names to strings")
    return tuple((str(name), _substitute(str(item), variables)) for name, item in value.items())


def _flag(fields: JsonObject, key: str) -> bool:
    value = fields.get(key, True)
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false")
    return value


def _folders(fields: JsonObject, key: str, variables: Mapping[str, str]) -> tuple[Path, ...]:
    value = fields.get(key) or []
    if not isinstance(value, list):
        raise ConfigError(f"{key} must be a list of folders")
    return tuple(Path(_substitute(str(item), variables)).expanduser() for item in value)


def _seconds(fields: JsonObject, key: str, default: float) -> float:
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise ConfigError(f"{key} must be a number of seconds, at most a day")
    return float(value)


def _substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace `${NAME}`, so that config.yaml needs no secrets."""

    def value(match: re.Match[str]) -> str:
        if variables.get(match[1]):
            return variables[match[1]]
        if match[2] is None and match[1] not in variables:
            raise ConfigError(f"{match[1]} is set neither in the environment nor in .env")
        return match[2] or ""

    return VARIABLE.sub(value, text)
