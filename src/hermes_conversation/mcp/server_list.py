"""The MCP servers in config.yaml and in `.mcp.json` of a project, for listings."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.mcp.config import (
    SECTION,
    SERVER_NAME,
    VARIABLE,
    McpServerConfig,
    parse_project_servers,
    parse_servers,
    project_servers,
)
from hermes_agent.mcp.server_pool import McpServers
from hermes_agent.permissions.approvals import Approvals, parse_mode
from hermes_agent.project.files import FileKind
from hermes_agent.project.trust import assess_project
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.sandbox.temporary import private_folder
from hermes_conversation.command_environment import environment_without_secrets
from hermes_core.config.file import ConfigFile
from hermes_core.errors import FieldError, UsageError
from hermes_core.json_values import list_in, object_in, text_in

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.mcp.server_pool import McpServerTool
    from hermes_core.json_values import JsonObject, JsonValue


class TestResult(NamedTuple):
    """The tools of a server, or the reason why it cannot be used."""

    tools: list[McpServerTool]
    problem: str = ""


def connect(server: ListedServer, cwd: Path, seconds: float) -> TestResult:
    """Connect and list the tools within *seconds*."""
    if server.config is None or server.config.problem:
        hint = " Run `hermes trust`." if server.state == "not trusted" else ""
        return TestResult([], f"{server.name} is {server.state}.{hint}")
    limited = server.config._replace(
        connect_seconds=min(seconds, server.config.connect_seconds), call_seconds=seconds
    )
    mode = parse_mode(ConfigFile.of_home().settings().get_str("agent.approvals"))
    approvals = Approvals(mode, is_sandboxed=find_sandbox().is_available)
    temporary = private_folder()
    pool = McpServers([limited], cwd)
    pool.limit = lambda config, folder: approvals.server_policy(config, folder, temporary)
    try:
        catalog = pool.catalog()
    finally:
        pool.close()
        shutil.rmtree(temporary, ignore_errors=True)
    return TestResult(catalog.tools, "; ".join(catalog.problems.values()))


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
