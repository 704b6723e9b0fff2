"""What config.yaml says about MCP servers: `mcp_servers: {name: {…}}`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION: Final = "mcp_servers"
KEYS: Final = (
    "command", "args", "env", "cwd", "url", "headers", "enabled", "timeout", "connect_timeout",
)  # fmt: skip
SERVER_NAME: Final = re.compile(r"[\w.-]{1,64}")
VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
CALL_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 20.0


class McpServerConfig(NamedTuple):
    """One server: a program to start, or an address; one with a problem is never connected."""

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: Path | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    call_seconds: float = CALL_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    problem: str = ""


def described(block: Mapping[str, Any], variables: Mapping[str, str]) -> list[McpServerConfig]:
    """The servers that are not switched off, by name; *variables* fill in `${NAME}`."""
    found = []
    for name, facts in sorted(block.items()):
        try:
            if not isinstance(facts, dict):
                raise ConfigError("it must be a mapping with command or url")
            if facts.get("enabled", True) is not False:
                found.append(_server(name, facts, variables))
        except ConfigError as error:
            found.append(McpServerConfig(name, problem=f"{SECTION}.{name} in config.yaml: {error}"))
    return found


def _server(name: str, facts: dict[str, Any], variables: Mapping[str, str]) -> McpServerConfig:
    if not SERVER_NAME.fullmatch(name):
        raise ConfigError("a name has at most 64 letters, digits, dots, _ and -")
    command, url = _text(facts, "command", variables), _text(facts, "url", variables)
    if bool(command) == bool(url):
        raise ConfigError("it needs either command or url")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError("url must start with http:// or https://")
    args = facts.get("args") or []
    if not isinstance(args, list):
        raise ConfigError("args must be a list")
    cwd = _text(facts, "cwd", variables)
    return McpServerConfig(
        name,
        (command, *(_filled(str(arg), variables) for arg in args)) if command else (),
        _pairs(facts, "env", variables),
        Path(cwd).expanduser() if cwd else None,
        url,
        _pairs(facts, "headers", variables),
        _seconds(facts, "timeout", CALL_SECONDS),
        _seconds(facts, "connect_timeout", CONNECT_SECONDS),
    )


def _text(facts: dict[str, Any], key: str, variables: Mapping[str, str]) -> str:
    value = facts.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a string")
    return _filled(value, variables)


def _pairs(
    facts: dict[str, Any], key: str, variables: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    value = facts.get(key) or {}
    if not isinstance(value, dict):
        raise ConfigError(f"{key} must be a mapping of names to strings")
    return tuple((str(name), _filled(str(one), variables)) for name, one in value.items())


def _seconds(facts: dict[str, Any], key: str, default: float) -> float:
    value = facts.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise ConfigError(f"{key} must be a number of seconds, at most a day")
    return float(value)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with its `${NAME}` filled in, so that no secret has to stand in config.yaml."""
    missing = [name for name in VARIABLE.findall(text) if name not in variables]
    if missing:
        raise ConfigError(f"{missing[0]} is set neither in the environment nor in .env")
    return VARIABLE.sub(lambda match: variables[match[1]], text)
